"""Content codings are decoded within a size limit, whatever size they expand to."""

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest

from gateway.http.content_coding import ContentCodingError, DecodedTooLargeError, codings, decode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def bare(data: bytes) -> bytes:
    """Compress with deflate but without the zlib header, as some senders do."""
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: bytes(brotli.compress(body, quality=1)),
    "zstd": zstd.compress,
}
BODIES = [b"", b"a", b"\x78\x9c\x00", bytes(10_000), b'{"name":"Bob"}' * 1000]


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("body", BODIES, ids=len)
def test_an_encoded_body_is_decoded(name: str, body: bytes) -> None:
    coded = ENCODERS[name](body)
    assert decode(coded, [name], len(body)) == body


@pytest.mark.parametrize("body", BODIES, ids=len)
def test_deflate_without_a_zlib_header_is_decoded(body: bytes) -> None:
    assert decode(bare(body), ["deflate"], len(body)) == body


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_body_of_several_members_is_decoded(name: str) -> None:
    encode = ENCODERS[name]
    assert decode(encode(b"one") + encode(b"") + encode(b"two"), [name], 6) == b"onetwo"
    with pytest.raises(DecodedTooLargeError):
        decode(encode(b"one") + encode(b"two"), [name], 5)


def test_the_last_applied_coding_is_decoded_first() -> None:
    coded = brotli.compress(gzip.compress(zlib.compress(b"body")))
    assert decode(coded, ["deflate", "gzip", "br"], 100) == b"body"
    with pytest.raises(ContentCodingError):
        decode(coded, ["br", "gzip", "deflate"], 100)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([], []),
        ([b"gzip"], ["gzip"]),
        ([b"GZip , BR"], ["gzip", "br"]),
        ([b"gzip", b"br"], ["gzip", "br"]),
        ([b"identity, , gzip,"], ["gzip"]),
        ([b""], []),
    ],
)
def test_content_encoding_is_split_into_codings(values: list[bytes], names: list[str]) -> None:
    assert codings(values) == names


@pytest.mark.parametrize("name", ENCODERS)
def test_a_body_one_byte_above_the_limit_is_refused(name: str) -> None:
    coded = ENCODERS[name](bytes(1001))
    assert len(decode(coded, [name], 1001)) == 1001
    with pytest.raises(DecodedTooLargeError, match="larger than 1000 bytes"):
        decode(coded, [name], 1000)


@pytest.mark.parametrize("name", ENCODERS)
def test_decoding_a_bomb_uses_no_more_memory_than_the_limit_allows(name: str) -> None:
    """100 MB of zeros compress to a few bytes. The body is refused before it is expanded."""
    coded = ENCODERS[name](bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DecodedTooLargeError):
            decode(coded, [name], 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_nested_bomb_is_refused_at_the_first_coding() -> None:
    coded = gzip.compress(gzip.compress(bytes(50_000_000)))
    with pytest.raises(DecodedTooLargeError):
        decode(coded, ["gzip", "gzip"], 10_000)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda coded: coded[:-1],
        lambda coded: coded[: len(coded) // 2],
        lambda coded: coded[:1],
        lambda coded: b"{}",
        lambda coded: coded + b"tail",
        lambda coded: coded[:2] + b"\xff\xff" + coded[4:],
    ],
    ids=["cut", "half", "one byte", "plain", "tail", "spoilt"],
)
def test_a_damaged_body_is_refused(name: str, spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ContentCodingError):
        decode(spoil(ENCODERS[name](bytes(range(256)) * 4)), [name], 10_000)


@pytest.mark.parametrize("name", ["compress", "zip", "*", "\xe9", "gzip;q=1"])
def test_an_unknown_coding_is_refused(name: str) -> None:
    with pytest.raises(ContentCodingError, match="not known"):
        decode(b"", [name], 1)


def test_too_many_codings_or_members_are_refused() -> None:
    with pytest.raises(ContentCodingError, match="more than 8"):
        decode(b"", ["gzip"] * 9, 1)
    with pytest.raises(ContentCodingError, match="more than 256"):
        decode(gzip.compress(b"") * 100_000, ["gzip"], 1_000_000)
