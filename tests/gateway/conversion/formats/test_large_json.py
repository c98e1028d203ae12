"""Large JSON is read and written in short pieces, with the same result."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body, large_json, original_text
from tests.gateway.proxy.body.rules import conversion

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a,"\\[]{}:é ', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@pytest.fixture(params=[2, 3, 7, 64])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use pieces of a few bytes, so that every kind of byte occurs at the end of a piece."""
    monkeypatch.setattr(large_json, "_PIECE", request.param)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("compact", [True, False])
def test_pieces_of_an_array_contain_whole_elements(compact: bool) -> None:
    separators = (",", ":") if compact else (" , ", " : ")

    @settings(max_examples=20)  # for each of eight cases
    @given(st.lists(VALUES, min_size=1, max_size=8), st.booleans())
    def check(array: list[Any], ascii_only: bool) -> None:
        text = json.dumps(array, separators=separators, ensure_ascii=ascii_only).encode()
        pieces = [*large_json.cut(text[1:-1])]
        assert b"[" + b",".join(pieces) + b"]" == text
        parts = [json.loads(b"[" + piece + b"]") for piece in pieces]
        assert all(parts)
        assert [each for part in parts for each in part] == array

    check()


def is_array(inner: bytes) -> bool:
    try:
        json.loads(b"[" + inner + b"]")
    except ValueError:
        return False
    return True


@pytest.mark.usefixtures("small")
@given(st.text(alphabet='a1,"\\[]{}: ', max_size=30))
def test_malformed_json_has_at_least_one_malformed_piece(text: str) -> None:
    inner = text.encode()
    pieces = [*large_json.cut(inner)]
    if not is_array(inner):
        assert any(not piece.strip() or not is_array(piece) for piece in pieces)


def test_an_element_larger_than_a_piece_is_not_split() -> None:
    large = b"[" + b"{}," * 50_000 + b"1]"
    assert large in [*large_json.cut(b",".join([b"1", large, b"2"]))]


def members(*more: bytes) -> bytes:
    price = b'{"price":%d,"x":"},{\\""}'
    lines = b'"lines":[' + b",".join([price % each for each in range(5_000)]) + b"]"
    return b"{" + b",".join([*(b'"k%d":{}' % each for each in range(20_000)), lines, *more]) + b"}"


def test_the_parser_never_parses_a_large_text_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing a large text in one call would block the event loop."""
    decode, longest = original_text._opened, 0

    def opened(text: Any) -> Any:
        nonlocal longest
        found = decode(text)
        if isinstance(found, list | dict) and len(found) > 1:
            longest = max(longest, len(text))
        return found

    monkeypatch.setattr(original_text, "_opened", opened)
    monkeypatch.setattr(json_body, "_opened", opened)
    in_pieces = json_body.convert(members(b'"name":1'), conversion())
    assert 0 < longest <= 2 * large_json._PIECE
    monkeypatch.setattr(large_json, "LARGE", 2**30)
    assert in_pieces == json_body.convert(members(b'"name":1'), conversion())
    assert longest > large_json._PIECE * 5


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (members(b'"title":1', b'"title":1'), "the key 'title' twice"),
        (members(b'"a":1,'), "not JSON"),
        (members(b"") + b"}", "not JSON"),
        (b"[" + b"{}," * 50_000 + b"]", "not JSON"),
        (b"[" + b"{}," * 50_000 + b",{}]", "not JSON"),
        (b"[{}],[{}" + b",{}" * 50_000 + b"]", "not JSON"),
        (b"[{}" + b",{}" * 50_000 + b"}", "not JSON"),
        (b" " * 100_000, "not JSON"),
        (b'{"a":"' + "é".encode()[:1] * 100_000 + b'"}', "not UTF-8"),
        (b'{"a":"' + "é".encode() * 70_000 + "é".encode()[:1], "not UTF-8"),
    ],
)
def test_large_malformed_json_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(ConversionError, match=problem):
        json_body.convert(body, conversion())


@pytest.mark.parametrize("blanks", [b"", b" "])
def test_a_large_body_keeps_the_bytes_of_values_that_no_change_names(blanks: bytes) -> None:
    given = members(b'"k0":' + blanks + b"1", b'"k0":2')
    added = b',"channel":"web","tries":3}'
    expected = given.replace(b": 1", b":1")[:-1] + added
    assert json_body.convert(given, conversion()) == expected
    untouched = given.replace(b'"lines"', b'"others"')
    assert json_body.convert(untouched, conversion("PATCH")) is untouched


@pytest.mark.usefixtures("small")
@given(st.text(alphabet=" \t\r\na[", max_size=30))
def test_stripped_removes_json_white_space_at_both_ends(text: str) -> None:
    assert bytes(large_json.stripped(memoryview(text.encode()))) == text.encode().strip()


at_once = msgspec.json.Encoder(decimal_format="number").encode
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=4)
    | st.just(Decimal("1.50"))
    | st.just(Raw(b'{"a" : [ 1.0 ] }')),
    lambda inner: (
        st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=3), inner, max_size=7)
    ),
    max_leaves=30,
)


@pytest.mark.parametrize("together", [1, 2, 3])
def test_encoding_in_steps_equals_encoding_at_once(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_json, "_TOGETHER", together)
    monkeypatch.setattr(large_json, "_STEP", together)

    @given(DOCUMENTS)
    def check(document: Any) -> None:
        assert large_json.encode(document) == at_once(document)

    check()
