"""Converts a message without a connection, for the commands `convert` and `explain`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from gateway.base import headers
from gateway.base.errors import FaultError
from gateway.base.headers import HeaderFields
from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.formats import json_body
from gateway.conversion.formats.body_format import (
    BodyFormat,
    described,
    passes,
)
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import parse_fields, write_fields, write_query
from gateway.http.client.message import bodiless
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.message_conversion import (
    convert_fields,
    convert_request,
    convert_response,
    sent_conversion,
)
from gateway.proxy.replay import CapturedResponse
from gateway.routing.links import LinkMapper
from gateway.routing.snapshot import Endpoint, Route, Snapshot, served_path

_JSON = (b"Content-Type", b"application/json")
_TYPE = frozenset({b"content-type"})
# The header fields that only the gateway writes if a body may be converted.
_WITH_ANY_BODY = frozenset({b"accept-ranges", b"content-length"})
_PASSES = "its media type passes"
_UNREAD = BodyFormat.PASSED, BodyFormat.OTHER


_AUTHORITY = "localhost"


def offline_link_mapper(
    snapshot: Snapshot,
    endpoint: Endpoint,
    route: Route,
    captures: Mapping[str, str],
    path: str,
    *,
    chosen_by: str | None = None,
    target: str | None = None,
    authority: str = "",
) -> LinkMapper:
    """Return the mapper for the URLs in a message without a connection.

    Args:
        chosen_by: The mechanism that selected the version; by default, the first mechanism of the
            endpoint.
        target: The raw path of the request to the service; by default, the path of the route.
        authority: The host and port of the request; by default, `localhost`.
    """
    if chosen_by is None and endpoint.selector is not None:
        chosen_by = endpoint.selector.readers[0].mechanism
    asked = served_path(endpoint, route).fill(captures) if target is None else target
    name = authority or _AUTHORITY
    return LinkMapper(
        snapshot.links, endpoint, route, chosen_by, captures, path, asked, name, "http", name
    )


class OfflineMessage(NamedTuple):
    """A converted message.

    Attributes:
        query: The raw query of a request; None for a request without a query, and for a response.
        kept: The reason why the body is unchanged although the configuration converts bodies; empty
            if there is no such reason.
    """

    query: str | None
    fields: HeaderFields
    body: bytes
    kept: str = ""


class OfflineConversion:
    """Converts one message as a running gateway would; implements `MessageContext`.

    Without a Content-Type, the body is assumed to be JSON.
    """

    length = None

    def __init__(
        self,
        conversion: Conversion,
        asked: str,
        message: Message,
        media_types: Mapping[str, str],
        room: ConversionShare,
    ) -> None:
        self.method = message.method
        self.asked = asked
        self._conversion = conversion
        self._given = message
        self.media_types = media_types
        self._room = room
        self.used: tuple[BodyConversion, Message] | None = None
        """The conversion of the body, and a copy of its message; None if no body is converted."""

    def message(
        self, conversion: BodyConversion, fields: HeaderFields, status: int | None
    ) -> Message:
        self.used = conversion, self.shown(fields, status)
        return self.shown(fields, status)

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        given = self._given
        return replace(given, status=status, headers=parse_fields(fields), query=[*given.query])

    def convert(self, body: bytes) -> OfflineMessage:
        """Raises FaultError; the detail of the fault contains the cause."""
        fields, status = write_fields(self._given.headers), self._given.status
        if body and not any(name.lower() in _TYPE for name, _ in fields):
            fields.append(_JSON)
        try:
            if status is None:
                return asyncio.run(self._request(fields, body))
            return asyncio.run(self._response(CapturedResponse(status, fields, body)))
        except FaultError as error:
            fault, cause = error.fault, error.cause.removeprefix(": ")
            # The cause may begin with the reason, which is already in the detail.
            cause = cause.removeprefix(f"{fault.detail.rpartition(': ')[2].removesuffix('.')}; ")
            if cause and cause not in fault.detail:
                fault = replace(fault, detail=f"{fault.detail.removesuffix('.')} ({cause}).")
            raise FaultError(fault) from None

    async def _request(self, fields: HeaderFields, body: bytes) -> OfflineMessage:
        method, asked = self.method, self.asked
        converting, kind = self._conversion, described(fields, self.media_types)
        conversion = sent_conversion(converting, method, asked, kind, has_body=bool(body))
        query, kept = self._given.way.service, ""
        if conversion is None:
            if body and converting.for_request(asked) and kind[0] in _UNREAD:
                kept = _PASSES
            fields = convert_fields(self, fields, converting)
            return OfflineMessage(write_query(query), fields, body, kept)
        together, fields, made = await convert_request(
            self, converting, fields, kind, body, conversion, self._room
        )
        if together is not None:
            query = together.query
        if made is body and body and conversion.keeps_malformed and _is_no_json(body):
            kept = "malformed: keep forwards a body that is not JSON"
        return OfflineMessage(write_query(query), fields, await _whole(made), kept)

    async def _response(self, response: CapturedResponse) -> OfflineMessage:
        status, fields, body = response.status, response.fields, response.body
        converting, method = self._conversion, self.method
        answered, conversion = (
            converting.status(method, status),
            converting.for_response(method, status),
        )
        kept = ""
        if conversion is not None and passes(fields, self.media_types, status):
            conversion, kept = None, _PASSES
        if conversion is not None:
            self.used = conversion, self.shown(fields, status)
        fields, made, altered = await convert_response(
            self, converting, fields, conversion, response, answered, self._room
        )
        if conversion is not None:
            about = headers.BYTE_FIELDS if altered else _WITH_ANY_BODY
            fields = headers.end_to_end(fields, about)
        if made is None and not bodiless(method, answered):
            made = body
            if conversion is not None:
                kept = _PASSES
        whole = await _whole(made)
        return OfflineMessage(None, fields, whole, kept if whole else "")


def _is_no_json(body: bytes) -> bool:
    return json_body.parse(body) is body


async def _whole(body: bytes | AsyncIterator[bytes] | None) -> bytes:
    if isinstance(body, AsyncIterator):
        return b"".join([piece async for piece in body])
    return body or b""
