"""PROXY protocol headers: valid ones and invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.client.proxy_protocol import ProxyHeader, ProxyHeaderError, parse_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
IPV4 = b"\xcb\0\x71\x07" + b"\x7f\0\0\1" + b"\1\2\3\4"
IPV6 = b"\x20\1\x0d\xb8" + bytes(11) + b"\7" + bytes(16) + b"\1\2\3\4"


def version_2(command: int, family: int, addresses: bytes) -> bytes:
    return SIGNATURE + bytes((command, family)) + len(addresses).to_bytes(2) + addresses


IPV6_MAPPED = bytes(10) + b"\xff\xff" + bytes((203, 0, 113, 7)) + bytes(20)
VALID = {
    "TCP4": (b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 443\r\n", "203.0.113.7"),
    "TCP6": (b"PROXY TCP6 2001:db8::7 ::1 40000 443\r\n", "2001:db8::7"),
    "TCP6, mapped": (b"PROXY TCP6 ::ffff:cb00:7107 ::1 40000 443\r\n", "203.0.113.7"),
    "version 2, mapped": (version_2(0x21, 0x21, IPV6_MAPPED), "203.0.113.7"),
    "UNKNOWN": (b"PROXY UNKNOWN\r\n", None),
    "UNKNOWN with addresses": (b"PROXY UNKNOWN ffff:f...f:ffff 1 2 3\r\n", None),
    "version 2, IPv4": (version_2(0x21, 0x11, IPV4), "203.0.113.7"),
    "version 2, IPv6": (version_2(0x21, 0x21, IPV6), "2001:db8::7"),
    "version 2, more values": (version_2(0x21, 0x11, IPV4 + b"\4\0\1x"), "203.0.113.7"),
    "version 2, the balancer's own": (version_2(0x20, 0x00, b""), None),
    "version 2, another protocol": (version_2(0x21, 0x31, bytes(216)), None),
}


@pytest.mark.parametrize(("header", "client"), VALID.values(), ids=VALID)
def test_a_header_is_parsed_however_it_is_split(header: bytes, client: str | None) -> None:
    for length in range(len(header)):
        assert parse_header(header[:length]) is None
    assert parse_header(header + b"GET / HTTP/1.1\r\n") == ProxyHeader(len(header), client)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01",
        b"PROXY TCP4 203.0.113.7 127.0.0.1 40000\r\n",
        b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 99999\r\n",
        b"PROXY TCP4 2001:db8::7 ::1 40000 443\r\n",
        b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 443\n",
        b"PROXY TCP4 \xff\xff 127.0.0.1 40000 443\r\n",
        b"PROXY TCP5 203.0.113.7 127.0.0.1 40000 443\r\n",
        b"PROXY UNKNOWN" + b" " * 100,
        version_2(0x11, 0x11, IPV4),
        version_2(0x22, 0x11, IPV4),
        version_2(0x21, 0x11, IPV4[:8]),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
)
def test_a_connection_without_a_valid_header_is_refused(data: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        parse_header(data)


@given(st.binary(max_size=200) | st.binary(max_size=80).map(b"PROXY TCP4 ".__add__))
def test_any_bytes_are_parsed_or_incomplete_or_refused(data: bytes) -> None:
    try:
        header = parse_header(data)
    except ProxyHeaderError:
        return
    assert header is None or header.size <= len(data)
