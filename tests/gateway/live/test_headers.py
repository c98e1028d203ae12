"""Header fields over sockets: which are forwarded, dropped and added."""

import re
from functools import partial
from itertools import pairwise

import pytest

from tests.gateway.kit import Program, Stack, wait_for
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Message, answer, ask, chunked, get, send

TRUSTED = "127.0.0.2"  # trusted_proxies of house.yaml

END_TO_END: list[str | bytes] = [
    "X-Twice: one",
    "x-tWICE:two",
    "Cookie: a=b",
    "Authorization: Bearer x",
    "X-Empty:",
    b"X-Bytes: " + bytes(range(0x80, 0x100)),
    b"X-Visible: " + bytes(range(0x21, 0x7F)),
    "X-Text: caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "X-Twice: three",
    "accept: a/b",
    "X-White:  a  b\t c \t",
    "X-Comma: a,,b ,",
    "X-API-VERSION: 2",
    "Cache-Control: no-cache",
    'If-None-Match: W/"a", "b"',
    "Range: bytes=0-1",
    "!#$%&'*+-.^_`|~: odd name",
    # Only the operator knows whether a service trusts this field; docs/http.md explains this.
    "X-Real-IP: 192.0.2.1",
]
ARRIVES = [
    (b"X-Twice", b"one"),
    (b"x-tWICE", b"two"),
    (b"Cookie", b"a=b"),
    (b"Authorization", b"Bearer x"),
    (b"X-Empty", b""),
    (b"X-Bytes", bytes(range(0x80, 0x100))),
    (b"X-Visible", bytes(range(0x21, 0x7F))),
    (b"X-Text", b"caf\xc3\xa9"),
    (b"X-Twice", b"three"),
    (b"accept", b"a/b"),
    (b"X-White", b"a  b\t c"),
    (b"X-Comma", b"a,,b ,"),
    (b"X-API-VERSION", b"2"),
    (b"Cache-Control", b"no-cache"),
    (b"If-None-Match", b'W/"a", "b"'),
    (b"Range", b"bytes=0-1"),
    (b"!#$%&'*+-.^_`|~", b"odd name"),
    (b"X-Real-IP", b"192.0.2.1"),
]


def names(message: Message) -> set[bytes]:
    return {name.lower() for name, _ in message.fields}


def in_order(part: list[tuple[bytes, bytes]], whole: list[tuple[bytes, bytes]]) -> bool:
    start = whole.index(part[0])
    return whole[start : start + len(part)] == part


