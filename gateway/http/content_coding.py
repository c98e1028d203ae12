"""Decoding of content codings (RFC 9110, section 8.4.1), with a limit on the decoded size."""

import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Protocol

# brotli is Google's own binding, which can limit its output. zstd is in the standard library from
# Python 3.14 on; backports.zstd provides the same module for earlier versions.
import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


# Genuine bodies have fewer codings and members. Each coding or member costs a pass over all
# following bytes, so thousands of tiny ones would delay all other requests.
_MOST_CODINGS = 8
_MOST_MEMBERS = 256
# The number of bytes decoded at a time. Joining all pieces of a large body at once would block
# other threads. A BytesIO grows without copying all of its content, and returns it without a copy.
_STEP = 64 * 1024


class ContentCodingError(Exception):
    """The body cannot be decoded according to its Content-Encoding."""


class DecodedTooLargeError(ContentCodingError):
    """The decoded body exceeds the limit of bytes or elements."""


def codings(values: Sequence[bytes]) -> list[str]:
    """Return the codings listed in Content-Encoding, in the order in which they were applied."""
    members = (member.strip(b" \t").lower() for value in values for member in value.split(b","))
    names = [member.decode("latin-1") for member in members if member]
    return [name for name in names if name != "identity"]


Take = Callable[[bytes], None]
"""Receives a piece of the decoded body; may raise DecodedTooLargeError."""


def _take(_: bytes) -> None:
    """Accept every piece."""


def decode(body: bytes, applied: Sequence[str], limit: int, take: Take = _take) -> bytes:
    """Return the decoded body.

    Args:
        limit: the maximum size in bytes of the result and of every intermediate result.

    Raises:
        DecodedTooLargeError: the result or an intermediate result exceeds `limit`, or `take` raised
            this error.
        ContentCodingError: a coding is unknown, there are too many codings, or the body is
            malformed.
    """
    if not applied:
        take(body)
        return body
    _check_known(applied)
    for left in reversed(range(len(applied))):
        decoder = _CodingDecoder(applied[left], _MOST_MEMBERS)
        decoded = BytesIO()
        for piece in decoder.pieces(body):
            if decoded.tell() + len(piece) > limit:
                raise DecodedTooLargeError(f"the decoded body is larger than {limit} bytes")
            if not left:
                take(piece)
            decoded.write(piece)
        decoder.end()
        body = decoded.getvalue()
    return body


def known(applied: Sequence[str]) -> bool:
    return len(applied) <= _MOST_CODINGS and all(name in _MEMBERS for name in applied)


def _check_known(applied: Sequence[str]) -> None:
    if len(applied) > _MOST_CODINGS:
        raise ContentCodingError(f"more than {_MOST_CODINGS} content codings")
    for name in applied:
        if name not in _MEMBERS:
            raise ContentCodingError(f"the content coding '{name}' is not known")


class StreamDecoder:
    """Decodes a body while it arrives; raises ContentCodingError for an unknown coding."""

    def __init__(self, applied: Sequence[str]) -> None:
        _check_known(applied)
        self._decoders = [_CodingDecoder(name) for name in reversed(applied)]

    def pieces(self, data: bytes, left: int = 0) -> Iterator[bytes]:
        """Yield pieces of limited size, some of them empty; raises ContentCodingError.

        `left` is the number of codings that are already removed from `data`.
        """
        if left == len(self._decoders):
            yield data
            return
        for piece in self._decoders[left].pieces(data):
            yield from self.pieces(piece, left + 1)

    def end(self) -> None:
        """Raise ContentCodingError if the body is incomplete."""
        for decoder in self._decoders:
            decoder.end()


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Inflater:
    """zlib's decoder; zlib itself leaves the buffering of the input to its caller."""

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
    unused_data = b""  # brotli itself refuses data after its end

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


def _deflate(begin: bytes) -> _Decoder:
    # "deflate" means the zlib format (RFC 9110, 8.4.1.2); some senders omit the zlib header.
    wrapped = len(begin) > 1 and begin[0] & 0x0F == 8 and int.from_bytes(begin[:2]) % 31 == 0
    return _Inflater(15 if wrapped else -15)


# The functions that create the decoder of a member. For deflate, the function needs the first two
# bytes of the member.
_MEMBERS: Mapping[str, Callable[[bytes], _Decoder]] = {
    "gzip": lambda _: _Inflater(31),
    "x-gzip": lambda _: _Inflater(31),
    "deflate": _deflate,
    "br": lambda _: _BrotliDecoder(),
    "zstd": lambda _: zstd.ZstdDecompressor(),
}


class _CodingDecoder:
    def __init__(self, name: str, most: int | None = None) -> None:
        self._name = name
        self._most = most
        self._count = 0
        self._member: _Decoder | None = None
        self._begun = b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        data, self._begun = self._begun + data, b""
        begin, full = 0, False
        while True:
            member = self._member
            if member is None or member.eof:
                if len(data) - begin < (2 if self._name == "deflate" else 1):
                    self._begun = data[begin:]
                    return
                member = self._next(data[begin : begin + 2])
            hungry = member.needs_input
            if hungry and begin == len(data) and not full:
                return
            given = data[begin : begin + _STEP] if hungry else b""
            begin += len(given)
            try:
                piece = member.decompress(given, _STEP)
            except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
                raise self._malformed(error) from None
            full = len(piece) >= _STEP
            if member.eof:
                begin -= len(member.unused_data)
            yield piece

    def end(self) -> None:
        if self._begun or (self._member is not None and not self._member.eof):
            raise self._malformed("it ends early")

    def _next(self, begin: bytes) -> _Decoder:
        # A body can consist of several gzip members or zstd frames (RFC 1952, 2.2; RFC 8878, 3.1).
        if self._count and self._name == "br":
            raise self._malformed("it continues after its end")
        if self._count == self._most:
            raise self._malformed(f"it has more than {self._most} members")
        self._count += 1
        self._member = made = _MEMBERS[self._name](begin)
        return made

    def _malformed(self, why: object) -> ContentCodingError:
        return ContentCodingError(f"the body is not in the content coding '{self._name}': {why}")


CODINGS = ("zstd", "gzip", "br")
"""The codings of responses, ordered by preference for clients without a preference of their own."""

_MEMBER = re.compile(
    r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:[ \t]*;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?\Z"
)
LONGEST_ACCEPT_ENCODING = 1024
"""The longest Accept-Encoding to parse, in characters. A value of 64 KiB would take 20 ms."""


@lru_cache(maxsize=256)  # clients send few different values
def accepted_coding(text: str) -> str | None:
    """Return the coding that a client prefers by its Accept-Encoding (RFC 9110, section 12.5.3).

    Callers must not pass a value longer than `LONGEST_ACCEPT_ENCODING`, but treat it like None.
    """
    weights: dict[str, float] = {}
    for member in text.split(","):
        match = _MEMBER.match(member.strip(" \t"))
        if match is not None:
            name = match[1].lower()
            weights.setdefault("gzip" if name == "x-gzip" else name, float(match[2] or 1))
    other = weights.get("*", 0.0)
    best = max(CODINGS, key=lambda coding: weights.get(coding, other))
    weight = weights.get(best, other)
    # If identity is not listed, it is acceptable but not preferred to any coding.
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None
