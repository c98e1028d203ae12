"""Responses of every path over a socket. test_create_user.py covers creating a user."""

import json
from collections.abc import Callable
from datetime import date
from email.message import Message
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from users_service.store import JSON_NAMES
from users_service.user import NewUser

Answer = tuple[int, Message, bytes]
Ask = Callable[..., Answer]

BOB = {"name": "Bob", "birthDate": "2000-01-31"}


@pytest.mark.parametrize(
    "unknown",
    [
        *("0", "999999999", "9223372036854775807", "9223372036854775808", "9" * 400),
        *("01", "+1", "-1", "1.0", "1e0", "0x1", "one", "1%20", "%31"),
    ],
)
def test_an_unknown_id_gets_a_404_problem(
    unknown: str, ask: Ask, described: Callable[..., Any]
) -> None:
    answer = ask("GET", f"/users/{unknown}")
    assert answer[0] == 404
    code = "not_found" if "%" in unknown else "user_not_found"
    assert described("/users/{id}", "get", answer)["code"] == code


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/user", "/Users", "/users/", "//users", "/users/1/", "/users/1/name", "/healthz/"),
        *("/users/../users", "/./users", "/%75sers", "/users%00", "/users;a=1", "/{id}"),
    ],
)
def test_an_unknown_path_gets_a_404_problem_for_every_method(
    path: str, ask: Ask, described: Callable[..., Any]
) -> None:
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        answer = ask(method, path, json.dumps(BOB))
        assert answer[0] == 404
        problem = described("/users", "post", answer)
        assert problem["code"] == "not_found"
        assert problem["instance"] == path.replace("{", "%7B").replace("}", "%7D")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/users", "OPTIONS, POST"),
        ("/users/1", "GET, HEAD, OPTIONS"),
        ("/users/none", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/readyz", "GET, HEAD, OPTIONS"),
        ("/openapi.json", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_method_gets_a_405_problem_and_options_lists_the_methods(
    path: str, allowed: str, ask: Ask, described: Callable[..., Any]
) -> None:
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY"} - {
        *allowed.split(", ")
    }:
        answer = ask(method, path)
        assert (answer[0], answer[1]["Allow"]) == (405, allowed)
        assert described("/users", "post", answer)["code"] == "method_not_allowed"
    status, headers, body = ask("OPTIONS", path)
    assert (status, headers["Allow"], body) == (204, allowed, b"")
    assert ask("HEAD", "/users")[0] == 405


@pytest.mark.parametrize(
    "request_line",
    [
        *(b"GARBAGE", b"FOO /users HTTP/1.1", b"GET /users HTTP/9.9", b"GET /\xff HTTP/1.1"),
        b"GET /%b HTTP/1.1" % (b"a" * 9000),
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_invalid_http_gets_a_400_problem(
    request_line: bytes, exchange: Callable[[bytes], bytes]
) -> None:
    head, _, body = exchange(request_line + b"\r\nHost: a\r\n\r\n").partition(b"\r\n\r\n")
    assert b" 400 Bad Request\r\n" in head
    assert b"\r\nContent-Type: application/problem+json\r\n" in head
    assert json.loads(body)["code"] == "bad_http"


@pytest.mark.parametrize(
    ("target", "instance"),
    [
        (b"OPTIONS *", "*"),
        (b"CONNECT a:80", "/"),
        (b"GET http://a", "/"),
        (b"GET http://a/nothing", "/nothing"),
        (b"POST http://a/nothing", "/nothing"),
    ],
)
def test_a_target_in_another_form_gets_a_404_problem(
    target: bytes, instance: str, exchange: Callable[[bytes], bytes]
) -> None:
    answer = exchange(target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    problem = json.loads(body)
    assert (problem["code"], problem["instance"]) == ("not_found", instance)


# Other requests.


def test_head_returns_the_headers_of_get_without_a_body(ask: Ask) -> None:
    user_id = json.loads(ask("POST", "/users", json.dumps(BOB))[2])["id"]
    for path in (f"/users/{user_id}", "/users/0", "/healthz", "/readyz", "/openapi.json"):
        expected, actual = ask("GET", path), ask("HEAD", path)
        assert actual[2] == b""
        assert actual[0] == expected[0]
        for header in ("Content-Type", "Content-Length"):
            assert actual[1][header] == expected[1][header]


@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readyz", "ready")])
def test_the_health_checks_report_a_healthy_service(
    path: str, status: str, ask: Ask, described: Callable[..., Any]
) -> None:
    answer = ask("GET", path)
    assert answer[0] == 200
    assert described(path, "get", answer) == {"status": status}


def test_the_published_document_is_openapi_3_1_with_valid_schemas(ask: Ask) -> None:
    status, headers, body = ask("GET", "/openapi.json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    document = json.loads(body)
    assert document["openapi"].startswith("3.1.")
    assert set(document["paths"]) == {
        *("/users", "/users/{id}", "/healthz", "/readyz", "/openapi.json")
    }
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    assert schemas["NewUser"]["required"] == ["name", "birthDate"]
    name = schemas["NewUser"]["properties"]["name"]
    assert (name["minLength"], name["maxLength"]) == (3, 20)
    assert schemas["NewUser"]["properties"]["birthDate"]["format"] == "date"


def test_the_published_schema_accepts_the_same_users_as_the_model(ask: Ask) -> None:
    schemas = json.loads(ask("GET", "/openapi.json")[2])["components"]["schemas"]
    model = NewUser.model_json_schema()
    assert set(schemas["NewUser"]["properties"]) == set(model["properties"])
    assert set(schemas["NewUser"]["required"]) == set(model["required"])
    assert set(schemas["User"]["required"]) == {each.name for each in JSON_NAMES}
    validator = Draft202012Validator(
        schemas["NewUser"], format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    values = ("", "\U0001f600" * 2, "Bob", "x" * 20, "x" * 21, "2000-02-29", "2001-02-29", 1, None)
    for sent in [{}, [], *({**BOB, field: value} for field in BOB for value in values)]:
        try:
            NewUser.model_validate(sent, context={"today": date(2020, 1, 1)})
            accepted = True
        except ValidationError:
            accepted = False
        assert validator.is_valid(sent) == accepted, sent


@pytest.mark.parametrize("given", ["a", "gw-1:~/x=1@b+c.d_e", "x" * 128])
def test_a_valid_request_id_is_returned(given: str, ask: Ask) -> None:
    for path in ("/healthz", "/nothing"):
        assert ask("GET", path, headers={"X-Request-Id": given})[1]["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "ä", '"'])
def test_an_invalid_request_id_is_replaced(given: str, ask: Ask) -> None:
    made = {
        ask("GET", "/healthz", headers={"X-Request-Id": given})[1]["X-Request-Id"] for _ in "12"
    }
    assert len(made) == 2
    assert all(len(one) == 32 for one in made)