class TestRequest:
    def test_end_to_end_request_fields_are_forwarded_unchanged(self, house: House) -> None:
        get(house.gateway, "/plain", *END_TO_END)
        assert in_order(ARRIVES, house.service.last.fields)

    @pytest.mark.parametrize(
        "named", ["Host", "Content-Length", "Via", "X-Request-Id", "X-Forwarded-For", "Forwarded"]
    )
    def test_connection_cannot_drop_fields_that_the_gateway_adds(
        self, house: House, named: str
    ) -> None:
        got = ask(house.gateway, "POST", "/plain", f"Connection: {named}", body=b"abc")
        assert got.status == 200
        asked = house.service.last
        assert asked.body == b"abc"
        assert asked.one("Host") == b"api.test"
        assert asked.one("Via") == b"1.1 version-gateway"
        assert asked.one("X-Forwarded-For") == b"127.0.0.1"
        assert len(asked.one("Forwarded")) > 0
        assert len(asked.one("X-Request-Id")) > 0

    @pytest.mark.parametrize(
        "named",
        [*("X-API-VERSION", "close,\tx-api-version ", "Authorization", "cookie"), "X-\xc4, Cookie"],
    )
    def test_connection_cannot_drop_fields_that_the_gateway_reads(
        self, house: House, named: str
    ) -> None:
        """Otherwise the service would see another version or client than the gateway selected."""
        fields = (f"Connection: {named}", "X-API-VERSION: 1", "Authorization: a", "Cookie: b=c")
        got = get(house.gateway, "/native/header", *fields)
        assert (got.status, b'"bad_request"' in got.body) == (400, True)
        assert not house.service.asked

    @pytest.mark.parametrize(
        "name", ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override"]
    )
    def test_header_fields_cannot_override_the_method(self, house: House, name: str) -> None:
        """The gateway allows, converts, retries and shadows by the method in the request line."""
        got = ask(house.gateway, "POST", "/plain", f"{name}: delete", body=b"abc")
        assert (got.status, b'"bad_request"' in got.body) == (400, True)
        assert not house.service.asked
        assert ask(house.gateway, "POST", "/plain", f"{name}: post", body=b"abc").status == 200
        assert house.service.last.one(name) == b"post"
        spelt = name.replace("-", "_")
        assert ask(house.gateway, "POST", "/plain", f"{spelt}: delete", body=b"a").status == 200
        assert not house.service.last.all(spelt)

    def test_via_is_appended_to_that_of_the_client(self, house: House) -> None:
        get(house.gateway, "/plain", "Via: 1.0 fred", "vIA: 1.1 p.example")
        via = house.service.last.all("Via")
        assert via == [b"1.0 fred", b"1.1 p.example", b"1.1 version-gateway"]

    @pytest.mark.parametrize(
        ("host", "authority"),
        [
            ("api.test", "api.test"),
            ("API.Test:8443", "API.Test:8443"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("10.0.0.1", "10.0.0.1"),
            (" api.test ", "api.test"),
        ],
    )
    def test_the_host_of_the_client_is_forwarded(
        self, house: House, host: str, authority: str
    ) -> None:
        assert get(house.gateway, "/plain", f"Host: {host}").status == 200
        asked = house.service.last
        assert asked.one("Host") == authority.encode()
        assert asked.one("X-Forwarded-Host") == authority.encode()
        assert asked.one("Forwarded") == f'for=127.0.0.1;host="{authority}";proto=http'.encode()

    def test_an_absolute_target_overrides_host(self, house: House) -> None:
        get(house.gateway, "http://other.test:81/plain?a=http://x", "Host: api.test")
        asked = house.service.last
        assert asked.line == b"GET /plain?a=http://x HTTP/1.1"
        assert asked.one("Host") == b"other.test:81"
        assert asked.one("X-Forwarded-Host") == b"other.test:81"

    def test_http_1_0_clients_may_omit_host(self, house: House) -> None:
        assert send(house.gateway, b"GET /plain HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert house.service.last.one("Host") == b"127.0.0.1:%d" % house.gateway.port

    def test_only_one_request_id_is_forwarded(self, house: House) -> None:
        got = get(house.gateway, "/plain", "X-Request-Id: first", "X-Request-Id: second")
        assert got.one("X-Request-Id") == house.service.last.one("X-Request-Id")


SPOOFED = [
    *("Forwarded: for=10.9.9.9;host=evil.test;proto=https", "X-Forwarded-For: 10.9.9.9"),
    *("x-forwarded-for: 10.8.8.8", "X-Forwarded-Host: evil.test", "X-FORWARDED-PROTO: https"),
    *("X-Forwarded-Port: 443", "X-Forwarded-Prefix: /evil", "X-Forwarded-Server: evil.test"),
    *("X-Forwarded-Ssl: on", "X-Forwarded-Scheme: https"),
]
NGINX = [
    *("X-Forwarded-For: 10.9.9.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.test"),
    "X-Forwarded-Port: 8443",
]
FURTHER = ["X-Forwarded-Port: 443", "X-Forwarded-Prefix: /a", "x-forwarded-ssl: on"]
SHOP = 'for=10.9.9.9;host="shop.test:8443";proto=https'
CLIENT, PROXY = (f'for={ip};host="api.test";proto=http' for ip in ("127.0.0.1", TRUSTED))
BY_PROXY = "127.0.0.2 api.test http"
# The sender's address and fields; Forwarded; X-Forwarded-For, -Host and -Proto; other such fields.
FORWARDING: dict[str, tuple[str, list[str], str, str, list[str]]] = {
    "fields of a client are replaced": (
        *("127.0.0.1", SPOOFED, CLIENT, "127.0.0.1 api.test http", []),
    ),
    "spellings that CGI confuses with them are dropped": (
        *("127.0.0.1", [line.replace("-", "_") for line in SPOOFED[1:]], CLIENT),
        *("127.0.0.1 api.test http", []),
    ),
    "fields of a proxy are extended": (
        TRUSTED,
        [
            *("Forwarded: for=10.9.9.9;proto=https", "X-Forwarded-For: 10.9.9.9, 10.8.8.8"),
            *("X-Forwarded-Host: public.test", "X-Forwarded-Proto: https"),
        ],
        f"for=10.9.9.9;proto=https, {PROXY}",
        *("10.9.9.9, 10.8.8.8, 127.0.0.2 public.test https", []),
    ),
    "a proxy that sets one kind, as nginx and Envoy do": (
        *(TRUSTED, NGINX, f"{SHOP}, {PROXY}", "10.9.9.9, 127.0.0.2 shop.test https"),
        ["X-Forwarded-Port: 8443"],
    ),
    "a proxy that sets the other kind": (
        *(TRUSTED, [f"Forwarded: {SHOP}"], f"{SHOP}, {PROXY}"),
        *("10.9.9.9, 127.0.0.2 shop.test:8443 https", []),
    ),
    "several lines of a proxy are joined": (
        TRUSTED,
        [
            *("X-Forwarded-For: 10.9.9.9", "X-Forwarded-For: 10.8.8.8"),
            *("Forwarded: for=10.9.9.9", "forwarded: for=10.8.8.8"),
        ],
        f"for=10.9.9.9, for=10.8.8.8, {PROXY}",
        *("10.9.9.9, 10.8.8.8, 127.0.0.2 api.test http", []),
    ),
    "further fields of a proxy pass": (*(TRUSTED, FURTHER, PROXY, BY_PROXY, FURTHER),),
    "a proxy without these fields is the client": (TRUSTED, [], PROXY, BY_PROXY, []),
}


@pytest.mark.parametrize(
    ("source", "lines", "forwarded", "others", "further"), FORWARDING.values(), ids=FORWARDING
)
def test_forwarding_fields_describe_the_client(
    house: House, source: str, lines: list[str], forwarded: str, others: str, further: list[str]
) -> None:
    ask(house.gateway, "GET", "/plain", *lines, source=source)
    address, host, scheme = others.rsplit(" ", 2)
    said = [(f"{name.decode()}: {value.decode()}") for name, value in house.service.last.fields]
    assert sorted(line for line in said if "forwarded" in line.lower()) == sorted(
        [
            *(f"Forwarded: {forwarded}", f"X-Forwarded-For: {address}"),
            *(f"X-Forwarded-Host: {host}", f"X-Forwarded-Proto: {scheme}", *further),
        ]
    )


@pytest.mark.parametrize(
    "name",
    [
        *("X_Request_Id", "X-Request_Id", "x_request-ID", "Content_Length"),
        *("Transfer_Encoding", "X_API_VERSION", "x-api_version"),
    ],
)
def test_lookalikes_of_fields_that_the_gateway_reads_are_dropped(house: House, name: str) -> None:
    get(house.gateway, "/plain", f"{name}: 7", "X_Other: kept")
    asked = house.service.last
    assert name.encode() not in dict(asked.fields)
    assert asked.one("X_Other") == b"kept"


class TestTarget:
    @pytest.mark.parametrize(
        "target",
        [
            *("/plain", "/plain?", "/plain??", "/plain?a=b&a=b&&=&", "/plain?/../a//b"),
            *("/tail/a;b=c;d", "/tail/%", "/tail/...", "/tail/?x", "/tail/a/?x"),
        ],
    )
    def test_a_target_arrives_byte_for_byte(self, house: House, target: str) -> None:
        got = get(house.gateway, target)
        assert got.status == 200
        assert house.service.last.line == f"GET {target} HTTP/1.1".encode()

    @pytest.mark.parametrize("query", ["", "?", "?a=%7E&version=1&+;", "?version=1&version=%31"])
    def test_the_query_is_unchanged_when_the_service_has_another_path(
        self, house: House, query: str
    ) -> None:
        assert get(house.gateway, f"/native/v1{query}").status == 200
        assert house.service.last.line == f"GET /native/1{query} HTTP/1.1".encode()

    def test_converted_requests_name_the_version_of_the_service(self, house: House) -> None:
        house.service.answer = answer(b'{"name": {"firstName": "A"}}')
        assert get(house.gateway, "/down/param?a=b&version=1&c").json == {"name": "A"}
        assert house.service.last.line == b"GET /down/2?a=b&version=2&c HTTP/1.1"

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    def test_an_endpoint_without_methods_forwards_every_method(
        self, house: House, method: str
    ) -> None:
        assert ask(house.gateway, method, "/plain").status == 200
        assert house.service.last.line == f"{method} /plain HTTP/1.1".encode()


class TestResponse:
    def test_end_to_end_response_fields_are_forwarded_unchanged(self, house: House) -> None:
        sent = [*END_TO_END[:9], "Set-Cookie: a=b", "set-cookie: c=d", "Server: told", 'ETag: "x"']
        house.service.answer = answer(b"{}", *sent)
        got = get(house.gateway, "/plain")
        cookies = [(b"Set-Cookie", b"a=b"), (b"set-cookie", b"c=d"), (b"Server", b"told")]
        assert in_order([*ARRIVES[:9], *cookies, (b"ETag", b'"x"')], got.fields)

    def test_via_is_appended_to_that_of_the_service(self, house: House) -> None:
        house.service.answer = answer(b"{}", "Via: 1.1 inner")
        assert get(house.gateway, "/plain").all("Via") == [b"1.1 inner", b"1.1 version-gateway"]

    def test_status_and_reason_of_the_service_are_forwarded(self, house: House) -> None:
        for status in ("200 Fine", "299 Odd", "404 Caf\xe9", "418 I'm a teapot", "503 Busy"):
            house.service.answer = answer(b"x", status=status)
            got = get(house.gateway, "/plain")
            assert got.line == f"HTTP/1.1 {status}".encode()
            assert got.body == b"x"

    def test_a_missing_reason_phrase_is_added(self, house: House) -> None:
        house.service.answer = b"HTTP/1.1 202 \r\nContent-Length: 0\r\n\r\n"
        assert get(house.gateway, "/plain").line == b"HTTP/1.1 202 Accepted"

    def test_a_date_is_added_if_the_service_sends_none(self, house: House) -> None:
        date = get(house.gateway, "/plain").one("Date")
        assert re.fullmatch(rb"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", date)
        house.service.answer = answer(b"{}", "dAtE: Thu, 01 Jan 1970 00:00:00 GMT")
        assert get(house.gateway, "/plain").all("Date") == [b"Thu, 01 Jan 1970 00:00:00 GMT"]

    def test_the_request_id_of_the_service_is_replaced(self, house: House) -> None:
        house.service.answer = answer(b"{}", "X-Request-Id: other", "x-request-id: another")
        got = get(house.gateway, "/plain", "X-Request-Id: mine")
        assert got.one("X-Request-Id") == b"mine"

    @pytest.mark.parametrize(
        ("vary", "members"),
        [
            ("Vary: Accept-Encoding", ["accept-encoding", "x-api-version"]),
            ("Vary: Origin, x-Api-Version", ["origin", "x-api-version"]),
            ("vary: *", ["*"]),
            ("X: y", ["x-api-version"]),
        ],
    )
    def test_vary_is_joined_with_that_of_the_service(
        self, house: House, vary: str, members: list[str]
    ) -> None:
        house.service.answer = answer(b"{}", vary)
        got = get(house.gateway, "/native/header", "X-API-VERSION: 1")
        assert got.members("Vary") == members

    @pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
    def test_responses_that_cannot_have_a_body_have_none(self, house: House, status: str) -> None:
        house.service.answer = f'HTTP/1.1 {status}\r\nETag: "x"\r\n\r\n'.encode()
        got = get(house.gateway, "/plain")
        assert (got.line, got.body) == (f"HTTP/1.1 {status}".encode(), b"")
        assert got.one("ETag") == b'"x"'
        assert got.all("Transfer-Encoding") == []

    def test_a_refusal_does_not_end_the_connection(self, house: House) -> None:
        refused = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"
        body = b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"
        last = b"GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        data = send(house.gateway, refused + body + last)
        statuses = re.findall(rb"HTTP/1\.1 (\d+) ", data)
        assert statuses == [b"404", b"404", b"200"]

    @pytest.mark.parametrize("protocol", ["websocket", "h2c", "HTTP/2.0", "x"])
    def test_a_connection_continues_or_ends_after_an_ignored_upgrade(
        self, house: House, protocol: str
    ) -> None:
        wish = (
            f"GET /plain?1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
            f"Upgrade: {protocol}\r\n\r\n"
        )
        last = b"GET /plain?2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        data = send(house.gateway, wish.encode() + last, seconds=3)
        lines = [message.line for message in house.service.asked]
        assert lines == [b"GET /plain?1 HTTP/1.1", b"GET /plain?2 HTTP/1.1"][: len(lines)]
        assert data.count(b"HTTP/1.1 200 OK\r\n") == len(lines) > 0


class TestRequestBodies:
    BODY = bytes(range(256)) * 40

    def test_a_sized_body_keeps_its_length(self, house: House) -> None:
        assert ask(house.gateway, "POST", "/plain", body=self.BODY).status == 200
        assert house.service.last.body == self.BODY
        assert house.service.last.one("Content-Length") == b"10240"

    def test_a_chunked_body_stays_chunked(self, house: House) -> None:
        framed = chunked(*(self.BODY[i:j] for i, j in pairwise((0, 1, 9, 5000, 10240))))
        ask(house.gateway, "POST", "/plain", "Transfer-Encoding: chunked", body=framed)
        assert house.service.last.body == self.BODY
        assert house.service.last.one("Transfer-Encoding") == b"chunked"

    def test_a_request_without_a_body_gets_no_framing(self, house: House) -> None:
        ask(house.gateway, "POST", "/plain", "Content-Length: 0")
        assert house.service.last.one("Content-Length") == b"0"
        get(house.gateway, "/plain")
        assert not names(house.service.last) & {b"content-length", b"transfer-encoding"}

    def test_encoded_bodies_are_forwarded_unchanged(self, house: House) -> None:
        ask(house.gateway, "POST", "/plain", "Content-Encoding: gzip", body=b"no gzip")
        assert house.service.last.body == b"no gzip"
        assert house.service.last.one("Content-Encoding") == b"gzip"


def test_the_real_backends_see_the_same_request_id(stack: Stack) -> None:
    get(stack.gateway, "/v1/person", "X-Request-Id: one-of-a-kind")

    def logged(program: Program) -> list[int]:
        entries = program.log("request")
        return [e["status"] for e in entries if e["request_id"] == "one-of-a-kind"]

    for program in (stack.gateway, stack.backend_v1):
        assert wait_for(partial(logged, program)) == [200]
