"""Decoding of content codings (RFC 9110, section 8.4.1), with a bound on the decoded size."""

import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

# brotli: Google's own binding, which can bound its output; zstd is in the library from 3.14 on,
# and backports.zstd is that module for the Pythons before.
import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


# Genuine bodies have fewer codings and members. Each one costs a pass over all bytes after it, so
# thousands of tiny ones would delay all other requests.
_MOST_CODINGS = 8
_MOST_MEMBERS = 256


class ContentCodingError(Exception):
    """The body cannot be decoded by its Content-Encoding."""


class DecodedTooLargeError(ContentCodingError):
    """The decoded body is larger than the limit."""


def codings(values: Sequence[bytes]) -> list[str]:
    """Return the codings that Content-Encoding lists, in the order in which they were applied."""
    members = (member.strip(b" \t").lower() for value in values for member in value.split(b","))
    names = [member.decode("latin-1") for member in members if member]
    return [name for name in names if name != "identity"]


def decode(body: bytes, applied: Sequence[str], limit: int) -> bytes:
    """Return the decoded body.

    Args:
        body: the coded bytes.
        applied: the codings, in the order in which they were applied.
        limit: the maximum size in bytes of the result and of every intermediate result.

    Raises:
        DecodedTooLargeError: the result or an intermediate result is larger than the limit.
        ContentCodingError: a coding is unknown, there are too many, or the body is malformed.
    """
    if len(applied) > _MOST_CODINGS:
        raise ContentCodingError(f"more than {_MOST_CODINGS} content codings")
    for name in reversed(applied):
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise ContentCodingError(f"the content coding '{name}' is not known")
        try:
            body = decoder(body, limit)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
            raise ContentCodingError(
                f"the body is not in the content coding '{name}': {error}"
            ) from None
    return body


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _members(make: Callable[[], _Decoder], body: bytes, limit: int) -> bytes:
    # gzip members and zstd frames may follow one another (RFC 1952, 2.2; RFC 8878, 3.1).
    pieces: list[bytes] = []
    room = limit
    while body:
        decoder = make()
        piece = decoder.decompress(body, room + 1)
        room -= len(piece)
        if room < 0:
            raise _too_large(limit)
        if not decoder.eof:
            raise EOFError("it ends early")
        pieces.append(piece)
        if len(pieces) > _MOST_MEMBERS:
            raise EOFError(f"it has more than {_MOST_MEMBERS} members")
        body = decoder.unused_data
    return b"".join(pieces)


def _gzip(body: bytes, limit: int) -> bytes:
    return _members(lambda: zlib.decompressobj(wbits=31), body, limit)


def _deflate(body: bytes, limit: int) -> bytes:
    # "deflate" is the zlib format (RFC 9110, 8.4.1.2); some senders omit the zlib header.
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
    return _members(lambda: zlib.decompressobj(wbits=15 if wrapped else -15), body, limit)


def _zstd(body: bytes, limit: int) -> bytes:
    return _members(zstd.ZstdDecompressor, body, limit)


def _brotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    decoded: bytes = decoder.process(body, output_buffer_limit=limit + 1)
    if len(decoded) > limit or not decoder.can_accept_more_data():
        raise _too_large(limit)
    if not decoder.is_finished():
        raise EOFError("it ends early")
    return decoded


def _too_large(limit: int) -> DecodedTooLargeError:
    return DecodedTooLargeError(f"the decoded body is larger than {limit} bytes")


_DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
