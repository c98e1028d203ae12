"""Chains: the composition of links in both directions, and the links that apply to a message."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion, Conversion, compose
from gateway.conversion.change import Change, inverse
from gateway.conversion.changes.default import add_parameter, default
from gateway.conversion.changes.join import join
from gateway.conversion.changes.map import Unknown, map_words
from gateway.conversion.changes.python import call_python
from gateway.conversion.changes.rename import rename, rename_parameter
from gateway.conversion.changes.to_header import QueryPlace, carry
from gateway.conversion.changes.type import retype
from gateway.conversion.changes.wrap import wrap
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN
from gateway.conversion.scalars import Type
from gateway.conversion.version_step import (
    BOTH,
    Direction,
    MessageKind,
    VersionLink,
    event_names,
    making,
    version_steps_of,
)
from gateway.versions.version import Version
from tests.gateway.conversion.documents import SEALED, Json, jsons, seal, unsealed, untouched
from tests.gateway.world import LAW

V1, V2, V3, V9 = LADDER = tuple(Version(each, str(each)) for each in (1, 2, 3, 9))

# 1 to 2 splits a string, 2 to 3 adds fields, 3 to 9 joins strings.
SPLIT = join((), (("name", "first"), ("name", "last")), ("name",), " ")
TITLE = default((), ("name", "title"), "")
FLAG = default((), ("flag",), True)
FULL = inverse(join((), (("given",), ("family",)), ("full",), "/"))
LINKS = {
    V1: VersionLink(V1, V2, (SPLIT,)),
    V2: VersionLink(V2, V3, (TITLE, FLAG), frozenset({404, 422})),
    V3: VersionLink(V3, V9, (FULL,), frozenset({422})),
}
DECLARED = {older: [link] for older, link in LINKS.items()}
DOCUMENTS = {
    V1: {"name": "Bob Charlie", "given": "B", "family": "C"},
    V2: {"name": {"first": "Bob", "last": "Charlie"}, "given": "B", "family": "C"},
    V3: {
        "name": {"first": "Bob", "last": "Charlie", "title": ""},
        "given": "B",
        "family": "C",
        "flag": True,
    },
    V9: {"name": {"first": "Bob", "last": "Charlie", "title": ""}, "flag": True, "full": "B/C"},
}


def applied(conversion: BodyConversion | None) -> tuple[VersionLink, ...]:
    return () if conversion is None else conversion.links


def body(conversion: Conversion) -> BodyConversion:
    return BodyConversion(conversion.links, conversion.direction)


class TestCompose:
    @pytest.mark.parametrize(
        ("source", "target", "direction", "links"),
        [
            (V1, V2, Direction.UP, [V1]),
            (V2, V1, Direction.DOWN, [V1]),
            (V1, V9, Direction.UP, [V1, V2, V3]),
            (V9, V1, Direction.DOWN, [V3, V2, V1]),
            (V3, V2, Direction.DOWN, [V2]),
            (V2, V9, Direction.UP, [V2, V3]),
        ],
    )
    def test_compose_returns_the_links_in_the_order_of_the_direction(
        self, source: Version, target: Version, direction: Direction, links: list[Version]
    ) -> None:
        composed = compose(LADDER, DECLARED, source, target)
        assert composed.links == tuple(LINKS[older] for older in links)
        assert composed.direction is direction

    @pytest.mark.parametrize(
        ("declared", "source", "target", "missing"),
        [
            ((), V1, V2, (V1, V2)),
            ((), V9, V1, (V1, V2)),
            ((V1,), V1, V9, (V2, V3)),
            ((V1, V2), V9, V1, (V3, V9)),
            ((V1, V3), V9, V2, (V2, V3)),
        ],
    )
    def test_the_error_for_an_undeclared_link_names_its_two_versions(
        self,
        declared: tuple[Version, ...],
        source: Version,
        target: Version,
        missing: tuple[Version, Version],
    ) -> None:
        links = {older: DECLARED[older] for older in declared}
        with pytest.raises(LookupError) as error:
            compose(LADDER, links, source, target)
        assert error.value.args == missing


class TestArrays:
    UP = compose(LADDER, DECLARED, V1, V9)

    @pytest.mark.parametrize(
        ("document", "expected"),
        [
            ([], []),
            ([DOCUMENTS[V1]], [DOCUMENTS[V9]]),
            ([[DOCUMENTS[V1]], [], DOCUMENTS[V1]], [[DOCUMENTS[V9]], [], DOCUMENTS[V9]]),
            ([None, DOCUMENTS[V1], [None]], [None, DOCUMENTS[V9], [None]]),
            ([1, DOCUMENTS[V1], ["x", True]], [1, DOCUMENTS[V9], ["x", True]]),
            *((scalar, scalar) for scalar in (None, True, 5, "x", [1, 2], [[None], 7])),
        ],
    )
    def test_objects_in_a_body_that_is_an_array_are_converted(
        self, document: Json, expected: Json
    ) -> None:
        with untouched(document):
            assert body(self.UP).convert(document, PLAIN) == expected
            assert unsealed(body(self.UP).convert(seal(document), SEALED)) == expected

    @pytest.mark.parametrize(
        ("document", "pointer", "reason"),
        [([5, [{"name": 7}]], "/1/0/name", "expected a string, found a number")],
    )
    def test_one_invalid_object_in_an_array_fails_the_whole_conversion(
        self, document: Json, pointer: str, reason: str
    ) -> None:
        for value, form in ((document, PLAIN), (seal(document), SEALED)):
            with untouched(document), pytest.raises(ConversionError) as error:
                body(self.UP).convert(value, form)
            assert (error.value.pointer, error.value.reason) == (pointer, reason)


class TestStatuses:
    DOWN = compose(LADDER, DECLARED, V9, V1)

    @pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
    def test_bodies_of_successful_responses_are_converted(self, status: int) -> None:
        assert applied(self.DOWN.for_response("GET", status)) == self.DOWN.links

    @pytest.mark.parametrize("status", [100, 101, 199, 300, 301, 304, 399, 400, 405, 500, 502, 599])
    def test_bodies_of_responses_with_unlisted_error_statuses_are_not_converted(
        self, status: int
    ) -> None:
        assert self.DOWN.for_response("GET", status) is None

    @pytest.mark.parametrize(("status", "links"), [(422, [V3, V2]), (404, [V2])])
    def test_bodies_of_listed_error_statuses_are_converted(
        self, status: int, links: list[Version]
    ) -> None:
        expected = tuple(LINKS[older] for older in links)
        assert applied(self.DOWN.for_response("GET", status)) == expected

    def test_a_response_loses_its_body_if_it_is_a_204_in_a_version_in_between(self) -> None:
        """Links before the 204 have no body to convert. Only later links convert the body."""
        newer = VersionLink(V2, V3, (default((), ("a",), 1),), status={201: 204})
        older = VersionLink(V1, V2, (default((), ("b",), 2),), status={204: 200})
        down = Conversion((newer, older), Direction.DOWN)
        assert applied(down.for_response("POST", 201)) == (older,)
        assert (down.loses_body("POST", 201), down.status("POST", 201)) == (True, 200)
        assert applied(down.for_response("POST", 202)) == (newer, older)
        assert not down.loses_body("POST", 202)
        up = Conversion((older, newer), Direction.UP)
        assert applied(up.for_response("POST", 200)) == (newer,)
        assert up.loses_body("POST", 200)
        told = replace(older, needs_message=True)
        made = Conversion((newer, told), Direction.DOWN).for_response("POST", 201)
        assert applied(made) == (replace(newer, changes=()), told)


class TestScope:
    C1, C2 = default((), ("c1",), 1), default((), ("c2",), 2)

    def test_a_default_is_not_added_to_a_patch_request(self) -> None:
        """A PATCH omits unchanged fields, but its arrays are complete and get defaults."""
        line = default(((("lines",),)), ("tax",), 0)
        gone = inverse(default((), ("old",), 1))
        links = {V1: [VersionLink(V1, V2, (FLAG, line, gone, rename((), ("total",), ("sum",))))]}
        for source, target, sent, arrives in (
            (V1, V2, {"sum": 1, "old": 2}, {"total": 1}),
            (V1, V2, {"lines": [{}]}, {"lines": [{"tax": 0}]}),
            (V2, V1, {"total": 1, "flag": 2}, {"sum": 1}),
        ):
            part = compose(LADDER, links, source, target).for_request("PATCH")
            assert part is not None
            assert part.convert(sent, PLAIN) == arrives
        up = compose(LADDER, links, V1, V2)
        whole = up.for_request("PUT")
        assert whole is not None
        assert whole.convert({}, PLAIN) == {"flag": True}
        answer = up.for_response("PATCH", 200)
        assert answer is not None
        assert answer.convert({}, PLAIN) == {"flag": True}

    def test_a_status_that_no_link_maps_is_unchanged(self) -> None:
        assert (
            Conversion((VersionLink(V1, V2, (self.C1,)),), Direction.UP).status("GET", 201) == 201
        )

    def test_a_link_with_paths_applies_only_at_these_endpoints(self) -> None:
        here = VersionLink(V1, V2, (self.C1,), paths=frozenset({"/a"}))
        everywhere = VersionLink(V1, V2, (self.C2,))
        conversion = Conversion((here, everywhere), Direction.UP)
        assert conversion.at("/a") is conversion
        assert conversion.at("/b").links == (everywhere,)

    def test_a_link_without_body_changes_converts_only_query_and_header_fields(self) -> None:
        link = VersionLink(
            V1, V2, (), query=(rename_parameter("page", "p"),), headers=(add_parameter("N", "1"),)
        )
        up, down = (Conversion((link,), direction) for direction in Direction)
        assert up.for_request("GET") is up.for_response("GET", 200) is None
        assert up.query("GET", "p=1&x") == "page=1&x"
        assert down.query("GET", "page=1&x") == "p=1&x"
        assert up.fields("GET", None, [(b"A", b"b")]) == [(b"A", b"b"), (b"N", b"1")]
        for status in (101, 200, 301, 303, 304, 307):
            assert down.fields("GET", status, [(b"A", b"b"), (b"n", b"2")]) == [(b"A", b"b")]
        fields = [(b"n", b"2")]
        assert down.fields("GET", 404, fields) is fields
        assert Conversion((VersionLink(V1, V2, ()),), Direction.UP).query("GET", "p") == "p"

    def test_links_between_the_same_versions_apply_in_the_order_of_the_direction(self) -> None:
        links = {
            V1: [
                VersionLink(V1, V2, (rename((), ("b",), ("a",)),)),
                VersionLink(V1, V2, (rename((), ("c",), ("b",)),)),
            ]
        }
        assert body(compose(LADDER, links, V1, V2)).convert({"a": 1}, PLAIN) == {"c": 1}
        assert body(compose(LADDER, links, V2, V1)).convert({"c": 1}, PLAIN) == {"a": 1}


CHANGES: list[Change] = [
    join((), (("a", "x"), ("a", "y")), ("a",), " "),
    join((), (("x",), ("y",)), ("b",), "-"),
    inverse(join((), (("a",), ("b",)), ("c",), "-")),
    join((("i",),), (("x",), ("y",)), ("b",), "-"),
    default((), ("z",), [1]),
    default((), ("a", "z"), None),
    default((("i",),), ("z",), {"a": 1}),
    rename((), ("r",), ("a",)),
    rename((), ("a", "y"), ("c",)),
    rename((("i",),), ("r",), ("b",)),
    map_words((), ("b",), {"a": "b"}, {"b": "a"}, Unknown.KEEP, Unknown.KEEP),
    map_words((("i",),), ("b",), {"a": "b"}, {"b": "a"}, "-", "-"),
    retype((("i",),), ("y",), Type.NUMBER, Type.TEXT),
    wrap((), ("i",)),
    inverse(wrap((("i",),), ("x",))),
    call_python((), ("c",), json.dumps, json.dumps),
    call_python((), None, lambda document: {"f": document}, lambda document: document),
]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Version], dict[Version, list[VersionLink]]]:
    ascending = [
        Version(each, str(each))
        for each in sorted(draw(st.sets(st.integers(0, 20), min_size=2, max_size=5)))
    ]
    changes = st.lists(st.sampled_from(CHANGES), max_size=4).map(tuple)
    return ascending, {
        older: [VersionLink(older, newer, draw(changes))] for older, newer in pairwise(ascending)
    }


strings = st.text(st.sampled_from("ab -"), max_size=4)
persons: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {},
    optional={
        "a": strings | st.fixed_dictionaries({}, optional={"x": strings, "y": strings}),
        "b": strings,
        "c": strings | st.none(),
        "x": strings,
        "y": strings | st.integers(),
        "i": st.lists(
            st.fixed_dictionaries({}, optional={"b": strings, "x": strings, "y": strings}),
            max_size=2,
        ),
        "u": jsons,
    },
)


def outcome(conversion: BodyConversion, document: Json) -> Json:
    try:
        return conversion.convert(document, PLAIN)
    except ConversionError as error:
        return error.pointer, error.reason


@LAW
@given(worlds(), persons, st.data())
def test_a_chain_gives_the_same_result_as_its_changes_applied_one_by_one(
    world: tuple[list[Version], dict[Version, list[VersionLink]]],
    document: Json,
    data: st.DataObject,
) -> None:
    ascending, links = world
    source, target = data.draw(st.permutations(ascending))[:2]
    step = 1 if source < target else -1
    stops = ascending[ascending.index(source) :: step]
    stops = stops[: stops.index(target) + 1]
    expected = document
    for here, there in pairwise(stops):
        for link in compose(ascending, links, here, there).links:
            for change in link.changes if step > 0 else reversed(link.changes):
                if not isinstance(expected, tuple):
                    expected = outcome(_alone(change, step > 0), expected)
    found = outcome(body(compose(ascending, links, source, target)), document)
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)  # with several errors, either may be reported
    else:
        assert json.dumps(found) == json.dumps(expected)


def _alone(change: Change, upwards: bool) -> BodyConversion:
    return BodyConversion(
        (VersionLink(V1, V2, (change,)),), Direction.UP if upwards else Direction.DOWN
    )


@LAW
@given(worlds(), persons | st.lists(persons, max_size=2) | jsons, st.booleans())
def test_a_conversion_gives_the_same_result_for_sealed_and_parsed_documents(
    world: tuple[list[Version], dict[Version, list[VersionLink]]], document: Json, upwards: bool
) -> None:
    ascending, links = world
    ends = (ascending[0], ascending[-1]) if upwards else (ascending[-1], ascending[0])
    conversion = body(compose(ascending, links, *ends))
    try:
        found = unsealed(conversion.convert(seal(document), SEALED))
    except ConversionError as error:
        found = error.pointer, error.reason
    assert json.dumps(found) == json.dumps(outcome(conversion, document))


@pytest.mark.parametrize(
    ("limits", "expected"), [((None, None), None), ((2.0, None), 2.0), ((2.0, 0.5), 2.5)]
)
def test_the_timeout_of_a_conversion_is_the_sum_of_all_link_timeouts(
    limits: tuple[float | None, ...], expected: float | None
) -> None:
    links = (
        VersionLink(Version(1, "1"), Version(2, "2"), (rename((), ("a",), ("b",)),), timeout=limit)
        for limit in limits
    )
    assert BodyConversion(tuple(links), Direction.UP).timeout == expected


REQUESTS = frozenset({MessageKind.REQUEST})


@pytest.mark.parametrize(
    ("on", "statuses", "applied"),
    [
        (BOTH, frozenset(), [None, 200, 299]),
        (REQUESTS, frozenset(), [None]),
        (frozenset({MessageKind.ERROR}), frozenset({404}), [404]),
        (BOTH, frozenset({300, 404}), [None, 200, 299, 300, 404]),
    ],
)
def test_a_link_applies_only_to_its_methods_message_kinds_and_statuses(
    on: frozenset[MessageKind], statuses: frozenset[int], applied: list[int | None]
) -> None:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (), statuses, on, frozenset({"GET"}))
    every = (None, 200, 299, 300, 404)
    assert [status for status in every if link.applies("GET", status)] == applied
    assert not any(link.applies("PUT", status) for status in every)


def test_event_names_are_mapped_through_all_links_in_both_directions() -> None:
    first = VersionLink(Version(1, "1"), Version(2, "2"), (), events={"b": "a", "c": "a"})
    second = VersionLink(Version(2, "2"), Version(3, "3"), (), events={"d": "b"})
    assert first.changes_bodies
    down = event_names([second, first], Direction.DOWN)
    up = event_names([first, second], Direction.UP)
    assert down is not None
    assert up is not None
    assert [down(name) for name in "dcx"] == ["a", "a", "x"]
    assert [up(name) for name in "acx"] == ["d", "c", "x"]
    assert event_names([VersionLink(Version(1, "1"), Version(2, "2"), ())], Direction.UP) is None


V1, V2, V3, V4 = (Version(each, str(each)) for each in (1, 2, 3, 4))


def test_a_missing_body_is_created_by_the_first_link_with_a_body_and_converted_by_later_links() -> (
    None
):
    flag = default((), ("flag",), 1)
    moved = carry(("dry",), QueryPlace("dry"))
    links = (
        VersionLink(V1, V2, (flag, moved)),
        VersionLink(V2, V3, (), body_in_newer=True),
        VersionLink(V2, V3, (flag,)),
        VersionLink(V2, V3, (flag,), on=frozenset({MessageKind.RESPONSE})),
        VersionLink(V3, V4, (flag,)),
    )
    version_steps = list(version_steps_of(links, Direction.UP))
    for patch, last in ((False, flag), (True, flag.for_patch())):
        made = [link.changes for link in making(version_steps, newer=True, patch=patch)]
        assert made == [(moved,), (), (flag,), (last,)]
    # No link creates a body in a downgrade.
    back = list(version_steps_of(links[::-1], Direction.DOWN))
    assert [link.changes for link in making(back, newer=False, patch=False)] == [
        (),
        (),
        (),
        (moved,),
    ]
