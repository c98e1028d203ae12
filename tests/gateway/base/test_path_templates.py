"""Routing: paths match exactly, captures are raw, and the template with more literal text wins."""

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.base import path_templates as routing
from gateway.base.path_templates import Router, Segment, Template, parse_template
from tests.gateway.world import LAW


def router(*texts: str) -> Router[str]:
    return Router((parse_template(text), text) for text in texts)


def test_the_literal_length_of_a_template_is_counted() -> None:
    assert [parse_template(text).literal for text in ("/a/{b}", "/a/{b*}", "/ab/x{c}:y")] == [
        1,
        1,
        5,
    ]


SHIPPED = (
    *("/v{version}/person", "/person/param", "/person/header", "/person/accept", "/users"),
    "/users/{id}",
)


class TestExactPaths:
    """Paths match byte for byte: slashes, dot segments and percent-encoding are not normalized."""

    @pytest.mark.parametrize(
        ("path", "template", "captures"),
        [
            ("/v1/person", "/v{version}/person", {"version": "1"}),
            ("/v2/person", "/v{version}/person", {"version": "2"}),
            ("/v01/person", "/v{version}/person", {"version": "01"}),
            ("/vv1/person", "/v{version}/person", {"version": "v1"}),
            ("/v%31/person", "/v{version}/person", {"version": "%31"}),
            ("/v../person", "/v{version}/person", None),
            ("/person/param", "/person/param", {}),
            ("/person/header", "/person/header", {}),
            ("/person/accept", "/person/accept", {}),
            ("/users", "/users", {}),
            ("/users/7", "/users/{id}", {"id": "7"}),
            ("/users/a%2Fb", "/users/{id}", {"id": "a%2Fb"}),
            ("/users/%", "/users/{id}", {"id": "%"}),
            ("/users/{id}", "/users/{id}", {"id": "{id}"}),
            ("/users/...", "/users/{id}", {"id": "..."}),
            ("/users/.a", "/users/{id}", {"id": ".a"}),
            ("/users/a..", "/users/{id}", {"id": "a.."}),
        ],
    )
    def test_a_path_is_found_with_its_captures(
        self, path: str, template: str, captures: dict[str, str] | None
    ) -> None:
        expected = None if captures is None else (template, captures)
        assert router(*SHIPPED).find(path) == expected

    @pytest.mark.parametrize(
        "path",
        [
            *("", "/", "//", "*", "person", "users", "v1/person", "users/7", " /users", "/users "),
            *("xusers/7", "*v1/person", "\\users/7", "http://a/users/7"),
            *("/v1", "/v1/", "/v/person", "/person", "/1/person", "/V1/person", "/v1/Person"),
            *("/v1/person/", "/v1//person", "//v1/person", "/v1/person//", "/v1/person/x"),
            *("/v1/./person", "/./v1/person", "/v1/x/../person", "/v1/person/.", "/v1/person/.."),
            *("/v1/%70erson", "/%761/person", "/v1%2Fperson", "/v1/person%20", "/v1/person%00"),
            *("/person/param/", "/person//param", "/person/param/x", "/person/./param"),
            *("/person/%70aram", "/PERSON/param", "/person/param%2F", "/person/params"),
            *("/users/", "/users//", "/users//7", "/users/7/", "//users/7", "/users/7/x"),
            *("/users/.", "/users/..", "/users/%2e", "/users/%2E%2e", "/users/.%2e", "/users/%2E."),
            *("/x/../users", "/users/../users", "/users/7/..", "/person\\param", "/users;a=b/7"),
        ],
    )
    def test_any_other_path_is_not_found(self, path: str) -> None:
        assert router(*SHIPPED).find(path) is None

    @pytest.mark.parametrize("text", ["/", "/a/", "/a//b", "/a//{x}", "/{x}/"])
    def test_a_final_slash_matches_itself_only(self, text: str) -> None:
        path = text.replace("{x}", "7")
        found = router(text).find(path)
        assert found is not None
        assert found[0] == text
        assert router(text).find(f"{path}/") is None
        assert router(text).find(path.replace("//", "/") if "//" in path else path[:-1]) is None


