"""Chains: links between neighbours, composed, walked either way, element by element."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversion.chain import Conversion, Direction, Link, compose
from gateway.core.conversion.changes import Change, Default, Inverse, Join
from gateway.core.conversion.document import Unconvertible, as_is
from gateway.core.version import Version
from tests.gateway.core.conversion.documents import Json, jsons, opened, seal, unsealed, untouched
from tests.gateway.core.world import LAW

V1, V2, V3, V9 = LADDER = tuple(map(Version, (1, 2, 3, 9)))

# 1 to 2 splits a text, 2 to 3 adds fields, 3 to 9 joins texts.
SPLIT = Join((), (("name", "first"), ("name", "last")), ("name",), " ")
TITLE = Default((), ("name", "title"), "")
FLAG = Default((), ("flag",), True)
FULL = Inverse(Join((), (("given",), ("family",)), ("full",), "/"))
LINKS = {
    V1: Link(V1, V2, (SPLIT,)),
    V2: Link(V2, V3, (TITLE, FLAG), frozenset({404, 422})),
    V3: Link(V3, V9, (FULL,), frozenset({422})),
}
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
WAYS = [(source, target) for source in LADDER for target in LADDER if source != target]
EVERY_WAY = pytest.mark.parametrize(
    ("source", "target"), WAYS, ids=[f"{source}-{target}" for source, target in WAYS]
)


class TestCompose:
    """Every pair of versions, through every link between them."""

    @EVERY_WAY
    def test_a_document_goes_all_the_way(self, source: Version, target: Version) -> None:
        document = DOCUMENTS[source]
        with untouched(document):
            assert compose(LADDER, LINKS, source, target).convert(document) == DOCUMENTS[target]

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
    def test_links_are_walked_in_order(
        self, source: Version, target: Version, direction: Direction, links: list[Version]
    ) -> None:
        expected = Conversion(tuple(LINKS[older] for older in links), direction)
        assert compose(LADDER, LINKS, source, target) == expected

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
    def test_a_link_that_is_not_declared_is_named(
        self,
        declared: tuple[Version, ...],
        source: Version,
        target: Version,
        missing: tuple[Version, Version],
    ) -> None:
        links = {older: LINKS[older] for older in declared}
        with pytest.raises(LookupError) as error:
            compose(LADDER, links, source, target)
        assert error.value.args == missing

    def test_only_the_links_on_the_way_are_needed(self) -> None:
        assert compose(LADDER, {V2: LINKS[V2]}, V2, V3).links == (LINKS[V2],)

    @EVERY_WAY
    def test_the_way_and_back(self, source: Version, target: Version) -> None:
        there = compose(LADDER, LINKS, source, target)
        back = compose(LADDER, LINKS, target, source)
        assert back.convert(there.convert(DOCUMENTS[source])) == DOCUMENTS[source]


class TestLink:
    """Changes in declared order upwards, in reverse downwards."""

    LINK = Link(
        V1,
        V2,
        (
            Join((), (("a",), ("b",)), ("ab",), "-"),
            Join((), (("b", "x"), ("b", "y")), ("b",), "+"),
        ),
    )

    def test_upwards(self) -> None:
        assert self.LINK.walk({"ab": "1-2+3"}, Direction.UP, as_is) == {
            "a": "1",
            "b": {"x": "2", "y": "3"},
        }

    def test_downwards(self) -> None:
        newer = {"a": "1", "b": {"x": "2", "y": "3"}}
        assert self.LINK.walk(newer, Direction.DOWN, as_is) == {"ab": "1-2+3"}

    @pytest.mark.parametrize("document", [{"name": 1}, [], "x", None, 7])
    @pytest.mark.parametrize("direction", Direction)
    def test_without_changes_two_versions_are_the_same(
        self, document: Json, direction: Direction
    ) -> None:
        assert Link(V1, V2, ()).walk(document, direction, as_is) is document
        assert Conversion((Link(V1, V2, ()),), direction).convert(document) == document


class TestArrays:
    """An array at the root is the array of its converted elements."""

    UP = compose(LADDER, LINKS, V1, V9)

    @pytest.mark.parametrize(
        ("document", "expected"),
        [
            ([], []),
            ([DOCUMENTS[V1]], [DOCUMENTS[V9]]),
            ([[DOCUMENTS[V1]], [], DOCUMENTS[V1]], [[DOCUMENTS[V9]], [], DOCUMENTS[V9]]),
        ],
    )
    def test_converted(self, document: Json, expected: Json) -> None:
        with untouched(document):
            assert self.UP.convert(document) == expected
            assert unsealed(self.UP.convert(seal(document), opened)) == expected

    @pytest.mark.parametrize(
        ("document", "pointer", "reason"),
        [
            (None, "", "expected an object, found null"),
            ("x", "", "expected an object, found a string"),
            (0, "", "expected an object, found a number"),
            ([None], "/0", "expected an object, found null"),
            ([{}, 7], "/1", "expected an object, found a number"),
            ([{}, [{}, True]], "/1/1", "expected an object, found a boolean"),
            ([[{"name": 7}]], "/0/0/name", "expected a string, found a number"),
        ],
    )
    def test_refused_as_a_whole(self, document: Json, pointer: str, reason: str) -> None:
        for value, opener in ((document, as_is), (seal(document), opened)):
            with untouched(document), pytest.raises(Unconvertible) as error:
                self.UP.convert(value, opener)
            assert (error.value.pointer, error.value.reason) == (pointer, reason)


class TestStatuses:
    """Success is what the declarations describe; errors only where a declaration names them."""

    DOWN = compose(LADDER, LINKS, V9, V1)

    @pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
    def test_success_is_converted(self, status: int) -> None:
        assert self.DOWN.for_status(status) is self.DOWN

    @pytest.mark.parametrize("status", [100, 101, 199, 300, 301, 304, 399, 400, 405, 500, 502, 599])
    def test_all_else_passes(self, status: int) -> None:
        assert self.DOWN.for_status(status) is None

    @pytest.mark.parametrize(("status", "links"), [(422, [V3, V2]), (404, [V2])])
    def test_but_what_a_declaration_names(self, status: int, links: list[Version]) -> None:
        expected = Conversion(tuple(LINKS[older] for older in links), Direction.DOWN)
        assert self.DOWN.for_status(status) == expected

    def test_that_holds_upwards_too(self) -> None:
        expected = Conversion((LINKS[V2], LINKS[V3]), Direction.UP)
        assert compose(LADDER, LINKS, V1, V9).for_status(422) == expected


# Laws -----------------------------------------------------------------------------------------

CHANGES: list[Change] = [
    Join((), (("a", "x"), ("a", "y")), ("a",), " "),
    Join((), (("x",), ("y",)), ("b",), "-"),
    Inverse(Join((), (("a",), ("b",)), ("c",), "-")),
    Join((("i",),), (("x",), ("y",)), ("b",), "-"),
    Default((), ("z",), [1]),
    Default((), ("a", "z"), None),
    Default((("i",),), ("z",), {"a": 1}),
]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Version], dict[Version, Link]]:
    """A ladder of two to five versions, with random links between them."""
    ladder = sorted(map(Version, draw(st.sets(st.integers(0, 20), min_size=2, max_size=5))))
    changes = st.lists(st.sampled_from(CHANGES), max_size=2).map(tuple)
    return ladder, {older: Link(older, newer, draw(changes)) for older, newer in pairwise(ladder)}


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


def outcome(conversion: Conversion, document: Json) -> Json:
    """Return the converted document, or where and why it is none."""
    try:
        return conversion.convert(document)
    except Unconvertible as error:
        return error.pointer, error.reason


@LAW
@given(worlds(), persons, st.data())
def test_a_chain_is_its_links_one_by_one(
    world: tuple[list[Version], dict[Version, Link]], document: Json, data: st.DataObject
) -> None:
    ladder, links = world
    source, target = data.draw(st.permutations(ladder))[:2]
    step = 1 if source < target else -1
    stops = ladder[ladder.index(source) :: step]
    stops = stops[: stops.index(target) + 1]
    expected = document
    for here, there in pairwise(stops):
        expected = outcome(compose(ladder, links, here, there), expected)
        if isinstance(expected, tuple):
            break
    assert json.dumps(outcome(compose(ladder, links, source, target), document)) == json.dumps(
        expected
    )


@LAW
@given(worlds(), st.lists(persons, max_size=3), st.booleans())
def test_an_array_is_converted_as_the_array_of_its_converted_elements(
    world: tuple[list[Version], dict[Version, Link]], document: list[Json], upwards: bool
) -> None:
    ladder, links = world
    ends = (ladder[0], ladder[-1]) if upwards else (ladder[-1], ladder[0])
    conversion = compose(ladder, links, *ends)
    with untouched(document):
        expected = [outcome(conversion, element) for element in document]
        bad = next((index for index, one in enumerate(expected) if isinstance(one, tuple)), None)
        if bad is None:
            assert json.dumps(conversion.convert(document)) == json.dumps(expected)
        else:
            pointer, reason = expected[bad]
            assert outcome(conversion, document) == (f"/{bad}{pointer}", reason)


@LAW
@given(worlds(), persons | st.lists(persons, max_size=2) | jsons, st.booleans())
def test_a_sealed_document_is_converted_to_the_same(
    world: tuple[list[Version], dict[Version, Link]], document: Json, upwards: bool
) -> None:
    ladder, links = world
    ends = (ladder[0], ladder[-1]) if upwards else (ladder[-1], ladder[0])
    conversion = compose(ladder, links, *ends)
    try:
        found = unsealed(conversion.convert(seal(document), opened))
    except Unconvertible as error:
        found = error.pointer, error.reason
    assert json.dumps(found) == json.dumps(outcome(conversion, document))
