"""Which bytes are JSON to this service, and which not."""

import json
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from users_service.body import parse
from users_service.problem import MALFORMED_JSON, ProblemError

DEPTH = 8
TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXT, inside, max_size=4),
    max_leaves=6,
)
SURROGATES = st.text(st.characters(categories=["Cs"]), min_size=1, max_size=1)


def _refuse(body: bytes, max_depth: int = DEPTH) -> str:
    with pytest.raises(ProblemError) as caught:
        parse(body, max_depth)
    assert caught.value.kind is MALFORMED_JSON
    return caught.value.detail


@given(JSON, st.booleans())
def test_json_is_read_as_it_was_written(value: object, escaped: bool) -> None:
    body = json.dumps(value, ensure_ascii=escaped).encode()
    assert parse(body, 64) == value


@given(st.binary() | st.text(alphabet='{}[]",:.-+eE019 \\untrfals').map(str.encode))
@example(b'"\\ud83d\\ude00"')
@example(b'{"a":1,"a":1}')
def test_any_bytes_are_json_or_a_refusal(body: bytes) -> None:
    try:
        value = parse(body, DEPTH)
    except ProblemError:
        return
    assert value == json.loads(body)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"":[', b"]}")])
def test_arrays_and_objects_nest_to_the_bound(opening: bytes, closing: bytes) -> None:
    levels = opening.count(b"[") + opening.count(b"{")
    for bound in (DEPTH, 500):
        fitting = bound // levels
        parse(opening * fitting + closing * fitting, bound)
        for count in (fitting + 1, 1000, 10_000):
            assert f"nest {bound} deep" in _refuse(opening * count + closing * count, bound)


@given(SURROGATES, TEXT, st.booleans())
def test_a_lone_surrogate_is_refused_wherever_it_is(half: str, text: str, key: bool) -> None:
    inner = {text + half: 1} if key else [half + text]
    assert "surrogate" in _refuse(json.dumps({"unknown": [inner]}).encode())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b" \n", "not JSON"),
        (b"{", "not JSON"),
        (b"{'name': 1}", "not JSON"),
        (b'{"name": "a" /* */}', "not JSON"),
        (b"[1,]", "not JSON"),
        (b"01", "not JSON"),
        (b"{} {}", "not JSON"),
        (b'"\n"', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'"\xff"', "not UTF-8 at byte 1"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        ('{"name": "Bob"}'.encode("utf-16"), "not UTF-8"),
        (b"NaN", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b'{"id": Infinity}', "Infinity is not JSON"),
        (b'{"a": {"b": 1, "\\u0062": 2}}', "same name twice"),
    ],
)
def test_what_is_not_json_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    assert reason in _refuse(body)


def test_numbers_of_any_length_are_read() -> None:
    digits = "7" * 5000
    assert parse(f"[{digits}, -{digits}]".encode(), DEPTH) == [
        Decimal(digits),
        Decimal(f"-{digits}"),
    ]
    assert parse(b"[1e999, 12, 0.5]", DEPTH) == [float("inf"), 12, 0.5]