class TestCaptures:
    """A capture takes the text between its prefix and its suffix; only a rest may be empty."""

    @pytest.mark.parametrize(
        ("text", "path", "captures"),
        [
            ("/a{x}", "/ab", {"x": "b"}),
            ("/a{x}", "/aa", {"x": "a"}),
            ("/a{x}", "/a", None),
            ("/{x}b", "/ab", {"x": "a"}),
            ("/{x}b", "/b", None),
            ("/{x}b", "/ba", None),
            ("/a{x}b", "/acb", {"x": "c"}),
            ("/a{x}b", "/ab", None),
            ("/a{x}a", "/a", None),
            ("/a{x}a", "/aa", None),
            ("/a{x}a", "/aaa", {"x": "a"}),
            ("/{x}.json", "/7.json", {"x": "7"}),
            ("/{x}.json", "/.json", None),
            ("/{x}/{y}", "/1/2", {"x": "1", "y": "2"}),
            ("/{x}/{y}", "/1/", None),
            ("/{x}/{y}", "//2", None),
            ("/{x}/b/{y}", "/1/b/2", {"x": "1", "y": "2"}),
            ("/{_x1}", "/1", {"_x1": "1"}),
        ],
    )
    def test_a_capture_matches_within_its_segment(
        self, text: str, path: str, captures: dict[str, str] | None
    ) -> None:
        assert router(text).find(path) == (None if captures is None else (text, captures))

    @pytest.mark.parametrize(
        ("path", "rest"),
        [
            ("/files/a", "a"),
            ("/files/a/b/c", "a/b/c"),
            ("/files/a%2Fb/..c", "a%2Fb/..c"),
            ("/files", None),
            ("/files/", ""),
            ("/files//", None),
            ("/files//a", None),
            ("/files/a/", "a/"),
            ("/files/a/b/", "a/b/"),
            ("/files/a//", None),
            ("/files/a//b", None),
            ("/files/.", None),
            ("/files/..", None),
            ("/files/../a", None),
            ("/files/a/./b", None),
            ("/files/a/../../b", None),
            ("/files/a/%2E%2e/b", None),
            ("/files/a/%2e", None),
            ("/Files/a", None),
        ],
    )
    def test_a_tail_capture_matches_the_rest_of_the_path(self, path: str, rest: str | None) -> None:
        expected = None if rest is None else ("/files/{rest*}", {"rest": rest})
        assert router("/files/{rest*}").find(path) == expected

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            *[("/x-{id}", f"/x-{dots}") for dots in (".", "..", "%2e", "%2E.", ".%2e", "%2e%2E")],
            ("/{id}.json", "/...json"),
            ("/{id}.", "/.."),
            ("/.{id}", "/.."),
            ("/{id}e", "/%2e"),
            ("/a/{id}/b", "/a/../b"),
        ],
    )
    def test_captures_never_match_a_dot_segment(self, text: str, path: str) -> None:
        """In a filled-in path, a dot segment would leave the folder."""
        assert router(text).find(path) is None

    @pytest.mark.parametrize(
        ("path", "found"),
        [
            ("/users/1/", None),
            ("/me/", None),
            ("/", "/{rest*}"),
            ("/files/a/", "/files/{rest*}"),
            ("/other/", "/{rest*}"),
            ("/users/", "/{rest*}"),
        ],
    )
    def test_a_final_slash_does_not_bypass_another_template(
        self, path: str, found: str | None
    ) -> None:
        known = router("/users/{id}", "/me", "/files/{rest*}", "/{rest*}").find(path)
        assert (None if known is None else known[0]) == found

    @pytest.mark.parametrize("text", ["/users/{id}", "/users/{rest*}", "/users/a{id}"])
    @pytest.mark.parametrize(
        "climbing",
        [
            *("..%2fadmin", "%2e%2e%2fadmin", "%2E.%2Fadmin", "x%2f..%2f..%2fadmin", "..%5cadmin"),
            *("..\\admin", "..\\", "..;", "..;x=1", ".;", "%2e%2e%3b", "x%2f."),
            *("%252e%252e%252fadmin", "%c0%ae%c0%ae%c0%afadmin"),
            *("%e0%80%ae%e0%80%ae%e0%80%afadmin", "%f0%80%80%ae%f0%80%80%ae%f0%80%80%afadmin"),
            *("..%e0%81%9cadmin", "..%c1%9cadmin", "..%00", "..%20", "%09..", ".%0a."),
            *("..%00%2fadmin", "..%3f", "..%23x"),
        ],
    )
    def test_captures_never_match_an_encoded_dot_segment(self, text: str, climbing: str) -> None:
        """A service that decodes the captured string would leave the folder."""
        assert router(text).find(f"/users/{climbing}") is None
        assert router(text).find(f"/users/a/{climbing}") is None
        assert router("/users/{id}/x").find(f"/users/{climbing}/x") is None

    @pytest.mark.parametrize(
        "plain",
        [
            *("a%2fb", "a..b", "a..%00", "...%20", "%20", "...", "..a", "a%3b..", "a\\b", "%f"),
            *("%25", "%2525252e%2e"),
        ],
    )
    def test_captures_match_strings_with_harmless_dots(self, plain: str) -> None:
        assert router("/users/{id}").find(f"/users/{plain}") == ("/users/{id}", {"id": plain})


