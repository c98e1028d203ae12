"""A PATCH does not write members that the client did not send (RFC 7396)."""

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change, for_patch
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.declared.groups import compile_groups
from gateway.conversion.formats.json_patch import convert_patch
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rules.document import read
from gateway.versions.version import Version
from tests.gateway.conversion.changes.test_laws import FEW
from tests.gateway.conversion.documents import down, up

VERSIONS = Version(1, "1"), Version(2, "2")
# Each change that can add a field, with 7 as the value of the added field.
CHANGES = [
    "rename: {{ field: {at}x, to: {at}y, default: 7 }}",
    "default: {{ field: {at}x, value: 7 }}",
    "default: {{ field: {at}x, value: 7, keep: true }}",
    "remove: {{ field: {at}x, value: 7 }}",
    "flatten: {{ field: {at}x, prefix: x_, default: {{}} }}",
    "nest: {{ field: {at}x, prefix: x_, default: null }}",
    "omit_null: {{ field: {at}x }}",
    "fill_null: {{ field: {at}x, value: 7 }}",
    "wrap: {{ field: {at}x, empty: absent }}",
    "unwrap: {{ field: {at}x, empty: absent }}",
    "join: {{ fields: [{at}y, {at}z], into: {at}x, default: '7' }}",
    "split: {{ field: {at}x, into: [{at}y, {at}z], default: '7' }}",
    "spread: {{ field: {at}x, into: {at}c.x, default: 7 }}",
    "collect: {{ field: {at}c.x, into: {at}x, default: 7 }}",
    "copy: {{ field: {at}x, to: {at}y }}",
    "pick: {{ field: {at}x, to: {at}y }}",
    "map: {{ field: {at}x, values: {{ A: b }}, default: {{ older: 7, newer: 7 }} }}",
    "add_value: {{ field: {at}x, value: w }}",
    "to_header: {{ field: {at}x, header: X-A, default: 7 }}",
    "from_header: {{ field: {at}x, header: X-A, default: 7 }}",
]
PLACES = ["", "a.", "a.b.", "p.*."]
# Members that no change names, at every depth of the places.
MEMBERS = st.recursive(
    st.sampled_from([1, None, "text", [], [{"u": 1}]]),
    lambda inner: st.dictionaries(st.sampled_from("abcpu"), inner, max_size=3),
    max_leaves=6,
)
PATCHES = st.dictionaries(st.sampled_from("abcpu"), MEMBERS, max_size=3)


def entry(written: str) -> ChangeConfig:
    return ChangeConfig.model_validate_json(json.dumps(read(written.encode(), "", {}).data))


@cache
def changes_of(change: str) -> list[Change]:
    """Return a change itself, with a condition, and in groups, at each of the places."""
    found: list[Change] = []
    for at in PLACES:
        written = change.format(at=at)
        if "header" in written and "*" in written:
            continue
        mistakes = Mistakes()
        groups = compile_groups({"one": [entry(written)]}, mistakes).changes
        context = BuildContext(mistakes, groups, VERSIONS)
        forms = [written, f"{{ {written}, when: {{ field: u, is: 1 }} }}"]
        if "header" not in written:
            forms += ["use: { group: one, at: [a, p.*] }", "use: { group: one }"]
        compiled = [entry(form).compile(context) for form in forms]
        assert "header" in written or not mistakes.found
        found += for_patch([one for one in compiled if one is not None])
    return found


@pytest.mark.parametrize("change", CHANGES)
@FEW
@given(PATCHES)
def test_a_merge_patch_gets_no_members_that_the_client_did_not_send(
    change: str, patch: dict[str, Any]
) -> None:
    for one in changes_of(change):
        for convert in (up, down):
            try:
                made = convert(one, json.loads(json.dumps(patch)))
            except ConversionError:
                continue
            assert made == patch


@pytest.mark.parametrize("change", CHANGES)
@FEW
@given(PATCHES, st.sampled_from(["/u", "/a", "/a/b", "/p/k", "/a/b/c"]))
def test_a_json_patch_gets_no_operations_and_members_that_the_client_did_not_send(
    change: str, value: dict[str, Any], path: str
) -> None:
    body = json.dumps([{"op": "add", "path": path, "value": value}]).encode()
    for one in changes_of(change):
        if "header" in change:
            continue
        link = VersionLink(*VERSIONS, (one,))
        for direction in Direction:
            try:
                made = convert_patch(body, BodyConversion((link,), direction, of_request=True))
            except ConversionError:
                continue
            assert json.loads(made) == json.loads(body)
