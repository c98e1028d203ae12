"""Conversion of bodies and header fields between versions; failures become FaultErrors."""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache

from gateway.core.conversion.chain import Conversion
from gateway.core.conversion.document import ConversionError
from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.core.headers import HeaderFields
from gateway.proxy.body import content_coding, json_body
from gateway.proxy.upstream.upstream import UpstreamHead

# RFC 8259, and the structured suffix of RFC 6839.
_JSON = re.compile(rb"application/(?:json|[!#$%&'*+\-.^_`|~0-9a-z]+\+json)\Z")
# A body of more bytes than this, or one with a content coding, is converted in a thread, so that
# other requests do not wait for it. A smaller one costs less than handing it to a thread.
_AT_ONCE = 64 * 1024
# Services and clients use few different types, which are cached. A Content-Type of more bytes is
# not cached, so that the cache stays small.
_SHORT = 256
_UTF_8 = (b"charset=utf-8", b'charset="utf-8"')


async def convert_request(
    body: bytes, fields: HeaderFields, conversion: Conversion, limit: int
) -> bytes:
    """Return a request body converted to the service's version.

    Raises:
        FaultError: the body is not JSON or does not fit the client's version; the client's fault.
    """
    if not is_json(fields):
        raise FaultError(
            Fault(
                FaultCode.UNSUPPORTED_MEDIA_TYPE,
                "This version takes JSON bodies: application/json.",
            )
        )
    try:
        return await _convert(body, fields, conversion, limit)
    except content_coding.DecodedTooLargeError as error:
        raise FaultError(Fault(FaultCode.BODY_TOO_LARGE, f"{str(error).capitalize()}.")) from None
    except content_coding.ContentCodingError as error:
        raise FaultError(
            Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding: {error}.")
        ) from None
    except ConversionError as error:
        raise FaultError(
            Fault(FaultCode.UNCONVERTIBLE_REQUEST, f"The body does not fit this version: {error}."),
            error.cause,
        ) from None


async def convert_response(response: UpstreamHead, conversion: Conversion, limit: int) -> bytes:
    """Return the body of a response converted to the client's version.

    Raises:
        FaultError: the body cannot be converted completely; no part of it may be sent.
    """
    if response.status == 206:
        raise _failed(response, "a part of a representation cannot be converted")
    body = await _whole(response, limit)
    if not body and not _values(response.fields, b"content-type"):
        return body  # an empty body is the same in every version
    if not is_json(response.fields):
        raise _failed(response, "it is not JSON")
    try:
        return await _convert(body, response.fields, conversion, limit)
    except content_coding.ContentCodingError as error:
        raise _failed(response, str(error)) from None
    except ConversionError as error:
        raise _failed(response, str(error), error.cause) from None


def convert_request_fields(
    fields: HeaderFields, conversion: Conversion, method: str
) -> HeaderFields:
    """Return the fields of a request converted to the service's version; raises FaultError."""
    try:
        return conversion.fields(method, None, fields)
    except ConversionError as error:
        detail = f"The request does not fit this version: {error.reason}."
        raise FaultError(Fault(FaultCode.UNCONVERTIBLE_REQUEST, detail)) from None


def convert_response_fields(
    fields: HeaderFields, conversion: Conversion, method: str, response: UpstreamHead
) -> HeaderFields:
    """Return the fields of a response converted to the client's version; raises FaultError."""
    try:
        return conversion.fields(method, response.status, fields)
    except ConversionError as error:
        raise _failed(response, error.reason) from None


def is_json(fields: HeaderFields) -> bool:
    """Whether there is one Content-Type, a JSON type, with no charset other than UTF-8."""
    types = _values(fields, b"content-type")
    if len(types) != 1:
        return False
    (value,) = types
    return _remembered(value) if len(value) <= _SHORT else _is_json(value)


def _is_json(content_type: bytes) -> bool:
    essence, *parameters = (part.strip(b" \t").lower() for part in content_type.split(b";"))
    charsets = [parameter for parameter in parameters if parameter.startswith(b"charset=")]
    if essence == b"application/json-patch+json":
        return False  # JSON Patch holds operations on a document (RFC 6902), not the document
    return bool(_JSON.match(essence)) and all(charset in _UTF_8 for charset in charsets)


_remembered = lru_cache(maxsize=128)(_is_json)


async def _whole(response: UpstreamHead, limit: int) -> bytes:
    collected: list[bytes] = []
    size = 0
    while piece := await response.read():
        size += len(piece)
        if size > limit:
            raise _failed(response, f"it is larger than {limit} bytes")
        collected.append(piece)
        if response.complete:  # all of the body was read
            break
    return b"".join(collected)


async def _convert(body: bytes, fields: HeaderFields, conversion: Conversion, limit: int) -> bytes:
    values = _values(fields, b"content-encoding")
    codings = content_coding.codings(values) if values else ()
    if not codings and len(body) <= _AT_ONCE:
        return json_body.convert(body, conversion)
    return await asyncio.to_thread(
        lambda: json_body.convert(content_coding.decode(body, codings, limit), conversion)
    )


def _values(fields: HeaderFields, name: bytes) -> Sequence[bytes]:
    size = len(name)
    return [value for key, value in fields if len(key) == size and key.lower() == name]


def _failed(response: UpstreamHead, what: str, cause: str = "") -> FaultError:
    detail = f"The backend's response cannot be converted to this version: {what}."
    return FaultError(
        Fault(FaultCode.CONVERSION_FAILED, detail), f"{response.target}: {cause or what}"
    )
