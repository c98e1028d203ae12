"""Laws of merged writes, for every change and for chains of changes, and tables of lists.

get-put: writing back what was read changes nothing. put-get: what was written is what is read.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document
from gateway.conversion.merging import (
    BaseDocumentError,
    ListKeys,
    Merge,
    MergeError,
    WriteForm,
    merge,
)
from gateway.conversion.patches import (
    apply_json_patch,
    apply_merge_patch,
    json_patch,
    merge_patch,
    same,
)
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.conversion.changes.test_laws import BODIES, EACH, change_of, like, section
from tests.gateway.conversion.changes.test_laws import same as comparable
from tests.gateway.conversion.documents import default_at, join_at, jsons
from tests.gateway.world import LAW

FEW = settings(LAW, max_examples=8)
PATCHES: list[tuple[WriteForm, Document]] = [
    (WriteForm.MERGE_PATCH, {}),
    (WriteForm.JSON_PATCH, []),
]


def refuse(reason: str, at: object) -> Any:
    raise MergeError(reason)


class Chain:
    """The conversions between a service's version and an older one, with one change per step."""

    def __init__(self, *changes: Change) -> None:
        links = tuple(
            VersionLink(Version(n, str(n)), Version(n + 1, str(n + 1)), (change,))
            for n, change in enumerate(changes, 1)
        )
        self._up = BodyConversion(links, Direction.UP)
        self._down = BodyConversion(links[::-1], Direction.DOWN)

    def up(self, document: Document) -> Document:
        return self._up.convert(document, PLAIN)

    def down(self, document: Document) -> Document:
        return self._down.convert(document, PLAIN)

    def merged(
        self,
        base: Document,
        sent: Document,
        form: WriteForm = WriteForm.DOCUMENT,
        keys: ListKeys | None = None,
    ) -> Merge:
        return merge(base, sent, form, keys or {}, self.down, self.up)


def check_laws(chain: Chain, base: Document, sent: Document, *, loses: bool) -> None:
    try:
        read = chain.down(base)
        chain.up(read)
    except ConversionError:
        with pytest.raises((BaseDocumentError, ConversionError)):
            chain.merged(base, sent)
        return
    assert same(chain.merged(base, read).merged, base, digits=True)
    for form, nothing in PATCHES:
        kept = chain.merged(base, nothing, form)
        assert kept.body(form, is_patch=True) == nothing
    try:
        made = chain.merged(base, sent)
    except ConversionError:
        return  # nothing is written
    # Numbers in texts are compared by value, as in the laws of changes: "7" is read as "7.00".
    assert loses or comparable(chain.down(made.merged)) == comparable(sent)


@EACH
@FEW
@given(st.data())
def test_every_change_holds_both_laws_unless_it_declares_a_loss(
    written: str, newer: str, older: str, data: st.DataObject
) -> None:
    base, sent = data.draw(like(json.loads(newer))), data.draw(like(json.loads(older)))
    loses = any(loss.newer for loss in section(written).losses())
    check_laws(Chain(change_of(written)), base, sent, loses=loses)


CHANGED = [row for row in BODIES if row[1].startswith("{")]


