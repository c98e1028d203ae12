"""The Content-Type and the configuration determine the format of a body."""

import pytest

from gateway.conversion.formats.body_format import (
    BodyFormat,
    ElementCount,
    described,
    format_of,
    is_empty_form,
    is_in_ranges,
)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"application/json", BodyFormat.JSON),
        (b"Application/JSON ; charset=UTF-8", BodyFormat.JSON),
        (b'application/vnd.a-v1+json; charset="utf-8"', BodyFormat.JSON),
        (b"application/json; charset=latin-1", BodyFormat.JSON),
        (b"application/json; charset=utf-16; charset=latin-1", BodyFormat.JSON),
        (b"application/json; charset=rot13", BodyFormat.JSON),
        (b"application/json; charset=klingon", BodyFormat.JSON),
        (b"text/json", BodyFormat.JSON),
        (b"application/x-javascript", BodyFormat.JSON),
        (b"model/gltf+json", BodyFormat.JSON),
        (b"text/html; charset=klingon", BodyFormat.TEXT),
        (b"text/plain", BodyFormat.TEXT),
        (b"application/json; a=" + b"b" * 300, BodyFormat.JSON),
        (b"application/merge-patch+json", BodyFormat.MERGE_PATCH),
        (b"application/json-patch+json", BodyFormat.JSON_PATCH),
        (b"application/x-www-form-urlencoded", BodyFormat.FORM),
        (b"application/x-ndjson", BodyFormat.JSON_LINES),
        (b"application/jsonl; charset=utf-8", BodyFormat.JSON_LINES),
        (b"application/geo+json-seq", BodyFormat.JSON_SEQUENCE),
        (b"text/event-stream", BodyFormat.EVENT_STREAM),
        (b"text/csv", BodyFormat.OTHER),
        (b"application/x-ndjson; charset=utf-16", BodyFormat.JSON_LINES),
        (b"", BodyFormat.UNTYPED),
    ],
)
def test_the_content_type_determines_the_format_of_a_body(
    content_type: bytes, expected: BodyFormat
) -> None:
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
def test_an_empty_body_with_the_media_type_of_forms_is_a_form_without_fields(
    method: str, content_type: bytes, expected: bool
) -> None:
    assert is_empty_form(method, format_of([(b"Content-Type", content_type)])) is expected


def test_a_body_without_content_type_is_untyped() -> None:
    assert format_of([]) is BodyFormat.UNTYPED


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"application/json", b"application/json; charset=utf-8"], BodyFormat.JSON),
        ([b"application/json, application/json"], BodyFormat.JSON),
        ([b"text/csv, application/json"], BodyFormat.JSON),
        ([b"application/json", b"text/csv"], BodyFormat.OTHER),
        ([b'text/csv; a="b, application/json"', b'application/json; c="d, e'], BodyFormat.JSON),
        ([b'application/json; a="b\\", text/csv"'], BodyFormat.JSON),
        ([b"application/json, , nonsense"], BodyFormat.JSON),
        ([b"nonsense, none"], BodyFormat.OTHER),
        ([b"", b""], BodyFormat.UNTYPED),
    ],
)
def test_the_last_valid_content_type_counts(values: list[bytes], expected: BodyFormat) -> None:
    assert format_of([(b"Content-Type", value) for value in values]) is expected


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"text/csv", BodyFormat.PASSED),
        (b"Application/JSON; charset=latin1", BodyFormat.PASSED),
        (b"image/png", BodyFormat.PASSED),
        (b"image/svg+xml", BodyFormat.JSON),  # the exact type takes precedence over the range
        (b"text/log", BodyFormat.JSON_LINES),
        (b"text/log; charset=utf-16", BodyFormat.JSON_LINES),
        (b"text/plain", BodyFormat.TEXT),
        (None, BodyFormat.JSON_LINES),
    ],
)
def test_media_types_in_the_configuration_override_the_format(
    content_type: bytes | None, expected: BodyFormat
) -> None:
    media_types = {
        "text/csv": "pass",
        "application/json": "pass",
        "image/*": "pass",
        "image/svg+xml": "json",
        "text/log": "json_lines",
        "none": "json_lines",
    }
    fields = [] if content_type is None else [(b"Content-Type", content_type)]
    assert described(fields, media_types)[0] is expected


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
def test_a_content_type_matches_its_media_ranges(content_type: bytes, expected: bool) -> None:
    fields = [(b"Content-Type", content_type)]
    assert is_in_ranges(fields, frozenset({"text/csv", "image/*"})) is expected
    assert not is_in_ranges(fields, frozenset())
    assert not is_in_ranges([], frozenset({"text/csv"}))


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
def test_element_count_is_an_upper_bound_of_the_elements_of_a_body(
    body: bytes, body_format: BodyFormat, marks: bytes
) -> None:
    count = sum(body.count(mark) for mark in marks)
    for pieces in ([body], [body[:3], body[3:]]):
        few, enough = (ElementCount(most, body_format) for most in (count - 1, count))
        assert any(few.exceeds(piece) for piece in pieces)
        assert not any(enough.exceeds(piece) for piece in pieces)