class TestPrecedence:
    """Literals precede captures, and more literal text precedes less; the order has no effect."""

    @pytest.mark.parametrize(
        ("texts", "path", "winner"),
        [
            (("/a/{x}", "/a/b"), "/a/b", "/a/b"),
            (("/a/{x}", "/{y}/b"), "/a/b", "/a/{x}"),
            (("/{x}/c", "/a/{y}"), "/a/c", "/a/{y}"),
            (("/a/{x}/c", "/{y}/b/d"), "/a/b/d", "/{y}/b/d"),
            (("/a/b/c", "/a/{x}/d"), "/a/b/d", "/a/{x}/d"),
            (("/{x}", "/v{x}"), "/v1", "/v{x}"),
            (("/{x}", "/v{x}"), "/w1", "/{x}"),
            (("/v{x}", "/v1{x}", "/{x}.j"), "/v12.j", "/v1{x}"),
            (("/v{x}", "/{x}1", "/{y}"), "/v1", "/v{x}"),
            (("/ab{x}", "/{x}cd"), "/abcd", "/ab{x}"),
            (("/a{x}d", "/ab{x}"), "/abcd", "/ab{x}"),
            (("/{x}/{y}", "/{rest*}"), "/1/2", "/{x}/{y}"),
            (("/{x}/{y}", "/{rest*}"), "/1", "/{rest*}"),
            (("/{x}/{y}", "/{rest*}"), "/1/2/3", "/{rest*}"),
            (("/a/{rest*}", "/{x}/b"), "/a/b", "/a/{rest*}"),
            (("/a/b", "/{rest*}"), "/a/c", "/{rest*}"),
            (("/u/{id}/{what}", "/u/{uid}/me"), "/u/5/me", "/u/{uid}/me"),
            (("/u/{id}/{what}", "/u/{uid}/me"), "/u/5/you", "/u/{id}/{what}"),
        ],
    )
    def test_the_template_with_more_literal_text_wins(
        self, texts: tuple[str, ...], path: str, winner: str
    ) -> None:
        for order in (texts, texts[::-1]):
            found = router(*order).find(path)
            assert found is not None
            assert found[0] == winner

    def test_captures_have_the_names_of_the_template_that_is_found(self) -> None:
        routes = router("/u/{id}", "/u/{uid}/me", "/u/{user}/{what}")
        assert routes.find("/u/5") == ("/u/{id}", {"id": "5"})
        assert routes.find("/u/5/me") == ("/u/{uid}/me", {"uid": "5"})
        assert routes.find("/u/5/it") == ("/u/{user}/{what}", {"user": "5", "what": "it"})

    def test_captures_of_a_failed_branch_are_dropped(self) -> None:
        assert router("/v{x}/{y}/z", "/{a}/{b}/c").find("/v1/2/c") == (
            "/{a}/{b}/c",
            {"a": "v1", "b": "2"},
        )


