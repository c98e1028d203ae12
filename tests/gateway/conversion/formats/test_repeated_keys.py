"""Repeated keys: they stay where no change names them, and are found where one does."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.changes.rename import Rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body, original_text
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.world import LAW

# A conversion that opens an object, and changes nothing in it.
LINK = VersionLink(Version(1), Version(2), (Rename((), ("no such",), ("neither",)),))
OPENED = BodyConversion((LINK,), Direction.UP)
RENAMED = BodyConversion(
    (VersionLink(Version(1), Version(2), (Rename((), ("c",), ("b",)),)),), Direction.UP
)

# Keys that hide colons, quotes and themselves behind escapes, and values that look like members.
KEYS = st.sampled_from(
    [
        *(
            '"a"',
            '"\\u0061"',
            '":"',
            '"\\u003a"',
            '"\\u003A"',
            '"\\\\"',
            '"\\u005c"',
            '""',
            '"\\""',
        ),
        *('"\\u003a\\u003a"', '"::"', '"\u00e9"', '"\\u00e9"', '"\\u0022:"', '"b"'),
    ]
)
SPACE = st.sampled_from(["", "", " ", "\n\t"])
VALUES = st.sampled_from(
    [
        "1",
        "null",
        '"a"',
        '":"',
        '"\\u003a"',
        '{"a":1,"a":2}',
        '[":",{"b" : 1}]',
        "{}",
        '"\u00e9"',
        "1.50",
    ]
)


@st.composite
def objects(draw: st.DrawFn) -> str:
    """Return the text of an object, with white space anywhere."""
    members = draw(st.lists(st.tuples(KEYS, VALUES), max_size=4))
    one, two, three = draw(SPACE), draw(SPACE), draw(SPACE)
    inner = f"{one},{two}".join(f"{key}{two}:{three}{value}" for key, value in members)
    return f"{{{one}{inner}{three}}}"


def converted(text: str) -> bytes | None:
    try:
        return json_body.convert(text.encode(), RENAMED)
    except ConversionError:
        return None


@LAW
@given(objects())
def test_members_that_no_change_names_keep_their_text_and_order(text: str) -> None:
    body = text.encode()
    assert json_body.convert(body, OPENED) is body
    pairs = json.loads(text, object_pairs_hook=Pairs)
    keys = [key for key, _ in pairs]
    made = converted(text)
    if keys.count("b") > 1:
        assert made is None  # it is open which of them the change is for
    elif "b" not in keys:
        assert made == body
    else:
        assert made is not None
        found = json.loads(made, object_pairs_hook=Pairs)
        assert found == [("c" if key == "b" else key, value) for key, value in pairs]


class Pairs(list[tuple[str, Any]]):
    """The members of an object, in their order."""


def is_refused_within(text: str) -> bool:
    try:
        original_text.refuse_repeated_within(text.encode(), json.loads(text))
    except ConversionError:
        return True
    return False


@LAW
@given(objects())
def test_all_objects_in_a_value(text: str) -> None:
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated |= len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=look)
    assert is_refused_within(text) == repeated
    assert is_refused_within(f"[{text}]") == repeated


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f'{{"a":1{"0" * 30},"b":2}}', False),
        (f'{{"a":1{"0" * 30},"a":2}}', True),
        ('"a:b:c"', False),
        ("7", False),
    ],
)
def test_large_numbers_and_scalars(text: str, refused: bool) -> None:
    assert is_refused_within(text) == refused
