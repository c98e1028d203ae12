"""Decoding of content codings (RFC 9110, section 8.4.1), with a bound on the decoded size."""

import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
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
# The bytes that are decoded at a time. Putting all of a large body together at once would keep
# other threads waiting; a BytesIO grows, and gives what it has, without copying it.
_STEP = 64 * 1024


class ContentCodingError(Exception):
    """The body cannot be decoded by its Content-Encoding."""


class DecodedTooLargeError(ContentCodingError):
    """The decoded body has more bytes or elements than the limit."""


def codings(values: Sequence[bytes]) -> list[str]:
    """Return the codings that Content-Encoding lists, in the order in which they were applied."""
    members = (member.strip(b" \t").lower() for value in values for member in value.split(b","))
    names = [member.decode("latin-1") for member in members if member]
    return [name for name in names if name != "identity"]


Take = Callable[[bytes], None]
"""Takes a piece of what is decoded; it may raise DecodedTooLargeError."""


def _take(_: bytes) -> None:
    """Take any."""


def decode(body: bytes, applied: Sequence[str], limit: int, take: Take = _take) -> bytes:
    """Return the decoded body.

    Args:
        body: the coded bytes.
        applied: the codings, in the order in which they were applied.
        limit: the maximum size in bytes of the result and of every intermediate result.
        take: takes each piece of the result as it is decoded, and so ends it early.

    Raises:
        DecodedTooLargeError: the result or an intermediate result is larger than the limit, or
            too large for what takes the pieces.
        ContentCodingError: a coding is unknown, there are too many, or the body is malformed.
    """
    if len(applied) > _MOST_CODINGS:
        raise ContentCodingError(f"more than {_MOST_CODINGS} content codings")
    if not applied:
        take(body)
    for left in reversed(range(len(applied))):
        name = applied[left]
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise ContentCodingError(f"the content coding '{name}' is not known")
        try:
            body = decoder(body, limit, _take if left else take)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
            raise ContentCodingError(
                f"the body is not in the content coding '{name}': {error}"
            ) from None
    return body


class _Decoder(Protocol):
    """What decodes one member; it keeps the input that it has not used yet."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Inflater:
    """The decoder of zlib, which leaves it to its caller to keep the input."""

    def __init__(self, wbits: int) -> None:
        self._decoder = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


class _BrotliDecoder:
    """The decoder of brotli, by the names that the others have."""

    unused_data = b""  # it refuses what follows its end

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._decoder.is_finished())

    @property
    def needs_input(self) -> bool:
        return bool(self._decoder.can_accept_more_data())

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._decoder.process(data, output_buffer_limit=max_length))


def _members(make: Callable[[], _Decoder], body: bytes, limit: int, take: Take) -> bytes:
    # gzip members and zstd frames may follow one another (RFC 1952, 2.2; RFC 8878, 3.1).
    decoded = BytesIO()
    begin = members = 0
    while begin < len(body):
        if members == _MOST_MEMBERS:
            raise EOFError(f"it has more than {_MOST_MEMBERS} members")
        begin = _member(make(), body, begin, decoded, limit, take)
        members += 1
    return decoded.getvalue()


def _member(
    decoder: _Decoder, body: bytes, begin: int, decoded: BytesIO, limit: int, take: Take
) -> int:
    """Append what one member is decoded to, in steps; return where the member ends."""
    while not decoder.eof:
        hungry = decoder.needs_input
        data = body[begin : begin + _STEP] if hungry else b""
        begin += len(data)
        piece = decoder.decompress(data, _STEP)
        if hungry and not (data or piece or decoder.eof):
            raise EOFError("it ends early")
        if decoded.tell() + len(piece) > limit:
            raise _too_large(limit)
        take(piece)
        decoded.write(piece)
    return begin - len(decoder.unused_data)


def _gzip(body: bytes, limit: int, take: Take) -> bytes:
    return _members(lambda: _Inflater(31), body, limit, take)


def _deflate(body: bytes, limit: int, take: Take) -> bytes:
    # "deflate" is the zlib format (RFC 9110, 8.4.1.2); some senders omit the zlib header.
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
    return _members(lambda: _Inflater(15 if wrapped else -15), body, limit, take)


def _zstd(body: bytes, limit: int, take: Take) -> bytes:
    return _members(zstd.ZstdDecompressor, body, limit, take)


def _brotli(body: bytes, limit: int, take: Take) -> bytes:
    decoded = BytesIO()
    if _member(_BrotliDecoder(), body, 0, decoded, limit, take) < len(body):
        raise EOFError("it goes on behind its end")
    return decoded.getvalue()


def _too_large(limit: int) -> DecodedTooLargeError:
    return DecodedTooLargeError(f"the decoded body is larger than {limit} bytes")


_DECODERS: Mapping[str, Callable[[bytes, int, Take], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
