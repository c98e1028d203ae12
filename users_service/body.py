"""From a request to the JSON value in its body, or a refusal.

JSON here is RFC 8259 as I-JSON (RFC 7493) narrows it: UTF-8 without a byte order mark, only
valid Unicode, and no name twice in one object, as readers differ on which of the two counts.
"""

import asyncio
import json
import re
from decimal import Decimal
from typing import NoReturn

from aiohttp import web

from .problem import (
    BODY_INCOMPLETE,
    BODY_TIMEOUT,
    BODY_TOO_LARGE,
    MALFORMED_JSON,
    UNSUPPORTED_ENCODING,
    UNSUPPORTED_MEDIA_TYPE,
    ProblemError,
)

MAX_INT_DIGITS = 1000  # Python refuses to parse integers of over 4300 digits


async def read(request: web.Request, limit: int, wait: float) -> bytes:
    """Return the body of a request that says it is JSON, of at most `limit` bytes.

    It must be here within `wait` seconds. The application's `client_max_size` must be that
    limit, too: it holds for chunked bodies.

    Raises:
        ProblemError: it is another kind of body, too large, too slow, or breaks off.
    """
    if "Content-Encoding" in request.headers:
        # The answer says what is supported (RFC 9110, section 15.5.16).
        raise ProblemError(
            UNSUPPORTED_ENCODING,
            "Send the body without Content-Encoding.",
            {"Accept-Encoding": "identity"},
        )
    if not _is_json(request.headers.get("Content-Type", "")):
        raise ProblemError(
            UNSUPPORTED_MEDIA_TYPE,
            "Send Content-Type: application/json.",
            {"Accept": "application/json"},
        )
    too_large = ProblemError(
        BODY_TOO_LARGE, f"A body has at most {limit} bytes.", {"Connection": "close"}
    )
    if (request.content_length or 0) > limit:
        raise too_large
    if request.headers.get("Expect", "").lower() == "100-continue":
        # Only now, so that no one sends a body that the head has already doomed.
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    try:
        async with asyncio.timeout(wait):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None
    except TimeoutError:
        # Also for a wrong chunk in the middle, of which aiohttp's parser does not tell the reader.
        detail = f"A body has to be here within {wait:g} seconds."
        raise ProblemError(BODY_TIMEOUT, detail, {"Connection": "close"}) from None
    except (web.RequestPayloadError, ConnectionError) as error:
        raise ProblemError(
            BODY_INCOMPLETE, "The body ended early, or was not framed as the head says."
        ) from error


def _is_json(content_type: str) -> bool:
    media_type, *parameters = (part.strip(" \t").lower() for part in content_type.split(";"))
    charsets = [part for part in parameters if part.startswith("charset")]
    return media_type == "application/json" and all(
        re.fullmatch(r'charset=("utf-8"|utf-8)', charset) for charset in charsets
    )


def parse(body: bytes, max_depth: int) -> object:
    """Return the JSON value: dict, list, str, int, Decimal (of a huge integer), float, bool, None.

    Raises:
        ProblemError: the body is not such JSON, or nests deeper than `max_depth`.
    """
    if not body:
        raise _malformed("The body is empty.")
    try:
        value: object = json.loads(
            body.decode(),
            parse_int=_integer,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique,
        )
    except UnicodeDecodeError as error:
        raise _malformed(f"The body is not UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _malformed(f"The body is not JSON at {place}: {error.msg}.") from error
    except RecursionError as error:
        raise _too_deep(max_depth) from error
    _check(value, max_depth)
    return value


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= MAX_INT_DIGITS else Decimal(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is not JSON.")


def _unique(members: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(members)
    if len(unique) < len(members):
        raise _malformed("An object has the same name twice.")
    return unique


def _check(value: object, max_depth: int) -> None:
    """Refuse what nests too deep, or has a string with a surrogate that is not half of a pair."""
    todo = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if isinstance(item, str):
            if not item.isascii():
                _check_unicode(item)
            continue
        if not isinstance(item, dict | list):
            continue
        if depth == max_depth:
            raise _too_deep(max_depth)
        inside = [*item, *item.values()] if isinstance(item, dict) else item
        todo += [(part, depth + 1) for part in inside]


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _malformed("A string is not valid Unicode: it has a lone surrogate.") from error


def _too_deep(max_depth: int) -> ProblemError:
    return _malformed(f"Arrays and objects may nest {max_depth} deep at most.")


def _malformed(detail: str) -> ProblemError:
    return ProblemError(MALFORMED_JSON, detail)