class TestBuilding:
    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            (("/a", "/a"), "'/a' matches the same paths as '/a'"),
            (("/{x}", "/{y}"), "'/{y}' matches the same paths as '/{x}'"),
            (("/a{x}b/c", "/a{y}b/c"), "'/a{y}b/c' matches the same paths as '/a{x}b/c'"),
            (("/{x*}", "/{y*}"), "'/{y*}' matches the same paths as '/{x*}'"),
        ],
    )
    def test_two_templates_of_one_shape_are_refused(
        self, texts: tuple[str, ...], message: str
    ) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            router(*texts)

    @pytest.mark.parametrize("texts", [("/{x}", "/{x*}"), ("/a{x}", "/{x}a"), ("/a", "/{x}")])
    def test_templates_of_different_shapes_are_accepted(self, texts: tuple[str, ...]) -> None:
        assert len(router(*texts)) == 2

    def test_a_router_without_routes_finds_nothing(self) -> None:
        assert len(router()) == 0
        assert router().find("/") is None

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "a path starts with a slash; write '/'"),
            ("users", "a path starts with a slash; write '/users'"),
            ("/{x}{y}", "segment '{x}{y}' has several captures; a segment can have one"),
            ("/{x}/{x}", "'{x}' occurs twice; every capture needs a different name"),
            ("/.", "dot segments never match; remove them"),
            ("/a/../b", "dot segments never match; remove them"),
            ("/%2e%2E", "dot segments never match; remove them"),
            ("/{x*}/b", "'{x*}' captures the rest of the path; it must be the whole last segment"),
            (
                "/a/{x*}/",
                ("'{x*}' matches paths with and without a final slash; remove the slash behind it"),
            ),
            ("/a{x*}", "'a{x*}' captures the rest of the path; it must be the whole last segment"),
            ("/{x*}b", "'{x*}b' captures the rest of the path; it must be the whole last segment"),
        ],
    )
    def test_an_unusable_template_is_refused(self, text: str, message: str) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            parse_template(text)

    @pytest.mark.parametrize(
        "segment",
        [
            *("a b", "a?b", "a#b", "é", "a\\b", "a%", "a%2", "a%2g", "a\n", "a[b]", '"a"', "a|b"),
            *("{", "}", "{}", "{1a}", "{a b}", "{a**}", "{*}", "{a}}", "{{a}", "{é}", "a%{x}20"),
        ],
    )
    def test_invalid_characters_in_a_template_are_refused(self, segment: str) -> None:
        told = (
            f"segment '{segment}' has a character that is invalid in a path (RFC 3986, 3.3);"
            " percent-encode it, and write captures as '{name}'"
        )
        with pytest.raises(ValueError, match=rf"^{re.escape(told)}$"):
            parse_template(f"/x/{segment}")

    def test_a_parsed_template_contains_its_segments_and_captures(self) -> None:
        assert parse_template("/v{version}/a%2Fb/{rest*}") == Template(
            "/v{version}/a%2Fb/{rest*}",
            (Segment("v", "version"), Segment("a%2Fb"), Segment("", "rest", tail=True)),
            ("version", "rest"),
        )


class TestFilling:
    @pytest.mark.parametrize(
        ("text", "captures", "path"),
        [
            ("/person", {"version": "2"}, "/person"),
            ("/v{version}/person", {"version": "2", "id": "7"}, "/v2/person"),
            ("/a/{x}.json", {"x": "%2F"}, "/a/%2F.json"),
            ("/b/{rest*}", {"rest": "a/b"}, "/b/a/b"),
            ("/b-{rest}", {"rest": "a/b"}, "/b-a/b"),
            ("/b/{rest*}", {"rest": "a/"}, "/b/a/"),
            ("/b/{rest*}", {"rest": ""}, "/b/"),
            ("/b/{rest}/", {"rest": "a"}, "/b/a/"),
            ("/b/{rest}/", {"rest": "a/"}, "/b/a/"),
            ("/b/{rest}/", {"rest": ""}, "/b/"),
            ("/b//{x}", {"x": "a"}, "/b//a"),
        ],
    )
    def test_captures_are_filled_in_raw(
        self, text: str, captures: dict[str, str], path: str
    ) -> None:
        assert parse_template(text).fill(captures) == path

    def test_a_missing_capture_is_an_error(self) -> None:
        with pytest.raises(KeyError, match="id"):
            parse_template("/users/{id}").fill({"version": "1"})


letters = st.text(st.sampled_from("abv12.~%;"), max_size=3).filter(
    lambda text: "%" not in text or re.fullmatch(r"(?:[^%]|%[12a-b]{2})*", text) is not None
)
dots = re.compile(r"(?:\.|%2[Ee]){1,2}")
taken = st.text(st.sampled_from("abv12.%{}é"), min_size=1, max_size=4)


@st.composite
def templates(draw: st.DrawFn, literals: st.SearchStrategy[str] = letters) -> str:
    parts = []
    for index in range(draw(st.integers(1, 4))):
        literal = draw(literals)
        match draw(st.integers(0, 2)):
            case 0 if not dots.fullmatch(literal):
                parts.append(literal)
            case 1:
                parts.append(f"{literal}{{c{index}}}{draw(literals)}")
            case _:
                parts.append(f"{{c{index}}}")
    if draw(st.integers(0, 3)) == 0:
        parts.append("{rest*}")
    return "/" + "/".join(parts)


@st.composite
def filled(draw: st.DrawFn) -> tuple[str, dict[str, str], str]:
    text = draw(templates())
    template = parse_template(text)
    captures = {name: draw(taken) for name in template.captures}
    if "rest" in captures:
        captures["rest"] = "/".join(draw(st.lists(taken, min_size=1, max_size=3)))
    path = template.fill(captures)
    values = "/".join(captures.values()).split("/")
    assume(not any(dots.fullmatch(part) for part in (*path.split("/"), *values)))
    return text, captures, path


@LAW
@given(filled())
def test_a_filled_template_is_found_with_its_captures(
    made: tuple[str, dict[str, str], str],
) -> None:
    text, captures, path = made
    assert router(text).find(path) == (text, captures)