@FEW
@given(st.lists(st.sampled_from(CHANGED), min_size=2, max_size=4), st.data())
def test_random_chains_of_versions_hold_both_laws(
    rows: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """The base and the write have the fields of all examples, and hidden ones."""
    base: dict[str, Any] = {"hidden": {"a": [1]}}
    sent: dict[str, Any] = {}
    for _, newer, older in rows:
        base |= data.draw(like(json.loads(newer)))
        sent |= data.draw(like(json.loads(older)))
    changes = [change_of(written) for written, *_ in rows]
    loses = any(loss.newer for written, *_ in rows for loss in section(written).losses())
    check_laws(Chain(*changes, default_at("hidden", {})), base, sent, loses=loses)


# `flatten` takes all fields of an object, and would also take those that the test adds.
OTHERS = [row for row in BODIES if not row[0].startswith("flatten")]


@pytest.mark.parametrize(("written", "newer", "older"), OTHERS, ids=[row[0] for row in OTHERS])
def test_the_example_of_a_change_can_be_written_over_a_document_with_other_data(
    written: str, newer: str, older: str
) -> None:
    chain = Chain(change_of(written), default_at("hidden", 0))
    base, sent = {**json.loads(newer), "hidden": 7, "x": 1}, {**json.loads(older), "x": 2}
    made = chain.merged(base, sent)
    assert isinstance(made.merged, dict)
    assert (made.merged["hidden"], made.merged["x"]) == (7, 2)


def test_a_write_is_refused_if_the_client_would_read_something_else() -> None:
    """`join` splits a name at its first space, but the service has split it at the second one."""
    chain = Chain(join_at("first last", "name"), default_at("channel", "web"))
    base = {"first": "Mary Ann", "last": "Smith", "channel": "app"}
    kept = chain.merged(base, {"name": "Eve Smith"})
    assert kept.merged == {"first": "Eve", "last": "Smith", "channel": "app"}
    with pytest.raises(MergeError, match="/name: the client would read something else"):
        chain.merged(base, {"name": "Mary Ann Jones"})


A, B, C = ({"id": one, "hidden": one.upper()} for one in "abc")
LINES = Chain(default_at("lines[].hidden", "?"))
BY_ID: ListKeys = {("lines",): (("id",),)}


@pytest.mark.parametrize(
    ("written", "by_key", "by_position"),
    [
        ("abc", [A, B, C], [A, B, C]),
        ("cab", [C, A, B], None),
        ("ab", [A, B], None),
        ("abcd", [A, B, C, {"id": "d", "hidden": "?"}], None),
        ("abd", [A, B, {"id": "d", "hidden": "?"}], None),
        ("aab", None, None),
        ("", [], None),
    ],
)
def test_elements_with_unseen_data_are_matched_by_key_or_stay_at_their_position(
    written: str, by_key: list[Any] | None, by_position: list[Any] | None
) -> None:
    sent = {"lines": [{"id": one} for one in written]}
    for keys, wanted in ((BY_ID, by_key), (None, by_position)):
        if wanted is None:
            with pytest.raises(MergeError):
                LINES.merged({"lines": [A, B, C]}, sent, keys=keys)
        else:
            made = LINES.merged({"lines": [A, B, C]}, sent, keys=keys).merged
            assert made == {"lines": wanted}


def test_a_list_without_unseen_data_is_replaced_as_a_whole() -> None:
    made = LINES.merged({"tags": ["a", "b"], "lines": [A]}, {"tags": ["c"], "lines": [{"id": "a"}]})
    assert made.merged == {"tags": ["c"], "lines": [A]}


def only_seen(document: Any) -> Any:
    """Omit the lines of a new kind, as `unfit: omit` or a `when` does."""
    return {"lines": [one for one in document["lines"] if one["id"] != "new"]}


@pytest.mark.parametrize(
    ("written", "merged"),
    [(["a", "c"], ["a", "new", "c"]), (["c", "a"], ["c", "a", "new"]), (["c"], ["new", "c"])],
)
def test_elements_that_the_client_cannot_see_are_kept(
    written: list[str], merged: list[str]
) -> None:
    base = {"lines": [{"id": one} for one in ("a", "new", "c")]}
    sent = {"lines": [{"id": one} for one in written]}
    made = merge(base, sent, WriteForm.DOCUMENT, BY_ID, only_seen, lambda document: document)
    assert sorted(one["id"] for one in made.merged["lines"]) == sorted(merged)  # type: ignore[index]
    assert only_seen(made.merged) == sent


def test_an_element_with_the_key_of_an_unseen_one_is_refused() -> None:
    base, sent = {"lines": [{"id": "new"}]}, {"lines": [{"id": "new", "n": 1}]}
    with pytest.raises(MergeError, match="the key of one that the client cannot see"):
        merge(base, sent, WriteForm.DOCUMENT, BY_ID, only_seen, lambda document: document)


def test_a_strategic_merge_patch_is_merged_unless_it_has_lists_or_directives() -> None:
    form = WriteForm.STRATEGIC_PATCH
    made = LINES.merged({"n": {"a": 1}, "lines": [A]}, {"n": {"b": 2}}, form)
    assert made.merged == {"n": {"a": 1, "b": 2}, "lines": [A]}
    for refused in ({"lines": [{"id": "b"}]}, {"n": {"$patch": "delete"}}):
        with pytest.raises(MergeError, match="a list or directive"):
            LINES.merged({"lines": [A, B]}, refused, form)


@FEW
@given(jsons, jsons)
def test_a_generated_patch_changes_one_document_to_the_other(before: Any, after: Any) -> None:
    assert same(apply_json_patch(before, json_patch(before, after), refuse), after)
    try:
        patch = merge_patch(before, after, refuse)
    except MergeError:
        assert "null" in json.dumps(after)
        return
    assert same(apply_merge_patch(before, patch), after)


DOCUMENT = {"a": [1, 2], "b": {"c": 3}}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3], "b": {"c": 3}}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2], "b": {"c": 3}}),
        ([{"op": "move", "from": "/b/c", "path": "/d"}], {"a": [1, 2], "b": {}, "d": 3}),
        ([{"op": "replace", "path": "", "value": 1}], 1),
        ([{"op": "test", "path": "/b", "value": {"c": 3.0}}], DOCUMENT),
        ([{"op": "test", "path": "/b/c", "value": "3"}], None),
        ([{"op": "remove", "path": "/b/x"}], None),
        ([{"op": "replace", "path": "/a/2", "value": 1}], None),
        ([{"op": "add", "path": "/a/01", "value": 1}], None),
        ([{"op": "add", "path": "/x/y", "value": 1}], None),
        ([{"op": "move", "from": "/b", "path": "/b/c"}], None),
        ([{"op": "add", "path": "b", "value": 1}], None),
        ([{"op": "add", "path": "/b"}], None),
        ([{"op": "what", "path": "/b"}], None),
        ([{"op": "copy", "from": "/a", "path": "/b"}], None),
        ([{"op": "test", "path": "", "value": DOCUMENT}] * 1001, None),
        ({}, None),
    ],
)
def test_a_json_patch_is_applied_as_rfc_6902_says(patch: Any, result: Any) -> None:
    if result is None:
        with pytest.raises(MergeError):
            apply_json_patch(DOCUMENT, patch, refuse)
    else:
        assert same(apply_json_patch(DOCUMENT, patch, refuse), result)
    assert DOCUMENT == {"a": [1, 2], "b": {"c": 3}}
