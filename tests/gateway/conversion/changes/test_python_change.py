"""Python functions of the operator: they may return any value and raise any exception."""

import pickle
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest

from gateway.base.errors import FunctionError
from gateway.conversion.change import inverse, omitting_unfit
from gateway.conversion.changes.python import call_for_parameter, call_python, text_function
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document, JsonForm
from gateway.conversion.message import Message, MessageView, request_message
from gateway.conversion.parameter_change import (
    ParameterLine,
    in_direction,
    parse_query,
    rewrite_query,
)
from gateway.conversion.steps import BODY
from gateway.convert import Refused
from tests.gateway.conversion.documents import SEALED, down, fails, seal, unsealed, untouched, up


def double(value: Any) -> Any:
    return value * 2


def half(value: Any) -> Any:
    return value[: len(value) // 2]


def first(value: Any) -> Any:
    """Move the first element of a list to a field. The function modifies its argument."""
    value["first"] = value["list"].pop(0)
    return value


def same(value: Any) -> Any:
    return value.copy()


def keys(value: Any) -> Any:
    return list(value)


def test_a_function_converts_one_field() -> None:
    change = call_python((("i",),), ("m", "f"), double, half)
    older: Document = {"i": [{"m": {"f": "ab", "x": 1}}, {"m": None}, {}, {"m": {"f": [1]}}]}
    newer = {"i": [{"m": {"f": "abab", "x": 1}}, {"m": None}, {}, {"m": {"f": [1, 1]}}]}
    with untouched(older, newer):
        assert up(change, older) == newer
        assert down(change, newer) == older
        assert down(inverse(change), older) == newer
        assert unsealed(up(change, seal(older), SEALED)) == newer


def test_a_function_converts_the_whole_object() -> None:
    change = call_python((), None, first, same)
    older = {"list": [1, 2], "x": None}
    with untouched(older):
        assert up(change, older) == {"list": [2], "x": None, "first": 1}
        assert down(change, older) == older
        assert up(change, [older]) == [{"list": [2], "x": None, "first": 1}]


def test_a_function_receives_null_and_exact_decimals() -> None:
    seen: list[Document] = []

    def look(value: Document) -> Document:
        seen.append(value)
        return value

    change = call_python((), ("f",), look, look)
    up(change, {"f": None})
    up(change, {"f": Decimal("1.50")})
    assert seen == [None, Decimal("1.50")]


def test_a_function_is_not_called_for_null_in_a_patch() -> None:
    patched = call_python((), ("m", "f"), double, half).for_patch()
    for form in (PLAIN, SEALED):
        for older, newer in ((None, None), ("ab", "abab"), ([], [])):
            given: Document = {"m": {"f": older}}
            made = up(patched, given if form is PLAIN else seal(given), form)
            assert (made if form is PLAIN else unsealed(made)) == {"m": {"f": newer}}
    assert up(patched, {"m": {}}) == {"m": {}}
    for whole in (
        call_python((), None, first, same),
        call_python((("i",),), ("f",), double, half),
        call_python((), BODY, double, half),
    ):
        assert whole.for_patch() == whole


def test_a_function_is_not_called_for_a_location_without_a_value() -> None:
    change, form = call_python((("i",),), ("f",), double, half), replace(PLAIN, of_places=True)
    assert up(change, {"i": [{"f": None}]}, form) == {"i": [{"f": None}]}
    assert up(change, {"i": [{"f": "a"}]}, form) == {"i": [{"f": "aa"}]}


def test_a_function_for_the_whole_object_must_return_an_object() -> None:
    with fails("", "expected an object from the Python function, found an array"):
        up(call_python((), None, keys, keys), {"a": 1})


@pytest.mark.parametrize(
    "error",
    [
        *(ValueError("secret"), KeyError("x"), SystemExit("secret"), GeneratorExit("secret")),
        *(KeyboardInterrupt("secret"), MemoryError("secret"), RecursionError("secret")),
    ],
)
def test_an_exception_of_a_function_is_logged_only(error: BaseException) -> None:
    def broken(value: Document) -> Document:
        raise error

    with pytest.raises(ConversionError) as caught:
        up(call_python((("i",),), ("f",), broken, broken), {"i": [{"f": "x"}]})
    assert caught.value.pointer == "/i/0/f"
    assert caught.value.reason == "the Python function rejected the value"
    assert caught.value.cause.startswith(
        f"{__name__}:test_an_exception_of_a_function_is_logged_only"
    )
    raised = f"broken raised {type(error).__name__} at test_python_change.py:"
    assert raised in caught.value.cause
    assert "secret" not in caught.value.cause  # it may quote the body


def test_a_function_that_fails_in_another_process_refuses_the_value() -> None:
    def remote(value: Document) -> Document:
        raise FunctionError(cause="ended its process")

    with pytest.raises(ConversionError) as caught:
        up(call_python((), ("f",), remote, remote), {"f": "x"})
    assert caught.value.reason == "the Python function rejected the value"
    assert caught.value.cause.endswith("remote ended its process")


def test_a_message_view_can_be_pickled() -> None:
    view = MessageView("up", Message("PUT", "/a", link=lambda url: url), lambda: {"b": [1]})
    copied = pickle.loads(pickle.dumps(view))  # noqa: S301  # the data comes from this test
    assert (copied.direction, copied.method, copied.path) == ("up", "PUT", "/a")
    assert (copied.fields, copied.query, copied.headers) == ({"b": [1]}, {}, {})


def test_a_value_that_cannot_be_parsed_for_a_function_is_refused() -> None:
    def refused(value: Document) -> Document:
        raise ConversionError("too large")

    form = JsonForm(PLAIN.open, PLAIN.close, PLAIN.digits, PLAIN.number, refused, PLAIN.take)
    with fails("/m/f", "too large"):
        up(call_python((), ("m", "f"), double, double), {"m": {"f": 1}}, form)


@pytest.mark.parametrize("error", [ValueError, TypeError, RecursionError])
def test_a_result_that_is_not_json_is_refused(error: type[Exception]) -> None:
    def refused(value: Document) -> Document:
        raise error("no JSON")

    form = JsonForm(PLAIN.open, PLAIN.close, PLAIN.digits, PLAIN.number, PLAIN.parse, refused)
    with pytest.raises(ConversionError) as caught:
        up(call_python((), ("f",), double, double), {"f": 1}, form)
    assert caught.value.reason == "the Python function did not return a JSON value"
    assert caught.value.cause == f"{__name__}:double returned a value that is not JSON: no JSON"


def test_a_function_converts_the_string_of_a_parameter() -> None:
    upper: Any = str.upper
    number: Any = int
    length: Any = len
    assert text_function(upper)("a") == "A"
    with pytest.raises(ConversionError, match="rejected the value") as refused:
        text_function(number)("a")
    assert "ValueError" in refused.value.cause
    with pytest.raises(ConversionError, match="did not return a string") as wrong:
        text_function(length)("a")
    assert "returned int" in wrong.value.cause


def seen(text: str, message: MessageView) -> str:
    return f"{text} {message.direction} {message.method} {message.path} {message.query}"


def test_a_function_for_a_parameter_receives_the_message() -> None:
    change = call_for_parameter("a", seen, str.upper)
    message = Message("PUT", "/b", query=parse_query("a=1&c=2"))
    newer = rewrite_query("a=x&c=2", in_direction([change], upwards=True), message)
    assert newer is not None
    assert unquote(newer) == "a=x up PUT /b {'a': ['1'], 'c': ['2']}&c=2"
    assert rewrite_query("a=x", in_direction([change], upwards=False), message) == "a=X"
    unknown = rewrite_query("a=x", in_direction([change], upwards=True))
    assert unquote(unknown or "") == "a=x up GET / {}"
    asked = request_message("GET", "/%37", None, [("X-A", "b")], "/{id}", {"id": "%37"})
    assert (asked.query, asked.headers) == ([], [ParameterLine("x-a", "X-A", "b")])
    assert (asked.operation, asked.captures) == ("/{id}", {"id": "%37"})


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", "/i/0/f"),
        ("/a", "/i/0/f/a"),
        ("/a/1/b~1c", "/i/0/f/a/1/b~1c"),
        ("/gone/0", "/i/0/f/gone/0"),
        ("no pointer", "/i/0/f"),
        (f"/{'x' * 900}", f"/i/0/f/{'x' * 199}"),
        ("/a\ud800\n", "/i/0/f/a\\ud800\\n"),
    ],
)
@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("no lines", "no lines"),
        ("a\r\n\x1b[31m\0b", "a\\r\\n\\x1b[31m\\x00b"),
        ("x" * 900, "x" * 200),
        (" \ud800", "\\ud800"),
        (" ", "the Python function rejected the value"),
    ],
)
def test_the_reason_of_a_function_is_shown_shortened_and_escaped(
    pointer: str, expected: str, reason: str, shown: str
) -> None:
    def refusing(value: Document) -> Document:
        raise Refused(reason, pointer)

    value = {"a": [1, {"b/c": 2}]}
    with pytest.raises(ConversionError) as caught:
        up(call_python((("i",),), ("f",), refusing, refusing), {"i": [{"f": value}]})
    assert (caught.value.reason, caught.value.pointer) == (shown, expected)
    assert caught.value.cause.endswith(f"refused it: {shown}")


def test_a_list_index_in_a_pointer_is_an_index_of_the_field() -> None:
    def refusing(value: Document) -> Document:
        raise Refused("odd", "/a/1")

    with pytest.raises(ConversionError) as caught:
        up(call_python((), ("f",), refusing, refusing), {"f": {"a": [1, 2], "1": 3}})
    assert caught.value.misfit == {"field": "f.a[1]", "pointer": "/f/a/1", "reason": "odd"}


def test_the_part_that_a_function_refuses_is_omitted() -> None:
    def refusing(value: Document) -> Document:
        assert isinstance(value, list)
        for index, each in enumerate(value):
            if each == "odd":
                raise Refused("odd", f"/{index}")
        return value

    change = omitting_unfit(call_python((), ("f",), refusing, refusing))
    assert up(change, {"f": ["a", "odd", "b", "odd"]}) == {"f": ["a", "b"]}
