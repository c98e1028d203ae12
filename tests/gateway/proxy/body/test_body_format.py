"""Formats of bodies, by their Content-Type."""

import pytest

from gateway.proxy.body.body_format import (
    BodyFormat,
    ElementCount,
    format_of,
    is_empty_form,
    is_unconverted,
)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"application/json", BodyFormat.JSON),
        (b"Application/JSON ; charset=UTF-8", BodyFormat.JSON),
        (b'application/vnd.a-v1+json; charset="utf-8"', BodyFormat.JSON),
        (b"application/json; charset=latin-1", BodyFormat.OTHER),
        (b"application/json; a=" + b"b" * 300, BodyFormat.JSON),
        (b"application/merge-patch+json", BodyFormat.MERGE_PATCH),
        (b"application/json-patch+json", BodyFormat.JSON_PATCH),
        (b"application/x-www-form-urlencoded", BodyFormat.FORM),
        (b"application/x-ndjson", BodyFormat.JSON_LINES),
        (b"application/jsonl; charset=utf-8", BodyFormat.JSON_LINES),
        (b"text/event-stream", BodyFormat.EVENT_STREAM),
        (b"text/csv", BodyFormat.OTHER),
        (b"", BodyFormat.OTHER),
    ],
)
def test_a_content_type(content_type: bytes, expected: BodyFormat) -> None:
    assert format_of([(b"A", b"b"), (b"content-Type", content_type)]) is expected


@pytest.mark.parametrize(
    ("method", "content_type", "expected"),
    [
        ("POST", b"application/x-www-form-urlencoded", True),
        ("PATCH", b"application/x-www-form-urlencoded; charset=utf-8", True),
        ("GET", b"application/x-www-form-urlencoded", False),
        ("PUT", b"application/json", False),
    ],
)
def test_no_body_is_a_form_without_fields(method: str, content_type: bytes, expected: bool) -> None:
    assert is_empty_form(method, [(b"Content-Type", content_type)]) is expected


def test_none_and_several_are_of_no_format() -> None:
    line = (b"Content-Type", b"application/json")
    assert format_of([]) is format_of([line, line]) is BodyFormat.OTHER


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"text/csv", True),
        (b"Text/CSV; header=present", True),
        (b"image/png", True),
        (b"text/plain", False),
        (b"image", False),
    ],
)
def test_what_passes_unconverted(content_type: bytes, expected: bool) -> None:
    fields = [(b"Content-Type", content_type)]
    assert is_unconverted(fields, frozenset({"text/csv", "image/*"})) is expected
    assert not is_unconverted(fields, frozenset())
    assert not is_unconverted([], frozenset({"text/csv"}))


@pytest.mark.parametrize(
    ("body", "body_format", "marks"),
    [
        (b"[1,2]", BodyFormat.JSON, b",[{"),
        (b"[" + b"{}," * 50_000 + b"{}]", BodyFormat.JSON_PATCH, b",[{"),
        (b'{"a":[1],\n"b":",,"}', BodyFormat.JSON, b",[{"),
        (b"a=1&b,&" * 20_000, BodyFormat.FORM, b"&"),
        (b"\n" * 100_000, BodyFormat.JSON_LINES, b",[{\n"),
        (b"data: [1,2]\r\n\r\n", BodyFormat.EVENT_STREAM, b",[{\r\n"),
    ],
)
def test_elements_are_counted(body: bytes, body_format: BodyFormat, marks: bytes) -> None:
    """Commas in texts count too: it is an upper bound."""
    count = sum(body.count(mark) for mark in marks)
    for pieces in ([body], [body[:3], body[3:]]):
        few, enough = (ElementCount(most, body_format) for most in (count - 1, count))
        assert any(few.exceeds(piece) for piece in pieces)
        assert not any(enough.exceeds(piece) for piece in pieces)
