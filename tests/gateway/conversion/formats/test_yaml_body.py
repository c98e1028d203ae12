"""YAML bodies, which are read as JSON."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats.json_body import NotJsonError
from gateway.conversion.formats.yaml_body import convert_yaml, json_of
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.world import LAW

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=8),
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc é:#-", min_size=1, max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@LAW
@given(DOCUMENTS, st.booleans())
def test_a_document_is_read_as_it_was_written(document: Any, flow: bool) -> None:
    text = yaml.safe_dump(document, allow_unicode=True, default_flow_style=flow)
    assert json.loads(json_of(text.encode())) == document
    assert json.loads(json_of(json.dumps(document, ensure_ascii=False).encode())) == document


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", "null"),
        ("~", "null"),
        ("yes", "true"),
        ("Off", "false"),
        ("y", '"y"'),
        ("'yes'", '"yes"'),
        ("1.50", "1.50"),
        ("1e400", "1e400"),
        ("-0", "-0"),
        ("+1", "1"),
        ("0644", "420"),
        ("0o17", "15"),
        ("0x1F", "31"),
        ("0b11", "3"),
        ("1_000", "1000"),
        ("-1_0", "-10"),
        (".5", "0.5"),
        ("-.5e3", "-0.5e3"),
        ("1.", "1"),
        ("00.5", "0.5"),
        ("12:30", '"12:30"'),
        ("2024-01-01", '"2024-01-01"'),
        ("1.2.3", '"1.2.3"'),
        ("9" * 500, f'"{"9" * 500}"'),
    ],
)
def test_a_plain_scalar_has_the_value_that_kubernetes_reads(written: str, read: str) -> None:
    assert json_of(f"a: {written}\n".encode()).decode() == f'{{"a":{read}}}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: &x 1\n", "YAML with an anchor or alias, in line 1"),
        ("a: 1\nb: *x\n", "YAML with an anchor or alias, in line 2"),
        ("a: !!int '3'\n", "YAML with a tag, in line 1"),
        ("a: 089\n", "YAML with an ambiguous number, in line 1"),
        ("a: .inf\n", "YAML with a number that JSON does not have, in line 1"),
        ("? [a]\n: 1\n", "YAML with a key that is a list or an object, in line 1"),
        ("~: 1\n", "YAML with a key that JSON does not have, in line 1"),
        ("<<: {a: 1}\n", "YAML with a key that JSON does not have, in line 1"),
        ("a: 1\n---\nb: 2\n", "YAML with a second document, in line 2"),
        ("[" * 65, "YAML with more than 64 levels, in line 1"),
        ("- a\n" * 100_001, "YAML with more than 100000 values, in line 100000"),
        ("a: 1\nb: [\n", "not YAML: line 3: did not find expected node content"),
        ("a: \0", "not YAML: "),
        ("a" * (3 * 1024 * 1024 + 1), "a YAML body of more than 3145728 bytes"),
    ],
)
def test_a_document_that_is_not_safe_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        json_of(text.encode())
    assert reason in str(caught.value)


@LAW
@given(st.binary(max_size=40))
def test_any_bytes_are_json_or_refused(body: bytes) -> None:
    try:
        made = json_of(body)
    except NotJsonError:
        return
    json.loads(made)


CONVERSION = BodyConversion(
    (VersionLink(Version(1, "1"), Version(2, "2"), (rename((), ("a",), ("b",)),)),), Direction.DOWN
)


def test_a_body_without_the_field_keeps_its_bytes() -> None:
    for body in (b"x: 1 # a\n", b' {"x": 1}\n', b"# nothing\n"):
        assert convert_yaml(body, CONVERSION, None) is body


def test_a_body_in_braces_may_be_json_or_yaml() -> None:
    assert convert_yaml(b'{"a": 1.0}', CONVERSION, None) == b'{"b":1.0}'
    assert convert_yaml(b"{a: 1.0}", CONVERSION, None) == b'{"b":1.0}'


def test_a_key_that_occurs_twice_is_refused() -> None:
    with pytest.raises(ConversionError, match="the key 'a' twice"):
        convert_yaml(b"a: 1\na: 2\n", CONVERSION, None)
