"""Compression of converted responses. The gateway requests them from services uncompressed."""

import asyncio
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

# brotli and zstd: the libraries that `content_coding` decodes with.
import brotli

from gateway.base.headers import DIGESTS, HeaderFields
from gateway.conversion.formats.body_format import BodyFormat, format_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# The minimum size of a compressed body in bytes. A smaller body fits into one packet with its head,
# so compression costs more than it saves.
LEAST = 1024
# A body of more bytes is compressed in a thread, so that other requests do not wait for it.
_AT_ONCE = 16 * 1024
_LENGTH = b"Content-Length"
_OF_BYTES = DIGESTS | {b"content-encoding"}
# These formats are not compressed. Some proxies buffer compressed responses, and would delay the
# events of an event stream.
_AS_THEY_ARE = (
    BodyFormat.EVENT_STREAM,
    BodyFormat.UNTYPED,
    BodyFormat.PASSED,
    BodyFormat.OTHER,
)


def takes(method: str, fields: HeaderFields, body: object) -> bool:
    """Return whether a response may be compressed, by its body and media type.

    A response to HEAD is treated like a response to GET: without a Content-Type, it has no body.

    Args:
        method: the method of the request.
        fields: the header fields of the response.
        body: the stream; None without a body.
    """
    return (body is not None or method == "HEAD") and format_of(fields) not in _AS_THEY_ARE


async def compressed(
    fields: HeaderFields, body: bytes, coding: str
) -> tuple[HeaderFields, bytes] | None:
    """Return the fields and the body of a response in a coding; None if it stays uncompressed.

    Args:
        fields: the header fields, including Content-Length.
        body: the body without a coding.
        coding: the name of the coding.
    """
    if len(body) < LEAST or _must_stay(fields):
        return None
    encode = _ENCODERS[coding]
    coded = encode(body) if len(body) <= _AT_ONCE else await asyncio.to_thread(encode, body)
    if len(coded) >= len(body):
        return None
    kept = [line for line in fields if line[0] != _LENGTH]
    kept += ((b"Content-Encoding", coding.encode()), (_LENGTH, b"%d" % len(coded)))
    return kept, coded


def compressed_stream(
    fields: HeaderFields, pieces: AsyncIterator[bytes], coding: str
) -> tuple[HeaderFields, AsyncIterator[bytes]]:
    """Return the fields and the body of a streamed response, compressed if that is allowed.

    Each piece is flushed, so the client can read it immediately. An event stream is not compressed.

    Args:
        fields: the header fields.
        pieces: the body without a coding, piece by piece.
        coding: the name of the coding.
    """
    if format_of(fields) in _AS_THEY_ARE or _must_stay(fields):
        return fields, pieces
    return [*fields, (b"Content-Encoding", coding.encode())], _pieces(pieces, _CODERS[coding]())


class _Coder(NamedTuple):
    """The encoder of one stream.

    Attributes:
        add: Encodes a piece, and flushes it so that the receiver can decode all of it.
        end: Returns the end of the encoded stream.
    """

    add: Callable[[bytes], bytes]
    end: Callable[[], bytes]


async def _pieces(pieces: AsyncIterator[bytes], coder: _Coder) -> AsyncIterator[bytes]:
    async for piece in pieces:
        small = len(piece) <= _AT_ONCE
        yield coder.add(piece) if small else await asyncio.to_thread(coder.add, piece)
    yield coder.end()


def _gzip_coder() -> _Coder:
    coder = zlib.compressobj(5, zlib.DEFLATED, 31)
    return _Coder(
        lambda piece: coder.compress(piece) + coder.flush(zlib.Z_SYNC_FLUSH), lambda: coder.flush()
    )


def _brotli_coder() -> _Coder:
    coder = brotli.Compressor(quality=4)
    return _Coder(lambda piece: coder.process(piece) + coder.flush(), lambda: coder.finish())


def _zstd_coder() -> _Coder:
    coder = zstd.ZstdCompressor(3)
    return _Coder(lambda piece: coder.compress(piece, coder.FLUSH_BLOCK), lambda: coder.flush())


_CODERS: Mapping[str, Callable[[], _Coder]] = {
    "gzip": _gzip_coder,
    "br": _brotli_coder,
    "zstd": _zstd_coder,
}


def _must_stay(fields: HeaderFields) -> bool:
    """Return whether a body must not be compressed (RFC 9111, section 5.2.2.6), or already is.

    An unaltered body may have digests, which compression would invalidate.
    """
    return any(
        (lower := name.lower()) in _OF_BYTES
        or (lower == b"cache-control" and b"no-transform" in value.lower())
        for name, value in fields
    )


def _gzip(body: bytes) -> bytes:
    # The gzip header has no modification time, so equal bodies give equal bytes.
    coder = zlib.compressobj(5, zlib.DEFLATED, 31)
    return coder.compress(body) + coder.flush()


def _brotli(body: bytes) -> bytes:
    coded: bytes = brotli.compress(body, quality=4)
    return coded


def _zstd(body: bytes) -> bytes:
    return zstd.compress(body, 3)


_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "br": _brotli,
    "zstd": _zstd,
}