@LAW
@given(filled())
def test_a_literal_template_precedes_any_template_with_captures(
    made: tuple[str, dict[str, str], str],
) -> None:
    text, captures, path = made
    assume(captures)
    literal = Template(path, tuple(Segment(part) for part in path[1:].split("/")), ())
    found = Router([(parse_template(text), "captures"), (literal, "literal")]).find(path)
    assert found == ("literal", {})


def pattern(text: str) -> re.Pattern[str]:
    """Return the meaning of a template as a regular expression."""
    segments = []
    for part in text[1:].split("/"):
        if part == "{rest*}":
            segments.append("(?:(?:/(?!(?:\\.|%2[Ee]){1,2}(?:/|\\Z))[^/]+)+/?|/)")
            continue
        before, brace, after = part.partition("{")
        if not brace:
            segments.append("/" + re.escape(before))
            continue
        after = after.partition("}")[2]
        segments.append(
            f"/(?!(?:\\.|%2[Ee]){{1,2}}(?:/|\\Z)){re.escape(before)}"
            f"(?!(?:\\.|%2[Ee]){{1,2}}{re.escape(after)}(?:/|\\Z))[^/]+{re.escape(after)}"
        )
    return re.compile("".join(segments) + r"\Z", re.DOTALL)


def precedence(text: str) -> list[tuple[int, int, int]]:
    """Return the sort key in which templates are tried, segment by segment."""
    order = []
    for part in text[1:].split("/"):
        before, brace, after = part.partition("{")
        after = after.partition("}")[2]
        kind = 2 if part == "{rest*}" else 1 if brace else 0
        order.append((kind, -len(before) - len(after), -len(before)) if kind else (0, 0, 0))
    return order


few = st.sampled_from(["", "a", "b", "ab"])


@LAW
@given(
    st.lists(templates(few), min_size=1, max_size=8, unique_by=lambda t: parse_template(t).shape),
    st.lists(st.sampled_from(["a", "b", "ab", "ba", "aba", "abb", "", "..", "a.."]), max_size=4),
)
def test_the_router_agrees_with_trying_every_template(texts: list[str], parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    fitting = [text for text in texts if pattern(text).match(path)]
    found = router(*texts).find(path)
    if not fitting:
        assert found is None
        return
    best = min(fitting, key=precedence)
    literal = [text for text in fitting if "{" not in text]
    assert found is not None
    assert found[0] == (literal or [best])[0]
    assert parse_template(found[0]).fill(found[1]) == path
    assert router(*texts[::-1]).find(path) == found


@LAW
@given(st.text() | st.text(st.sampled_from("/v1person.%2e{}*~users")))
def test_any_path_can_be_looked_up(path: str) -> None:
    found = router(*SHIPPED, "/files/{rest*}").find(path)
    if found is not None:
        assert parse_template(found[0]).fill(found[1]) == path


@LAW
@given(st.text() | st.text(st.sampled_from("/{}*v.%2ea")))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        template = parse_template(text)
    except ValueError:
        return
    stars = {part.capture: "*" * part.tail for part in template.segments}
    captures = {name: f"{{{name}{stars[name]}}}" for name in template.captures}
    assert template.fill(captures) == template.text == text


def test_a_router_iterates_over_its_targets() -> None:
    assert list(router("/b", "/a/{c}", "/a")) == ["/b", "/a/{c}", "/a"]


def test_recent_lookups_are_cached_within_a_memory_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def search(root: Any, exact: Any, path: str) -> Any:
        searched.append(path)
        return original(root, exact, path)

    original = routing._search
    monkeypatch.setattr(routing, "_search", search)
    router = Router([(parse_template("/users/{id}"), "users")])
    paths = [f"/users/{number}" for number in range(5000)]
    for _ in range(3):
        for path in paths:
            assert router.find(path) == ("users", {"id": path[7:]})
    assert searched == paths
    for number in range(20_000):  # more than fit into the cache
        router.find(f"/other/{number}")
    held = router._cache
    assert 5000 < len(held) + len(held._older) < 2 * routing._CACHE_BYTES / routing._ENTRY_BYTES
    searched.clear()
    router.find("/other/19999")
    router.find("/users/1")
    router.find("/users/" + "1" * 300)
    router.find("/users/" + "1" * 300)  # too long for the cache
    assert searched == ["/users/1", *["/users/" + "1" * 300] * 2]
    older = next(iter(held._older))
    searched.clear()
    router.find(older)
    assert older in held
    assert not searched
    for number in range(20_000):  # strings that take more memory
        router.find(f"/é/{number:0200}")
    assert len(held) + len(held._older) < 5000
