"""Creating a user over a socket: accepted requests, and every kind of refusal."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

Answer = tuple[int, Message, bytes]
Ask = Callable[..., Answer]

NAME_LENGTH = "Name must be more than 2 characters."
BIRTH_DATE_PAST = "Birth date should be in past."
BIRTH_DATE_FORMAT = "Birth date must be a real date, written as yyyy-MM-dd."

BOB = {"name": "Bob", "birthDate": "2000-01-31"}
JSON = {"Content-Type": "application/json"}
HEAD = b"POST /users HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
WRONG_DATES: list[object] = [
    *("", "2000-1-31", "20000131", "2000-01-31T00:00:00", "2000-01-31Z", "31.01.2000"),
    *("2000-02-30", "2001-02-29", "2000-13-01", "2000-00-01", "0000-01-01", "2000-W01-1"),
    *(" 2000-01-31", "2000-01-31\n", "-2000-01-31", "12000-01-31", "2000\u201101\u201131"),
    *("\u0662000-01-31", "\uff12000-01-31", True, 951782400, 0.5, [], {}),
]


@pytest.fixture
def post(ask: Ask, described: Callable[..., Any]) -> Callable[..., Any]:
    def _post(value: object, status: int) -> Any:
        answer = ask("POST", "/users", json.dumps(value))
        assert answer[0] == status
        return described("/users", "post", answer)

    return _post


@pytest.fixture
def stored(service: tuple[int, Path]) -> Iterator[Callable[[], list[Any]]]:
    with closing(sqlite3.connect(service[1] / "users.db")) as database:
        yield lambda: database.execute("SELECT * FROM users").fetchall()


@pytest.fixture
def nothing_stored(stored: Callable[[], list[Any]]) -> Iterator[None]:
    before = stored()
    yield
    assert stored() == before


# Accepted requests.


@pytest.mark.parametrize(
    "sent",
    [
        BOB,
        {"name": "x" * 20, "birthDate": "0001-01-01"},
        {"name": "\U0001f600" * 20, "birthDate": "1970-01-01"},
        {"name": "a\x01\n", "birthDate": "2000-02-29"},
        {"name": "   ", "birthDate": "1999-12-31"},
        {"name": "' OR 1=1 --", "birthDate": "1999-12-31"},
    ],
)
def test_a_created_user_can_be_read_at_its_location(
    sent: dict[str, str], ask: Ask, described: Callable[..., Any]
) -> None:
    created = ask("POST", "/users?a=b", json.dumps(sent))
    assert created[0] == 201
    user = described("/users", "post", created)
    assert user == {"id": user["id"], **sent}
    authority, _, path = created[1]["Location"].removeprefix("http://").partition("/")
    assert path == f"users/{user['id']}"
    assert authority.startswith("127.0.0.1:")
    found = ask("GET", f"/{path}")
    assert found[0] == 200
    assert described("/users/{id}", "get", found) == user


def test_the_location_has_the_scheme_and_host_of_the_gateways_client(ask: Ask) -> None:
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "api.example.com:8443"}
    _, headers, body = ask("POST", "/users", json.dumps(BOB), JSON | forwarded)
    assert headers["Location"] == f"https://api.example.com:8443/users/{json.loads(body)['id']}"


def test_id_and_unknown_fields_are_ignored(post: Callable[..., Any]) -> None:
    unknown = {"id": 7, "admin": True, "birth_date": [], "": {"a": None}}
    first = post(BOB, 201)
    assert post(BOB | unknown, 201) == {"id": first["id"] + 1, **BOB}


def test_an_unknown_field_with_a_huge_integer_is_ignored(ask: Ask) -> None:
    body = json.dumps(BOB).replace("{", '{"id": ' + "9" * 5000 + ", ")
    assert ask("POST", "/users", body)[0] == 201


@pytest.mark.parametrize(
    "content_type",
    [
        "Application/JSON",
        "application/json; charset=UTF-8",
        'application/json;charset="utf-8"; a=b',
        "application/json; charset=utf8",
        'application/json; charset="UTF8"',
    ],
)
def test_any_spelling_of_json_in_utf_8_is_accepted(content_type: str, ask: Ask) -> None:
    assert ask("POST", "/users", json.dumps(BOB), {"Content-Type": content_type})[0] == 201


@pytest.mark.parametrize("coding", ["identity", "Identity", "", "identity, identity"])
def test_the_content_encoding_identity_is_accepted(coding: str, ask: Ask) -> None:
    headers = JSON | {"Content-Encoding": coding}
    assert ask("POST", "/users", json.dumps(BOB), headers)[0] == 201


# Violations of the constraints in the API contract.


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("sent", "violations"),
    [
        ({}, {"name": "Name is required.", "birthDate": "Birth date is required."}),
        (
            {"name": None, "birthDate": None},
            {"name": "Name must be a string.", "birthDate": BIRTH_DATE_FORMAT},
        ),
        (
            {"name": "Bo", "birthDate": "2999-01-01"},
            {"name": NAME_LENGTH, "birthDate": BIRTH_DATE_PAST},
        ),
        (
            {"name": "x" * 21, "birthDate": 20000131},
            {"name": NAME_LENGTH, "birthDate": BIRTH_DATE_FORMAT},
        ),
        *[
            (BOB | {"name": name}, {"name": NAME_LENGTH})
            for name in ("", "Bo", "\U0001f600" * 2, "\U0001f600" * 21, "x" * 60_000)
        ],
        *[
            (BOB | {"name": name}, {"name": "Name must be a string."})
            for name in (1, True, ["Bob"], {"first": "Bob"}, 10**4000)
        ],
        *[(BOB | {"birthDate": day}, {"birthDate": BIRTH_DATE_FORMAT}) for day in WRONG_DATES],
        (BOB | {"birthDate": "9999-12-31"}, {"birthDate": BIRTH_DATE_PAST}),
        *[
            (whole, {"user": "User must be an object."})
            for whole in ([], [BOB], "Bob", 1, 1.5, True, None)
        ],
    ],
)
def test_a_response_has_all_violations_of_a_request(
    sent: object, violations: dict[str, str], post: Callable[..., Any]
) -> None:
    assert post(sent, 400) == violations


@pytest.mark.usefixtures("nothing_stored")
def test_a_birth_date_of_tomorrow_is_refused(post: Callable[..., Any]) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    assert post(BOB | {"birthDate": tomorrow}, 400) == {"birthDate": BIRTH_DATE_PAST}


# Refusals with a problem detail.


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"name=Bob",
        b'{"name":"Bob","birthDate":"2000-01-31",}',
        b'{"name":"Bob","birthDate":"2000-01-31"}{}',
        b'{"name":"Bob","birthDate":"2000-01-31","id":NaN}',
        b'{"name":"Bob","birthDate":"2000-01-31","id":-Infinity}',
        b'{"name":"Bob","birthDate":"2000-01-31","name":"Eve"}',
        b'{"name":"B\xf6b","birthDate":"2000-01-31"}',
        b'{"name":"Bob","birthDate":"2000-01-31","x":"\xed\xa0\x80"}',
        b'{"name":"Bob\\ud800","birthDate":"2000-01-31"}',
        b'{"name":"Bob","birthDate":"2000-01-31","x":["\\udc00"]}',
        b'{"name":"Bob","birthDate":"2000-01-31","\\udfff":1}',
        b'{"name":"Bob","birthDate":"2000-01-31","x":' + b"[" * 64 + b"]" * 64 + b"}",
        b"[" * 65_000,
        b"\xef\xbb\xbf" + json.dumps(BOB).encode(),
        json.dumps(BOB).encode("utf-16"),
    ],
)
def test_a_body_that_is_not_valid_json_gets_a_400_problem(
    body: bytes, ask: Ask, described: Callable[..., Any]
) -> None:
    answer = ask("POST", "/users", body)
    problem = described("/users", "post", answer)
    assert (answer[0], answer[1]["Content-Type"]) == (400, "application/problem+json")
    assert (problem["code"], problem["instance"]) == ("malformed_json", "/users")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"id":NaN}', "NaN is not a JSON number"),
        ('{"id":[-Infinity]}', "-Infinity is not a JSON number"),
        ('{"id":1,"id":2}', "an object has the same name twice"),
        ('{"id":"\\ud800"}', "the text is not valid Unicode"),
        (b'"\xf6"', "the text is not valid Unicode"),
        (b"\xef\xbb\xbf{}", "Expecting value: line 1 column 1 (char 0)"),
        ("[" * 65 + "]" * 65, "arrays and objects may nest at most 64 deep"),
    ],
)
def test_the_problem_for_a_malformed_body_has_the_reason(
    body: str | bytes, reason: str, ask: Ask
) -> None:
    problem = json.loads(ask("POST", "/users", body)[2])
    assert problem["detail"] == f"Send valid JSON: {reason}."


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "unsupported_media_type"),
        ({"Content-Type": ""}, "unsupported_media_type"),
        ({"Content-Type": "text/plain"}, "unsupported_media_type"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "unsupported_media_type"),
        ({"Content-Type": "application/problem+json"}, "unsupported_media_type"),
        ({"Content-Type": "application/jsonp"}, "unsupported_media_type"),
        ({"Content-Type": "application/json, text/plain"}, "unsupported_media_type"),
        ({"Content-Type": "application/json; charset=latin1"}, "unsupported_media_type"),
        ({"Content-Type": "application/json; charset=utf-16"}, "unsupported_media_type"),
        (JSON | {"Content-Encoding": "gzip"}, "unsupported_encoding"),
        (JSON | {"Content-Encoding": "br"}, "unsupported_encoding"),
        (JSON | {"Content-Encoding": "identity, gzip"}, "unsupported_encoding"),
    ],
)
def test_an_unsupported_type_or_encoding_gets_a_415_problem(
    headers: Mapping[str, str], code: str, ask: Ask, described: Callable[..., Any]
) -> None:
    answer = ask("POST", "/users", json.dumps(BOB), headers)
    assert answer[0] == 415
    assert described("/users", "post", answer)["code"] == code
    offered = {"unsupported_media_type": "Accept", "unsupported_encoding": "Accept-Encoding"}
    assert answer[1][offered[code]] in ("application/json", "identity")


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(65536, 201), (65537, 413), (200_000, 413)])
def test_a_body_over_the_limit_gets_a_413_problem(
    chunked: bool,
    size: int,
    status: int,
    exchange: Callable[[bytes], bytes],
    stored: Callable[[], list[Any]],
) -> None:
    before = len(stored())
    body = json.dumps(BOB).encode().ljust(size)
    if chunked:
        parts = [body[start : start + 30_000] for start in range(0, size, 30_000)]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])
        answer = exchange(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed)
    else:
        answer = exchange(HEAD + b"Content-Length: %d\r\n\r\n" % size + body)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert (b'"code":"body_too_large"' in answer) == (status == 413)
    assert len(stored()) - before == (status == 201)


def test_an_announced_body_over_the_limit_gets_413_instead_of_100_continue(
    exchange: Callable[[bytes], bytes],
) -> None:
    body = json.dumps(BOB).encode()
    expecting = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    assert exchange(expecting % len(body) + body).startswith(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 "
    )
    assert exchange(expecting % 70_000 + b" " * 70_000).startswith(b"HTTP/1.1 413 ")
