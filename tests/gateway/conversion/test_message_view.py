"""MessageView: what a Python function sees of the message around its value."""

from dataclasses import replace

import pytest

from gateway.conversion.changes.python import PythonChange, takes_message
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document
from gateway.conversion.message import Message, MessageView
from gateway.conversion.parameter_change import ParameterLine, parse_query
from gateway.conversion.steps import BODY

MESSAGE = Message(
    "POST",
    "/v1/orders/a%20b",
    "/v{version}/orders/{id}",
    {"version": "1", "id": "a%20b"},
    "/orders/a%20b",
    None,
    [ParameterLine("x-a", "X-A", "1 "), ParameterLine("x-a", "x-a", "2")],
    parse_query("p=1&p=2&q"),
)


def seen(value: Document, message: MessageView) -> Document:
    """Return all that is to be seen."""
    return {
        "value": value,
        "direction": message.direction,
        "method": message.method,
        "path": message.path,
        "operation": message.operation,
        "path_parameters": dict(message.path_parameters),
        "query": dict(message.query),
        "headers": dict(message.headers),
        "status": message.status,
        "fields": message.fields,
    }


def refused(value: Document, message: MessageView) -> Document:
    """Refuse every value."""
    raise ValueError(value, message)


def test_all_that_is_known() -> None:
    fields: dict[str, Document] = {"a": 1, "b": [2]}
    PythonChange((), ("a",), seen, abs).up(fields, replace(PLAIN, message=MESSAGE))
    assert fields["a"] == {
        "value": 1,
        "direction": "up",
        "method": "POST",
        "path": "/v1/orders/a%20b",
        "operation": "POST /v{version}/orders/{id}",
        "path_parameters": {"version": "1", "id": "a b"},
        "query": {"p": ["1", "2"], "q": [""]},
        "headers": {"x-a": ["1", "2"]},
        "status": None,
        "fields": {"a": 1, "b": [2]},
    }


@pytest.mark.parametrize("field", [None, BODY])
def test_beside_a_whole_body_there_is_nothing(field: tuple[str] | None) -> None:
    fields: dict[str, Document] = {"": {"a": 1}}
    PythonChange((), field, abs, seen).down(fields, PLAIN)
    found = fields if field is None else fields[""]
    assert isinstance(found, dict)
    assert (found["fields"], found["direction"], found["method"]) == ({}, "down", "GET")


def test_a_refusal_has_the_name_of_the_function() -> None:
    with pytest.raises(ConversionError) as caught:
        PythonChange((), ("a",), refused, refused).up({"a": 1}, PLAIN)
    assert "test_message_view:refused raised ValueError" in caught.value.cause


def test_functions_that_have_no_signature_take_no_message() -> None:
    assert takes_message(seen)
    assert not any(takes_message(code) for code in (abs, dict, type, min))


def test_the_query_is_read_once() -> None:
    """A function of a parameter is called for each of thousands of values."""
    view = MessageView("up", MESSAGE, dict)
    assert view.query is view.query
    assert view.headers is view.headers
    assert view.query != view.headers
