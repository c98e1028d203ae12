"""Conversion of one message without a connection: as live ones, for the commands that show it."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from gateway.core import headers
from gateway.core.answers.link_directory import served_path
from gateway.core.answers.link_mapper import LinkMapper
from gateway.core.conversion.chain import BodyConversion, Conversion
from gateway.core.conversion.message.message import Message
from gateway.core.conversion.parameter_change import parse_fields, write_fields, write_query
from gateway.core.cutover.shadow import SAFE
from gateway.core.errors import Fault, FaultCode, FaultError, conversion_failed
from gateway.core.headers import HeaderFields
from gateway.core.snapshot import Endpoint, Route, Snapshot
from gateway.core.versions.chosen_by import ChosenBy
from gateway.proxy.body import content_coding, json_body
from gateway.proxy.body.body_conversion import NOT_JSON
from gateway.proxy.body.body_format import (
    EMPTY_FORM,
    ERROR_TEXTS,
    BodyFormat,
    described,
    is_empty_form,
    is_unconverted,
)
from gateway.proxy.body.converter import converter
from gateway.proxy.body.formats.form_body import retyped
from gateway.proxy.body.slow_thread import run_now
from gateway.proxy.bounds.conversion_room import ConversionRoom
from gateway.proxy.converted_message import bodiless, has_other_body

_NOTHING = b"{}"
_JSON = (b"Content-Type", b"application/json")
_TYPE = frozenset({b"content-type"})


# Whom the gateway is asked as, where nothing says so.
_AUTHORITY = "localhost"


def lone_mapper(
    snapshot: Snapshot,
    endpoint: Endpoint,
    route: Route,
    captures: Mapping[str, str],
    path: str,
    *,
    chosen_by: ChosenBy | None = None,
    target: str | None = None,
    authority: str = "",
) -> LinkMapper:
    """Return what maps the links of a message without a connection.

    Args:
        snapshot: The rules.
        endpoint: The endpoint of the request.
        route: The route that the request takes.
        captures: The raw captures of the path of the request.
        path: The raw path of the request.
        chosen_by: What chose the version; by default, the first mechanism of the endpoint.
        target: The raw path that the service is asked for; by default, that of the route.
        authority: The host and port of the request; by default, `localhost`.
    """
    if chosen_by is None and endpoint.selector is not None:
        chosen_by = endpoint.selector.readers[0].mechanism
    asked = served_path(endpoint, route).fill(captures) if target is None else target
    name = authority or _AUTHORITY
    return LinkMapper(
        snapshot.links, endpoint, route, chosen_by, captures, path, asked, name, "http", name
    )


class LoneMessage(NamedTuple):
    """A converted message.

    Attributes:
        query: The raw query of a request; None without one, and in an answer.
        fields: The header fields.
        body: The body; empty where there is none.
        kept: Why a body passes as it is that the rules would convert; empty where none does.
    """

    query: str | None
    fields: HeaderFields
    body: bytes
    kept: str = ""


def convert_lone(
    conversion: Conversion,
    method: str,
    message: Message,
    body: bytes,
    unconverted: Collection[str],
    room: ConversionRoom,
) -> LoneMessage:
    """Return a converted request or answer; the message is changed with it.

    Args:
        conversion: The conversion.
        method: The method that the service is asked by.
        message: The message. Without a Content-Type, its body is taken for JSON.
        body: Its body; empty for none.
        unconverted: The media types that pass as they are.
        room: The bounds of the body.

    Raises:
        ConversionError: The message does not fit its version.
        FaultError: Its body is of a type that nothing converts, or too large.
    """
    status, query = message.status, None
    body, one = lone_body(conversion, method, message, body)
    given = write_fields(message.headers)
    ranges = unconverted if status is None or status < 400 else {*unconverted, *ERROR_TEXTS}
    kept = ""
    if one is not None and is_unconverted(given, ranges):
        one, kept = None, "its type is unconverted"
    if one is not None and status is None and not body and is_empty_form(message.method, given):
        body = EMPTY_FORM
    together = one is not None and one.needs_message
    if status is None:
        query = write_query(message.query if together else message.way.service)
    if one is None or not (body or together):
        return LoneMessage(query, conversion.fields(message.method, status, given), body, kept)
    if not body and _stays_empty(one, message):
        query = query if status is not None else write_query(message.query)
        return LoneMessage(query, write_fields(message.headers), b"")
    converted, kept = _converted(one, given, message, body or _NOTHING, room)
    if together:
        fields = write_fields(message.headers)
        query = query if status is not None else write_query(message.query)
    else:
        fields = conversion.fields(message.method, status, given, message)
    if _format(given)[0] is BodyFormat.FORM:
        fields = retyped(fields, one)
    if not kept:
        fields = headers.end_to_end(fields, headers.ABOUT_BYTES)
    if status is None and conversion.drops_body and converted == _NOTHING:
        fields, converted = headers.end_to_end(fields, _TYPE), b""
    return LoneMessage(query, fields, converted, kept)


def lone_body(
    conversion: Conversion, method: str, message: Message, body: bytes
) -> tuple[bytes, BodyConversion | None]:
    """Return the body that is converted, which may be made of nothing, and by what, if anything.

    Args:
        conversion: The conversion.
        method: The method that the service is asked by.
        message: The message, which gets the type of a body that is made.
        body: Its body; empty for none.
    """
    status = message.status
    if status is not None:
        one = conversion.for_response(message.method, status)
        answered = conversion.status(message.method, status)
        if bodiless(message.method, answered):
            heads = message.method == "HEAD" and one is not None and one.needs_message
            return b"", one if heads else None
        other = answered != status and has_other_body(conversion, message.method, status, answered)
        if other and one is None:
            return b"", None
        made = one if other or bodiless(message.method, status) else None
    else:
        if message.method in SAFE and body.strip() == _NOTHING:
            body = b""
        patch = _format(write_fields(message.headers))[0] is BodyFormat.MERGE_PATCH
        one = conversion.for_request("PATCH" if patch else method)
        made = None if body else conversion.made(method)
    if made is None:
        return body, one
    message.headers[:] = parse_fields(_typed(write_fields(message.headers)))
    return _NOTHING, made


def _typed(fields: HeaderFields) -> HeaderFields:
    return [_JSON, *headers.end_to_end(fields, _TYPE)]


def _format(fields: Iterable[tuple[bytes, bytes]]) -> tuple[BodyFormat, list[bytes]]:
    body_format, codings = described(fields)
    typed = any(name.lower() in _TYPE for name, _ in fields)
    return body_format if typed else BodyFormat.JSON, codings


def _stays_empty(conversion: BodyConversion, message: Message) -> bool:
    """Convert a message without a body; return whether no value comes into one, as of HEAD."""
    carrying = conversion.carrying
    carry = partial(json_body.convert, _NOTHING, carrying, message)
    made = run_now(carry, carrying.timeout)
    if made == _NOTHING or (message.status is not None and message.method == "HEAD"):
        return True
    message.restore()
    return False


def _converted(
    conversion: BodyConversion,
    fields: HeaderFields,
    message: Message,
    body: bytes,
    room: ConversionRoom,
) -> tuple[bytes, str]:
    """Return a converted body, or the body and why it passes as it is."""
    body_format, values = _format(fields)
    convert = converter(body_format, room)
    if convert is None:
        if conversion.keeps_unfit:
            return body, "unfit: keep lets pass what is not JSON"
        if message.status is not None:
            raise FaultError(conversion_failed("it is not JSON"))
        raise FaultError(Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, NOT_JSON))
    try:
        text = content_coding.decode(body, content_coding.codings(values), room.limit)
    except content_coding.ContentCodingError as error:
        fault = Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding: {error}.")
        raise FaultError(
            conversion_failed(error) if message.status is not None else fault
        ) from None
    try:
        return run_now(partial(convert, text, conversion, message, None), conversion.timeout), ""
    except json_body.NotJsonError:
        if conversion.keeps_unfit and not values:
            return body, "unfit: keep lets pass what is not JSON"
        raise
