"""POST /users through the gateway: the contract, and the Location of the new user."""

import re
import socket

import pytest

from tests.gateway.kit import Stack
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, ask, chunked, get

JSON = "Content-Type: application/json"
BOB = b'{"name": "Bob Charlie", "birthDate": "1990-01-31"}'
NAME = "Name must be more than 2 characters."
PAST = "Birth date should be in past."


def post(stack: Stack, body: bytes, *lines: str | bytes, target: str = "/users") -> Answer:
    return ask(stack.gateway, "POST", target, *(lines or (JSON,)), body=body)


def test_a_created_user_is_found_at_its_location(stack: Stack) -> None:
    got = post(stack, BOB, JSON, "Host: api.test:8443")
    assert got.status == 201
    user = got.json
    assert user == {"id": user["id"], "name": "Bob Charlie", "birthDate": "1990-01-31"}
    assert isinstance(user["id"], int)
    assert got.one("Location") == b"http://api.test:8443/users/%d" % user["id"]
    assert got.one("Content-Type").startswith(b"application/json")
    found = get(stack.gateway, f"/users/{user['id']}")
    assert (found.status, found.json) == (200, user)


def test_the_location_of_a_new_user_resolves_unchanged(stack: Stack) -> None:
    authority = f"127.0.0.1:{stack.gateway.port}"
    location = post(stack, BOB, JSON, f"Host: {authority}").one("Location").decode()
    assert location.startswith(f"http://{authority}/users/")
    assert get(stack.gateway, location).status == 200


def test_the_location_of_a_user_has_no_query(stack: Stack) -> None:
    got = post(stack, BOB, target="/users?a=b&c")
    assert re.fullmatch(rb"http://api\.test/users/\d+", got.one("Location"))


def test_the_location_uses_the_host_of_an_absolute_target(stack: Stack) -> None:
    got = post(stack, BOB, JSON, "Host: other.test", target="http://api.test:81/users?x")
    assert re.fullmatch(rb"http://api\.test:81/users/\d+", got.one("Location"))


def test_the_location_without_a_host_has_the_address_of_the_gateway(stack: Stack) -> None:
    data = stack.gateway.raw(
        b"POST /users HTTP/1.0\r\n%b\r\nContent-Length: %d\r\n\r\n%b"
        % (JSON.encode(), len(BOB), BOB)
    )
    location = b"Location: http://127.0.0.1:%d/users/" % stack.gateway.port
    assert location in data


def test_the_location_ignores_forwarding_fields_of_clients(stack: Stack) -> None:
    got = post(
        stack,
        BOB,
        JSON,
        "X-Forwarded-Host: evil.test",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Prefix: /evil",
        "Forwarded: host=evil.test;proto=https",
    )
    assert got.one("Location").startswith(b"http://api.test/users/")


def test_the_location_uses_forwarding_fields_of_trusted_proxies(house: House) -> None:
    lines = [JSON, "X-Forwarded-Host: public.test", "X-Forwarded-Proto: https"]
    got = ask(house.gateway, "POST", "/users", *lines, body=BOB, source="127.0.0.2")
    assert got.one("Location") == b"https://public.test/users/%d" % got.json["id"]
    got = ask(house.gateway, "POST", "/users", *lines, body=BOB)
    assert got.one("Location") == b"http://api.test/users/%d" % got.json["id"]


def test_each_user_gets_a_new_id_and_an_id_from_the_client_is_ignored(stack: Stack) -> None:
    body = b'{"id": 1, "name": "Bob Charlie", "birthDate": "1990-01-31", "x": {}}'
    ids = [post(stack, body).json["id"] for _ in range(3)]
    assert len(set(ids)) == 3


VIOLATIONS = {
    "both fields": (
        b'{"name": "Bo", "birthDate": "9999-12-31"}',
        {"name": NAME, "birthDate": PAST},
    ),
    "the whole": (b"[]", {"user": "User must be an object."}),
}


@pytest.mark.parametrize(("body", "errors"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_violations_of_the_contract_are_forwarded(
    stack: Stack, body: bytes, errors: dict[str, str]
) -> None:
    got = post(stack, body)
    assert (got.status, got.json) == (400, errors)
    assert got.one("Content-Type").startswith(b"application/json")
    assert got.all("Location") == []


REFUSED: dict[str, tuple[bytes, list[str | bytes], int]] = {
    "malformed": (b"{", [JSON], 400),
    "text": (BOB, ["Content-Type: text/plain"], 415),
    "too large": (b" " * 100_000 + BOB, [JSON], 413),
}


@pytest.mark.parametrize(("body", "lines", "status"), REFUSED.values(), ids=REFUSED)
def test_a_refused_body_is_a_problem_detail(
    stack: Stack, body: bytes, lines: list[str | bytes], status: int
) -> None:
    got = post(stack, body, *lines)
    assert got.status == status
    assert got.one("Content-Type") == b"application/problem+json"
    assert got.json["status"] == status
    assert got.json["instance"] == "/users"


def test_a_chunked_user_is_created(stack: Stack) -> None:
    got = post(stack, chunked(BOB[:9], BOB[9:]), JSON, "Transfer-Encoding: chunked")
    assert got.status == 201


def test_a_chunked_body_above_the_limit_is_413(stack: Stack) -> None:
    body = chunked(*[b" " * 10_000] * 10)
    assert post(stack, body, JSON, "Transfer-Encoding: chunked").status == 413


def test_a_user_with_an_expectation_is_created(stack: Stack) -> None:
    got = post(stack, BOB, JSON, "Expect: 100-continue")
    assert (got.status, got.interim) == (201, (100,))


def test_a_body_that_will_be_refused_gets_no_100_continue(stack: Stack) -> None:
    head = (
        b"POST /users HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Type: text/plain\r\n"
    )
    with socket.create_connection(("127.0.0.1", stack.gateway.port), 20) as connection:
        connection.sendall(head + b"Content-Length: 9\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 415 ")


@pytest.mark.parametrize("path", ["/users/999999999", "/users/x", "/users/%31"])
def test_an_unknown_user_gets_404(stack: Stack, path: str) -> None:
    post(stack, BOB)
    got = get(stack.gateway, path)
    assert got.status == 404
    assert got.json["instance"] == path


@pytest.mark.parametrize(
    "path", ["/users/", "//users", "/users//1", "/users/1/", "/Users", "/users/.."]
)
def test_paths_match_exactly(stack: Stack, path: str) -> None:
    assert get(stack.gateway, path).refusal() == (404, "not_found")
    assert post(stack, BOB, target=path).refusal() == (404, "not_found")


def test_head_of_a_user_has_its_length(stack: Stack) -> None:
    user = post(stack, BOB).json["id"]
    whole, head = (ask(stack.gateway, method, f"/users/{user}") for method in ("GET", "HEAD"))
    assert head.status == 200
    assert head.one("Content-Length") == whole.one("Content-Length")
