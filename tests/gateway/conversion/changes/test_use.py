"""GroupUse: the changes of a group at several locations, and recursive groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change, GroupUse
from gateway.conversion.changes.rename import rename
from gateway.conversion.field_path import parse_scopes
from tests.gateway.conversion.documents import (
    SEALED,
    Json,
    default_at,
    down,
    fails,
    join_at,
    seal,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW

GROUPS: dict[str, tuple[Change, ...]] = {
    "item": (join_at("first last", "name"), default_at("n.new", 1))
}


def use(group: str, *places: str) -> Change:
    return GroupUse(group, tuple(map(parse_scopes, places)) or ((),), GROUPS).compile()


GROUPS["node"] = (
    rename((), ("title",), ("name",)),
    rename((), ("children",), ("kids",)),
    use("node", "children[]", "next"),
)
NEWER: Json = {"first": "A", "last": "B", "n": {"new": 1}}
OLDER: Json = {"name": "A B"}


@pytest.mark.parametrize(
    ("places", "newer", "older"),
    [
        ([], NEWER, OLDER),
        (["a.b"], {"a": {"b": NEWER}, "x": 1}, {"a": {"b": OLDER}, "x": 1}),
        (["i[]"], {"i": [NEWER, None, NEWER]}, {"i": [OLDER, None, OLDER]}),
        (["m.*", "o"], {"m": {"x": NEWER}, "o": None}, {"m": {"x": OLDER}, "o": None}),
        (["i[].o"], {"i": [{"o": NEWER}, {}]}, {"i": [{"o": OLDER}, {}]}),
        (["o"], {"x": 1}, {"x": 1}),
    ],
)
def test_the_changes_of_a_group_are_applied_at_each_location(
    places: list[str], newer: Json, older: Json
) -> None:
    change = use("item", *places)
    with untouched(newer, older):
        assert down(change, newer) == older
        assert up(change, older) == newer
    assert unsealed(down(change, seal(newer), SEALED)) == older
    assert unsealed(up(change, seal(older), SEALED)) == newer


def test_a_use_touches_the_first_keys_of_its_locations() -> None:
    assert use("item").touches == ((),)
    assert use("item", "a.b[]", "c.*").touches == (("a", "b"), ("c",))
    group = use("item").group
    assert group is not None
    assert group.changes == GROUPS["item"]


def nodes(title: str, children: str) -> st.SearchStrategy[Json]:
    return st.recursive(
        st.fixed_dictionaries({title: st.text(max_size=2)}),
        lambda inner: st.fixed_dictionaries(
            {title: st.text(max_size=2)},
            optional={children: st.lists(inner | st.none(), max_size=2) | st.none(), "next": inner},
        ),
    )


@LAW
@given(nodes("title", "children"), nodes("name", "kids"))
def test_a_recursive_group_survives_a_round_trip(newer: Json, older: Json) -> None:
    assert up(use("node"), down(use("node"), newer)) == newer
    assert down(use("node"), up(use("node"), older)) == older
    assert '"title"' not in str(down(use("node"), newer)).replace("'", '"')


def test_the_error_of_a_group_names_its_full_location() -> None:
    with fails("/tree/children/1/children", "expected an array, found a string"):
        down(use("node", "tree"), {"tree": {"children": [{}, {"children": "x"}]}})


def test_a_group_adds_defaults_in_a_patch_only_inside_arrays() -> None:
    """A PATCH omits unchanged fields, but its arrays are complete."""
    older: Json = {"o": OLDER, "i": [OLDER]}
    without: Json = {"first": "A", "last": "B"}
    assert up(use("item", "o").for_patch(), older) == {"o": without, "i": [OLDER]}
    assert up(use("item", "i[]").for_patch(), older) == {"o": OLDER, "i": [NEWER]}
    mixed = use("item", "o", "i[]").for_patch()
    assert up(mixed, older) == {"o": without, "i": [NEWER]}
