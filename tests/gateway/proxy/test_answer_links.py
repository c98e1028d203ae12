"""URLs in messages are mapped. URLs that match no endpoint are counted and logged."""

import pytest

from gateway.proxy.record import without_query
from tests.gateway.live.raw import parse_answer
from tests.gateway.proxy.wires import Gateway

SERVICE = 8002
RULES = f"""
services: {{ shop: {{ targets: ["http://127.0.0.1:{SERVICE}"] }} }}
trusted_proxies: [192.0.2.0/24]
apis:
  shop:
    endpoints:
      - {{ path: "/v{{version}}/orders", version: {{ in: path }}, upstream_path: /orders }}
      - {{ path: "/v{{version}}/{{rest*}}", version: {{ in: path }}, upstream_path: "/{{rest*}}" }}
    versions: {{ "1": {{ via: "3" }}, "2": {{ via: "3" }}, "3": {{ service: shop }} }}
    conversions:
      - between: ["2", "3"]
        changes:
          - link: {{ field: self }}
          - use: {{ group: page, at: [pages] }}
        headers: [ {{ rename: {{ field: X-Location, to: Location }} }} ]
      - between: ["1", "2"]
        changes: [ link: {{ field: self }}, link: {{ field: "all[]" }} ]
    groups: {{ page: [ {{ link: {{ field: next }} }} ] }}
"""


