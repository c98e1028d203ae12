"""One endpoint: what chooses the version there, what is let through, what is asked for."""

import pytest

from gateway.routing.snapshot import Endpoint
from gateway.rules.load import check
from gateway.versions.mechanisms.accept import AcceptReader
from gateway.versions.mechanisms.header import HeaderReader
from gateway.versions.mechanisms.path import PathReader
from gateway.versions.mechanisms.query import QueryReader
from gateway.versions.reader import Reader
from gateway.versions.version import Version
from tests.gateway.rules.rules import RULES, edited, loaded


def endpoint(path: str, old: str = "", new: str = "") -> Endpoint:
    """Return the endpoint that a path leads to, in rules with one place written otherwise."""
    found = loaded(edited(old, new) if old else RULES).router.find(path)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("version", "readers", "vary"),
    [
        ("{ in: query, name: v }", [QueryReader("v")], ()),
        ("{ in: header, name: X-V }", [HeaderReader("X-V")], ("X-V",)),
        ("{ in: accept, media_type: 'a/b.v{version}' }", [AcceptReader("a/b.v", "")], ("Accept",)),
        (
            "{ in: accept, media_type: 'App/X{version}+JSON' }",
            [AcceptReader("app/x", "+json")],
            ("Accept",),
        ),
        (
            (
                "[{ in: header, name: X }, { in: query, name: v },"
                " { in: accept, media_type: 'a/{version}' }]"
            ),
            [HeaderReader("X"), QueryReader("v"), AcceptReader("a/", "")],
            ("X", "Accept"),
        ),
    ],
)
def test_readers(version: str, readers: list[Reader], vary: tuple[str, ...]) -> None:
    built = endpoint("/param", "{ in: query, name: version }", version)
    assert built.selector is not None
    assert list(built.selector.readers) == readers
    assert built.vary == vary


def test_the_path_reader() -> None:
    built = endpoint("/v1/person")
    assert built.selector is not None
    assert built.selector.readers == (PathReader(),)
    assert built.vary == ()


@pytest.mark.parametrize(
    ("version", "default"),
    [
        ("{ in: query, name: v }", None),
        ('{ in: query, name: v, default: "2" }', Version(2)),
        (
            '[{ in: query, name: v, default: "1" }, { in: header, name: V, default: "1" }]',
            Version(1),
        ),
        ('[{ in: query, name: v }, { in: header, name: V, default: "2" }]', Version(2)),
    ],
)
def test_default(version: str, default: Version | None) -> None:
    built = endpoint("/param", "{ in: query, name: version }", version)
    assert built.selector is not None
    assert built.selector.default == default
    assert built.selector.supported == {"1": Version(1), "2": Version(2)}


@pytest.mark.parametrize(
    ("methods", "let_through"),
    [
        ("methods: [POST]", ("POST",)),
        ("methods: [GET]", ("GET", "HEAD")),
        ("methods: [POST, GET, PUT]", ("POST", "GET", "HEAD", "PUT")),
        ("methods: [HEAD, GET]", ("HEAD", "GET")),
        ("methods: [M-SEARCH]", ("M-SEARCH",)),
        ("methods: ~", None),
    ],
)
def test_methods(methods: str, let_through: tuple[str, ...] | None) -> None:
    assert endpoint("/users", "methods: [POST]", methods).methods == let_through


@pytest.mark.parametrize(
    ("old", "new", "path", "asked"),
    [
        pytest.param("", "", "/v1/person", "/person", id="the path of the API"),
        pytest.param("", "", "/users", None, id="the client's own"),
        pytest.param(
            "methods: [POST]", "upstream_path: /u", "/users", "/u", id="the endpoint's own"
        ),
        pytest.param(
            "name: version }",
            "name: version }, upstream_path: '/p/{version}'",
            "/param",
            "/p/{version}",
            id="the endpoint's before the API's",
        ),
        pytest.param(
            "    upstream_path: /person\n",
            "",
            "/v1/person",
            None,
            id="the client's own, with its version",
        ),
    ],
)
def test_upstream_path(old: str, new: str, path: str, asked: str | None) -> None:
    route = endpoint(path, old, new).routes.get(Version(1)) or endpoint(path, old, new).routes[None]
    assert asked == (route.upstream_path and route.upstream_path.text)


def test_a_version_served_via_another_asks_for_the_path_of_that() -> None:
    text = edited("    upstream_path: /person\n", "").replace(
        "{ service: old }\n      ", '{ via: "2" }\n      '
    )
    found = loaded(text).router.find("/v1/person")
    assert found is not None
    old, new = (found[0].routes[Version(number)].upstream_path for number in (1, 2))
    assert old is not None
    assert old.fill({"version": "2"}) == "/v2/person"
    assert new is None


def test_the_answer_is_called_by_the_media_type_that_chose_it() -> None:
    new = 'media_type: "a/b-v{version}+json", response_type: vendor'
    vendor = endpoint("/accept", 'media_type: "a/b-v{version}+json"', new)
    types = [route.content_type for route in vendor.routes.values()]
    assert types == ["a/b-v1+json", "a/b-v2+json"]
    types = [route.content_type for route in endpoint("/accept").routes.values()]
    assert types == [None, None]
    assert [route.content_type for route in endpoint("/header").routes.values()] == [None, None]


def test_links_cannot_lead_back_without_a_part_of_the_path() -> None:
    text = edited(
        "- { path: /users, methods: [POST] }", '- { path: "/{a}/{b}", upstream_path: "/x/{b}" }'
    )
    warnings = check(text.encode(), "gateway.yaml", {})[1]
    (warning,) = (one for one in warnings if "links" in one.text)
    assert (warning.line, warning.place) == (22, "apis.users.endpoints[0].upstream_path")
    assert warning.text == (
        "warning: has not '{a}' of the path of apis.users.endpoints[0], which links of the service"
        " lead back to only from requests that have it"
    )
