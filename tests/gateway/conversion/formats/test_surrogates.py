"""Lone surrogates: every conversion preserves their spelling."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.changes.python import call_python
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version

RENAME = rename((), ("a",), ("b",))
SAME = call_python((), ("a",), lambda value: value, lambda value: value)


def converted(body: bytes, change: Change = RENAME, direction: Direction = Direction.DOWN) -> bytes:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (change,))
    return json_body.convert(body, BodyConversion((link,), direction))


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (rb'{"a":"\ud800"}', rb'{"b":"\ud800"}'),
        (rb'{"a":"\uDfFf"}', rb'{"b":"\uDfFf"}'),
        (rb'{"a":"\uD8aB\uDbfF x"}', rb'{"b":"\uD8aB\uDbfF x"}'),
        (rb'{"a":1,"x":[{"y":"\ud800"}]}', rb'{"b":1,"x":[{"y":"\ud800"}]}'),
        (rb'{"\udc00":1,"a":2}', rb'{"\udc00":1,"b":2}'),
        (rb'{"a":"\ud83d\ude00\ude00"}', rb'{"b":"\ud83d\ude00\ude00"}'),
        (rb'{"a":"\ud83d\ud83d\ude00"}', rb'{"b":"\ud83d\ud83d\ude00"}'),
        (rb'{"a":"\\\ud800\\ud800"}', rb'{"b":"\\\ud800\\ud800"}'),
        ('{"a":"\\ud800\U0010ffff\\n"}'.encode(), '{"b":"\\ud800\U0010ffff\\n"}'.encode()),
        (rb'{"a":1.10,"c":"\udfff"}', rb'{"b":1.10,"c":"\udfff"}'),
    ],
)  # fmt: skip
def test_lone_surrogates_keep_their_spelling(body: bytes, after: bytes) -> None:
    assert converted(body) == after
    assert converted(after, direction=Direction.UP) == body


@given(
    st.text(
        st.sampled_from("\ud800\udbff\udc00\udfff\\ud8é")
        | st.characters(codec=None, max_codepoint=0xFFFFF)
    ),
    st.booleans(),
)
def test_any_string_with_surrogates_is_preserved(text: str, capitals: bool) -> None:
    written = json.dumps({"a": text})
    if capitals:
        written = written.replace("\\ud", "\\uD")
    assert json.loads(converted(written.encode())) == {"b": json.loads(written)["a"]}


@pytest.mark.parametrize("other", ['"\U00100000"', '"\U00107fff"', r'"\udbc0\udc00"'])
def test_a_body_with_surrogates_and_characters_of_the_placeholder_plane_is_refused(
    other: str,
) -> None:
    assert converted(f'{{"a":{other}}}'.encode()) == f'{{"b":{other}}}'.encode()
    with pytest.raises(ConversionError, match=r"half of a surrogate pair .* cannot both be kept"):
        converted(f'{{"a":{other},"x":"\\ud800"}}'.encode())


def test_bodies_with_lone_surrogates_can_be_compared() -> None:
    one, other, third = (
        json_body.parse(rb'{"a":"\u%b","b":1}' % text) for text in (b"d800", b"dc00", b"0041")
    )
    assert isinstance(one, dict)
    assert isinstance(other, dict)
    assert one == json_body.parse(rb'{"b":1, "a":"\ud800"}') != other
    assert third == {"a": "A", "b": 1}
    for kept in (rb'{"a":"\ud800"', rb'{"a":"\ud800\udbc0\udc00"}', b'{"a":"\\ud800\xff"}'):
        assert json_body.parse(kept) == kept


def test_a_lone_surrogate_is_not_passed_to_a_python_function() -> None:
    assert converted(rb'{"x":"\ud800","a":[1.5]}', SAME) == rb'{"x":"\ud800","a":[1.5]}'
    with pytest.raises(ConversionError, match="/a: half of a surrogate pair"):
        converted(rb'{"a":[{"b":"\ud800"}]}', SAME)