def answered(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", *lines, "Content-Type: application/json"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


def request(line: str, *fields: str, body: bytes = b"") -> bytes:
    head = [f"{line} HTTP/1.1", "Host: api.test", *fields]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


@pytest.mark.parametrize(
    ("field", "each"), [("Link", "</x>,"), ("Set-Cookie", ";Path=/x"), ("Set-Cookie", ";Domain=x")]
)
async def test_a_response_with_too_many_links_in_header_fields_is_refused(
    field: str, each: str
) -> None:
    """It takes time to map a link, and other requests wait meanwhile."""
    given = [f"{field}: a=b{each * 2000}"]
    gateway = Gateway(RULES, {SERVICE: lambda _: answered(b"", *given)})
    assert parse_answer(await gateway.ask(request("GET /v3/orders"))).status == 200
    given += [f"{field}: a=b{each}"]
    refused = parse_answer(await gateway.ask(request("GET /v3/orders")))
    gateway.close()
    assert refused.refusal() == (502, "upstream_protocol")


async def test_links_in_header_fields_are_mapped_to_the_paths_of_the_client() -> None:
    lines = (
        "Location: /orders/7",
        f"content-location: http://127.0.0.1:{SERVICE}/orders/8?x",
        'LINK: </orders?page=2>; rel="next", <https://example.com/>; rel="help"',
        "Link: <x/y/z>; rel=up",
        "X-Self: /orders/9",
    )
    gateway = Gateway(RULES, {SERVICE: lambda _: answered(b"", *lines, status="201 Created")})
    got = parse_answer(await gateway.ask(request("POST /v3/orders")))
    gateway.close()
    assert got.all("Location") == [b"/v3/orders/7"]
    assert got.all("Content-Location") == [b"http://api.test/v3/orders/8?x"]
    assert got.all("Link") == [
        b'</v3/orders?page=2>; rel="next", <https://example.com/>; rel="help"',
        b"<x/y/z>; rel=up",
    ]
    assert got.all("X-Self") == [b"/orders/9"]
    assert gateway.exchanges[0].unmapped_links is None


async def test_a_link_that_moves_from_the_body_to_a_header_is_mapped_once() -> None:
    """The endpoint accepts all paths, so a second mapping would add the version prefix again."""
    rules = RULES.replace(
        "          - link: { field: self }", "          - link: { field: next }"
    ).replace("[ link: { field: self }", "[ to_header: { field: next, header: Link, rel: next }")
    given = answered(b'{"next": "/books?page=2"}', "Link: </books/7>; rel=item")
    gateway = Gateway(rules, {SERVICE: lambda _: given})
    got = [parse_answer(await gateway.ask(request(f"GET /v{n}/books"))) for n in (1, 2)]
    gateway.close()
    assert got[0].all("Link") == [b"</v1/books/7>; rel=item", b'</v1/books?page=2>; rel="next"']
    assert got[0].body == b"{}"
    assert got[1].all("Link") == [b"</v2/books/7>; rel=item"]
    assert got[1].body == b'{"next":"/v2/books?page=2"}'
    assert gateway.exchanges[0].unmapped_links is None


async def test_cookie_paths_and_domains_are_mapped_for_the_client() -> None:
    lines = (
        "Set-Cookie: sid=a; Path=/orders; HttpOnly",
        "set-cookie: at=/orders; Domain=127.0.0.1; Path=/",
        "Set-Cookie: x=y; Path=/nowhere/",
    )
    rules = RULES.replace('"/v{version}/{rest*}"', '"/v{version}/rest/{rest*}"').replace(
        'upstream_path: "/{rest*}"', 'upstream_path: "/rest/{rest*}"'
    )
    gateway = Gateway(rules, {SERVICE: lambda _: answered(b"", *lines, status="201 Created")})
    got = parse_answer(await gateway.ask(request("POST /v3/orders")))
    gateway.close()
    assert got.all("Set-Cookie") == [
        b"sid=a; Path=/v3/orders; HttpOnly",
        b"at=/orders; Path=/",
        b"x=y; Path=/nowhere/",
    ]
    assert gateway.exchanges[0].unmapped_links == {"Set-Cookie": 1}


async def test_links_in_bodies_are_mapped_once_in_both_directions() -> None:
    """Both version steps declare `link` for `self`, but its value is mapped only once."""
    found = b'{"self":"/orders/7","all":["/orders","/orders"],"pages":{"next":"/orders?p=2"}}'
    gateway = Gateway(RULES, {SERVICE: lambda _: answered(found)})
    got = parse_answer(await gateway.ask(request("GET /v1/orders")))
    assert got.body == (
        b'{"self":"/v1/orders/7","all":["/v1/orders","/v1/orders"],'
        b'"pages":{"next":"/v1/orders?p=2"}}'
    )
    sent = got.body.replace(b'"/v1/orders/7"', b'"http://api.test/v1/orders/7"')
    await gateway.ask(request("PUT /v1/orders", body=sent))
    gateway.close()
    arrived = gateway.requests[SERVICE][1].partition(b"\r\n\r\n")[2]
    assert arrived == found.replace(b'"/orders/7"', b'"http://api.test/orders/7"')


async def test_a_link_in_a_header_field_that_a_conversion_renames_is_mapped() -> None:
    gateway = Gateway(RULES, {SERVICE: lambda _: answered(b"{}", "X-Location: /orders/7")})
    got = parse_answer(await gateway.ask(request("GET /v1/orders")))
    gateway.close()
    assert got.all("Location") == [b"/v1/orders/7"]


async def test_links_that_match_no_endpoint_are_counted_by_location() -> None:
    rules = RULES.replace('"/v{version}/{rest*}"', '"/v{version}/rest/{rest*}"').replace(
        'upstream_path: "/{rest*}"', 'upstream_path: "/rest/{rest*}"'
    )
    lines = ("Location: /x?secret", 'Link: </y>; anchor="/z"')
    gateway = Gateway(rules, {SERVICE: lambda _: answered(b'{"all":["/a","/b"]}', *lines)})
    got = parse_answer(await gateway.ask(request("GET /v1/orders")))
    assert got.all("Location") == [b"/x?secret"]
    await gateway.ask(request("PUT /v1/orders", body=b'{"self":"/nowhere"}'))
    gateway.close()
    asked, put = gateway.exchanges
    assert asked.unmapped_links == {"Location": 1, "Link": 2, "body": 2}
    assert asked.unmapped_link == "/a"
    assert put.unmapped_links == {"request": 1, "Location": 1, "Link": 2, "body": 2}


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ([], "http://api.test"),
        (["X-Forwarded-Host: shop.example, b", "X-Forwarded-Proto: HTTPS"], "https://shop.example"),
        (['Forwarded: for=1;Host="shop.example:1";proto=https'], "https://shop.example:1"),
        (["Forwarded: for=1, host=shop.example"], "http://shop.example"),
        (["X-Forwarded-Proto: gopher"], "http://api.test"),
    ],
)
async def test_absolute_links_have_the_origin_that_the_client_used(
    fields: list[str], origin: str
) -> None:
    lines = (f"Location: http://127.0.0.1:{SERVICE}/orders/7",)
    gateway = Gateway(RULES, {SERVICE: lambda _: answered(b"", *lines, status="303 See")})
    got = parse_answer(await gateway.ask(request("POST /v3/orders", *fields)))
    gateway.close()
    assert got.one("Location") == f"{origin}/v3/orders/7".encode()


async def test_links_are_mapped_for_a_request_with_an_absolute_target() -> None:
    gateway = Gateway(RULES, {SERVICE: lambda _: answered(b"{}", "Location: /orders/7")})
    got = parse_answer(await gateway.ask(request("GET http://api.test/v3/orders")))
    gateway.close()
    assert got.one("Location") == b"/v3/orders/7"


def test_a_link_is_logged_without_query_fragment_and_control_characters() -> None:
    assert without_query("/a b\x00?token=1#c") == "/a?b?"
    assert without_query("/a#token=1") == "/a"
    assert len(without_query("/a" * 300)) == 200
