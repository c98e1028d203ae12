"""Compression of converted responses, which the gateway requests uncompressed from services."""

import asyncio
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

# brotli and zstd: the libraries that `content_coding` also uses for decoding.
import brotli

from gateway.base.headers import DIGESTS, HeaderFields
from gateway.conversion.formats.body_format import BodyFormat, format_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# The minimum size in bytes of a body to compress. A smaller body fits into one packet together with
# the head, so compression would cost more than it saves.
LEAST = 1024
# Bodies of more bytes are compressed in a thread, so that other requests do not wait for them.
_AT_ONCE = 16 * 1024
_LENGTH = b"Content-Length"
_OF_BYTES = DIGESTS | {b"content-encoding"}
# Formats that are not compressed. Some proxies buffer compressed responses, and would delay the
# events of an event stream.
_AS_THEY_ARE = (
    BodyFormat.EVENT_STREAM,
    BodyFormat.UNTYPED,
    BodyFormat.PASSED,
    BodyFormat.OTHER,
)


def is_compressible(method: str, fields: HeaderFields, body: object) -> bool:
    """Return whether a response has a body and a media type that may be compressed.

    A response to HEAD is treated as the response to GET would be.
    """
    return (body is not None or method == "HEAD") and format_of(fields) not in _AS_THEY_ARE


async def compressed(
    fields: HeaderFields, body: bytes, coding: str
) -> tuple[HeaderFields, bytes] | None:
    """Return the fields and the compressed body; None if it stays uncompressed."""
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
    """Compress a streamed response if that is allowed, and return its header fields and body.

    Each piece is flushed, so that the client can read it immediately. Event streams are not
    compressed.
    """
    if format_of(fields) in _AS_THEY_ARE or _must_stay(fields):
        return fields, pieces
    return [*fields, (b"Content-Encoding", coding.encode())], _pieces(pieces, _CODERS[coding]())


class _Coder(NamedTuple):
    """`add` also flushes a piece, so that the receiver can decode all of it."""

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
    """Return whether a body must not be compressed, or already is.

    Cache-Control may forbid compression (RFC 9111, section 5.2.2.6). An unaltered body may have
    digests, which compression would invalidate.
    """
    return any(
        (lower := name.lower()) in _OF_BYTES
        or (lower == b"cache-control" and b"no-transform" in value.lower())
        for name, value in fields
    )


def _gzip(body: bytes) -> bytes:
    # The gzip header gets no modification time, so that equal bodies give equal bytes.
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
