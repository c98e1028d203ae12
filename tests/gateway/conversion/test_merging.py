"""Laws of merged writes, for every change and for chains of changes, and tables of lists.

get-put: writing back what was read changes nothing. put-get: what was written is what is read.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document, same
from gateway.conversion.merging import (
    NO_KEY,
    OTHER_READ,
    BaseDocumentError,
    Merge,
    WriteForm,
    merge,
)
from gateway.conversion.patches import (
    NO_IDENTITY,
    ListKeys,
    MergeError,
    apply_json_patch,
    apply_merge_patch,
    json_patch,
    merge_patch,
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


CAUSES = {NO_IDENTITY, NO_KEY, OTHER_READ}


class Writes:
    """Checks the laws for writes over documents, and counts the writes that fit their version."""

    def __init__(self) -> None:
        self.merged = 0
        self.refused: list[MergeError] = []

    def check(self, chain: Chain, base: Document, sent: Document, *, loses: bool) -> None:
        try:
            read = chain.down(base)
            chain.up(read)
        except ConversionError:
            with pytest.raises(BaseDocumentError):
                chain.merged(base, sent)
            return
        assert same(chain.merged(base, read).merged, base, digits=True)
        for form, nothing in PATCHES:
            kept = chain.merged(base, nothing, form)
            assert kept.body(form, is_patch=True) == nothing
        try:
            chain.up(sent)
        except ConversionError as error:
            with pytest.raises(ConversionError, match=re.escape(str(error))):
                chain.merged(base, sent)
            return
        try:
            made = chain.merged(base, sent)
        except MergeError as error:
            self.refused.append(error)
            return
        self.merged += 1
        # Numbers in texts are compared by value, as in the laws of changes: "7" is read as "7.00".
        assert loses or comparable(chain.down(made.merged)) == comparable(sent)

    def check_share(self) -> None:
        """Only lists without a key may cause refusals here, and they are in few documents."""
        assert self.merged >= 3 * len(self.refused)
        assert {error.reason for error in self.refused} <= CAUSES
        assert all(error.place for error in self.refused)


@EACH
def test_every_change_holds_both_laws_unless_it_declares_a_loss(
    written: str, newer: str, older: str
) -> None:
    chain, writes = Chain(change_of(written)), Writes()
    loses = any(loss.newer for loss in section(written).losses())

    @FEW
    @given(like(json.loads(newer)), like(json.loads(older)))
    def check(base: Document, sent: Document) -> None:
        writes.check(chain, base, sent, loses=loses)

    check()
    if not loses:
        writes.check_share()


CHANGED = [row for row in BODIES if row[1].startswith("{")]


def test_random_chains_of_versions_hold_both_laws() -> None:
    """The base and the write have the fields of all examples, and hidden ones."""
    writes = Writes()

    @settings(LAW, max_examples=40)
    @given(st.lists(st.sampled_from(CHANGED), min_size=2, max_size=4), st.data())
    def check(rows: list[tuple[str, str, str]], data: st.DataObject) -> None:
        base: dict[str, Any] = {"hidden": {"a": [1]}}
        sent: dict[str, Any] = {}
        for _, newer, older in rows:
            base |= data.draw(like(json.loads(newer)))
            sent |= data.draw(like(json.loads(older)))
        changes = [change_of(written) for written, *_ in rows]
        loses = any(loss.newer for written, *_ in rows for loss in section(written).losses())
        chain = Chain(*changes, default_at("hidden", {}))
        (Writes() if loses else writes).check(chain, base, sent, loses=loses)

    check()
    writes.check_share()


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


# A Deployment as `kubectl apply` and `kubectl patch --type=strategic` send it: containers are
# merged by name, finalizers are merged texts, and args are replaced.
WEB = {"name": "web", "image": "a:1", "args": ["-v"], "env": [{"name": "A", "value": "1"}]}
LOG = {"name": "log", "image": "b:1"}
POD = {"containers": [WEB, LOG], "finalizers": ["x", "y"], "strategy": {"type": "R", "max": 1}}
POD_KEYS: ListKeys = {
    ("containers",): (("name",),),
    ("containers", 0, "env"): (("name",),),
    ("containers", 0, "args"): (),
}


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        ({"strategy": {"max": 2}}, {"strategy": {"type": "R", "max": 2}}),
        ({"strategy": {"max": None}}, {"strategy": {"type": "R"}}),
        ({"strategy": {"$retainKeys": ["type"], "type": "S"}}, {"strategy": {"type": "S"}}),
        ({"strategy": {"$patch": "replace", "max": 3}}, {"strategy": {"max": 3}}),
        ({"strategy": {"$patch": "delete"}}, {"strategy": {}}),
        (
            {
                "$setElementOrder/containers": [{"name": "web"}, {"name": "log"}],
                "containers": [{"name": "web", "image": "a:2"}],
            },
            {"containers": [{**WEB, "image": "a:2"}, LOG]},
        ),
        (
            {"containers": [{"name": "web", "args": ["-q"], "env": [{"name": "B"}]}]},
            {
                "containers": [
                    {**WEB, "args": ["-q"], "env": [{"name": "A", "value": "1"}, {"name": "B"}]},
                    LOG,
                ]
            },
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "log"}, {"name": "new"}],
                "containers": [{"name": "new"}, {"$patch": "delete", "name": "web"}],
            },
            {"containers": [LOG, {"name": "new"}]},
        ),
        (
            {"containers": [{"$patch": "replace"}, {"name": "new"}]},
            {"containers": [{"name": "new"}]},
        ),
        (
            {"$setElementOrder/containers": [{"name": "log"}, {"name": "web"}]},
            {"containers": [LOG, WEB]},
        ),
        ({"$deleteFromPrimitiveList/finalizers": ["x", "z"]}, {"finalizers": ["y"]}),
        (
            {"$setElementOrder/finalizers": ["z", "x"], "finalizers": ["z"]},
            {"finalizers": ["z", "x", "y"]},
        ),
        ({"finalizers": [{"$patch": "replace"}, "z"]}, {"finalizers": ["z"]}),
        ({"volumes": [{"name": "v"}]}, {"volumes": [{"name": "v"}]}),
        ({"$setElementOrder/volumes": [{"name": "v"}]}, {}),
        ({"$setElementOrder/finalizers": []}, {}),
        ({"containers": [{"name": "web", "$setElementOrder/args": []}]}, {}),
        ({"finalizers": ["z"]}, "/finalizers: the key of this list is unknown"),
        ({"containers": [{"image": "a:2"}]}, "/containers: the key in `writes` does not identify"),
        ({"containers": [{"name": "web", "$patch": "merge"}]}, "neither delete nor replace"),
        ({"$setElementOrder/containers": {"name": "web"}}, "not a list"),
        ({"strategy": {"$retainKeys": "type"}}, "not a list"),
    ],
    ids=str,
)
def test_a_strategic_merge_patch_is_merged_as_kubernetes_does_or_refused_with_the_location(
    patch: Document, changed: dict[str, Any] | str
) -> None:
    """Neither a client of the older version nor its patch has the image's digest."""
    chain = Chain(default_at("containers[].digest", "?"))
    hidden = {"web": {"digest": "1"}, "log": {"digest": "2"}, "new": {"digest": "?"}}

    def digested(document: Any) -> Any:
        found = [{**one, **hidden[one["name"]]} for one in document["containers"]]
        return {**document, "containers": found}

    base, form = digested(POD), WriteForm.STRATEGIC_PATCH
    if isinstance(changed, str):
        with pytest.raises(MergeError, match=changed):
            chain.merged(base, patch, form, POD_KEYS)
        return
    made = chain.merged(base, patch, form, POD_KEYS)
    assert made.merged == digested({**POD, **changed})
    assert same(apply_merge_patch(base, made.body(form, is_patch=True)), made.merged)


@FEW
@given(jsons, jsons)
def test_a_generated_patch_changes_one_document_to_the_other(before: Any, after: Any) -> None:
    assert same(apply_json_patch(before, json_patch(before, after)), after)
    try:
        patch = merge_patch(before, after)
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
            apply_json_patch(DOCUMENT, patch)
    else:
        assert same(apply_json_patch(DOCUMENT, patch), result)
    assert DOCUMENT == {"a": [1, 2], "b": {"c": 3}}
