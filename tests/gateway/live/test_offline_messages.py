"""`convert` and `explain` show the same messages as a running gateway, over sockets."""

import gzip
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.__main__ import main
from tests.gateway.cli.test_convert import Input
from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Message, answer, ask

RULES = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    media_types: {{ text/csv: pass }}
    endpoints:
      - {{ path: "/v{{version}}/{{rest*}}", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/moved", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/plain", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/kept", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/forms", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/shown", version: {{ in: path }} }}
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: told }} }}
    conversions:
      - between: ["1", "2"]
        paths: ["/v{{version}}/plain"]
        statuses: [422]
        changes: [ {{ rename: {{ field: b, to: a }} }}, {{ default: {{ field: c, value: 7 }} }} ]
        headers: [ {{ rename: {{ field: X-New, to: X-Old }} }} ]
        query: [ {{ rename: {{ field: after, to: since }} }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/moved"]
        changes:
          - to_header: {{ field: total, header: X-Total, type: number }}
          - to_query: {{ field: dry, parameter: dry, type: boolean }}
        headers: [ {{ rename: {{ field: X-New, to: X-Old }} }} ]
        query: [ {{ rename: {{ field: after, to: since }} }} ]
        status: [ {{ newer: 201, older: 204 }}, {{ newer: 204, older: 200 }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/kept"]
        unfit: keep
        malformed: keep
        changes:
          - from_header: {{ field: total, header: X-Total, type: number }}
          - from_query: {{ field: dry, parameter: dry, type: boolean }}
        headers: [ {{ rename: {{ field: X-New, to: X-Old }} }} ]
        query: [ {{ rename: {{ field: after, to: since }} }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/forms"]
        forms: {{ version: older, numbers: [n] }}
        changes: [ {{ rename: {{ field: m, to: n }} }}, {{ default: {{ field: c, value: 7 }} }} ]
      - between: ["1", "2"]
        operations:
          - newer: "POST /v{{version}}/ends"
            older: "POST /v{{version}}/end"
            request_body: newer
          - newer: "DELETE /v{{version}}/drops"
            older: "POST /v{{version}}/drop"
            request_body: older
        changes: [ {{ default: {{ field: c, value: 7 }} }}, {{ remove: {{ field: d, value: 1 }} }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/shown"]
        headers:
          - python: {{ field: X-New, up: "house_code:told", down: "house_code:told" }}
"""
JSON = "Content-Type: application/json"
CSV = "Content-Type: text/csv"
XML = "Content-Type: text/xml"
LINES = "Content-Type: application/x-ndjson"
EVENTS = "Content-Type: text/event-stream"
FORM = "Content-Type: application/x-www-form-urlencoded"
PATCH = "Content-Type: application/merge-patch+json"
GZIP = "Content-Encoding: gzip"
OLD = "X-Old: 3"
TOUCHED = {"content-type", "content-encoding", "content-language", "x-new", "x-old", "x-total"}


class Shown(NamedTuple):
    query: str
    fields: list[tuple[str, str]]
    body: bytes
    refusal: str = ""


def compared(message: Message, query: str = "") -> Shown:
    lines = [(name.decode().lower(), value.decode()) for name, value in message.fields]
    return Shown(query, sorted(line for line in lines if line[0] in TOUCHED), message.body)


def without_cause(refusal: str) -> str:
    """Return a refusal without text in parentheses, such as the cause for the log."""
    return refusal.strip().partition(" (")[0].removesuffix(".")


REQUESTS = [
    ("POST", "/v1/plain?since=2", (JSON, OLD), b'{"a":1}'),
    ("POST", "/v1/plain", (OLD,), b""),
    ("POST", "/v1/plain", (JSON,), b""),
    ("GET", "/v1/plain?since=2", (JSON, OLD), b"{}"),
    ("GET", "/v1/plain", (CSV,), b"{}"),
    ("DELETE", "/v1/plain", (JSON,), b"{}"),
    ("GET", "/v1/other", (JSON,), b"{}"),
    ("PUT", "/v1/plain", (CSV, OLD), b"a"),
    ("PUT", "/v1/plain", (XML, OLD), b"a"),
    ("PUT", "/v1/plain", (PATCH,), b'{"a":1}'),
    ("PUT", "/v1/plain", (LINES, OLD), b'{"a":1}\n{"a":2}\n'),
    ("PUT", "/v1/plain", (JSON, GZIP), gzip.compress(b'{"a":1}')),
    ("PUT", "/v1/plain", (JSON, GZIP), b"a"),
    ("PUT", "/v1/plain", (JSON, "Content-Encoding: br"), b"a"),
    ("PUT", "/v1/plain", (JSON,), b"a"),
    ("PUT", "/v1/plain", (JSON,), b"1"),
    ("POST", "/v1/plain", (FORM,), b"a=1&x=2"),
    ("POST", "/v1/plain", (FORM,), b"a=%zz&x=a%20b*c&y"),
    ("POST", "/v1/plain", (FORM,), b'{"a":1}'),
    ("POST", "/v1/plain", (FORM,), b""),
    ("POST", "/v1/moved?since=2&dry=true", (JSON, OLD, "X-Total: 5"), b'{"a":1}'),
    ("POST", "/v1/moved?since=2", (JSON, OLD), b'{"a":1}'),
    ("POST", "/v1/moved?since=2", (JSON, OLD), b""),
    ("POST", "/v1/moved?since=2&dry=true", (OLD,), b""),
    ("POST", "/v1/moved", (XML, "X-Total: 5"), b""),
    ("GET", "/v1/moved?since=2", (OLD,), b""),
    ("GET", "/v1/moved?since=2", (OLD, "X-Total: 5"), b""),
    ("GET", "/v1/moved", (JSON, GZIP, OLD), b""),
    ("POST", "/v1/moved?dry=1", (LINES, OLD, "X-Total: 5"), b'{"a":1}\n'),
    ("POST", "/v1/moved?dry=5", (JSON,), b"{}"),
    ("POST", "/v1/moved", (FORM, "X-Total: 5"), b""),
    ("DELETE", "/v1/kept?since=2", (JSON, OLD), b'{"total":5}'),
    ("DELETE", "/v1/kept", (JSON,), b"{}"),
    ("GET", "/v1/kept?since=2", (JSON, OLD), b'{"dry":true}'),
    ("POST", "/v1/kept?since=2", (JSON, OLD), b'{"dry":true}'),
    ("POST", "/v1/kept?since=2", (JSON, OLD), b"<a/>"),
    ("POST", "/v1/kept?since=2", (XML, OLD), b"<a/>"),
    ("POST", "/v1/kept?since=2", (JSON, OLD), b'{"dry":'),
    ("POST", "/v1/forms", (FORM,), b"n=1"),
    ("POST", "/v1/forms", (FORM,), b"n=x"),
    ("POST", "/v1/forms", (FORM,), b'{"n":1}'),
    ("POST", "/v1/forms", (FORM,), b""),
    ("GET", "/v1/forms", (FORM,), b""),
    ("POST", "/v1/end", (XML, OLD), b""),
    ("POST", "/v1/end", (JSON,), b"{}"),
    ("POST", "/v1/drop", (JSON, OLD), b'{"c":7}'),
    ("POST", "/v1/drop", (JSON, "Content-Language: en"), b"{}"),
    ("POST", "/v1/shown", ("X-New: a",), b""),
    ("POST", "/v1/shown", (JSON, "X-New: a"), b"{}"),
]
ANSWERS = [
    ("GET", "/v1/plain", 200, (JSON, "X-New: 3"), b'{"b":1,"c":7}'),
    ("GET", "/v1/plain", 422, (JSON, "X-New: 3"), b'{"b":1,"c":7}'),
    ("GET", "/v1/plain", 422, (XML,), b"<a/>"),
    ("GET", "/v1/plain", 200, (XML,), b"<a/>"),
    ("GET", "/v1/plain", 200, (XML,), b""),
    ("GET", "/v1/plain", 200, (CSV,), b"a"),
    ("GET", "/v1/plain", 404, (JSON,), b'{"b":1}'),
    ("GET", "/v1/plain", 206, (JSON,), b'{"b":1}'),
    ("GET", "/v1/plain", 200, (JSON, GZIP), gzip.compress(b'{"b":1}')),
    ("GET", "/v1/plain", 200, (LINES, "X-New: 3"), b'{"b":1}\n{"b":2}\n'),
    ("GET", "/v1/plain", 200, (LINES,), b'{"b":1}\n[DONE]\n\n'),
    ("GET", "/v1/plain", 200, (EVENTS,), b'data: {"b":1}\n\ndata: [DONE]\n\n'),
    ("GET", "/v1/plain", 200, (EVENTS,), b'id: 1\ndata: {"b":1}\n\n'),
    ("GET", "/v1/plain", 200, (JSON, "X-New: 3"), b'{"b":1}\n{"b":2}\n'),
    ("GET", "/v1/moved", 200, (JSON, "X-New: 3"), b'{"total":1}\n{"total":2}\n'),
    ("GET", "/v1/plain", 200, (LINES, GZIP), gzip.compress(b'{"b":1}\n')),
    ("GET", "/v1/plain", 200, (JSON,), b"no"),
    ("GET", "/v1/moved", 200, (JSON, "X-New: 3"), b'{"total":5,"a":1}'),
    ("GET", "/v1/moved", 200, (JSON, "X-New: 3"), b'{"total":"x"}'),
    ("GET", "/v1/moved", 200, (LINES, "X-New: 3"), b'{"total":5}\n'),
    ("GET", "/v1/moved", 200, (XML, "X-New: 3"), b""),
    ("POST", "/v1/moved", 201, (JSON, "X-New: 3"), b'{"total":5}'),
    ("POST", "/v1/moved", 204, ("X-New: 3",), b""),
    ("GET", "/v1/kept", 200, ("X-New: 3", "X-Total: 5"), b""),
    ("GET", "/v1/kept", 200, (XML, "X-New: 3"), b""),
    ("GET", "/v1/kept", 204, ("X-New: 3", "X-Total: 5"), b""),
    ("GET", "/v1/shown", 200, (JSON, "X-New: a"), b"{}"),
    ("GET", "/v1/shown", 204, ("X-New: a",), b""),
]


class Commands:
    def __init__(
        self, file: str, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[bytes]
    ) -> None:
        self.file = file
        self.monkeypatch = monkeypatch
        self.capture = capture

    def run(self, body: bytes, name: str, *words: str) -> tuple[bytes, str]:
        self.monkeypatch.setattr(sys, "argv", ["gateway", name, *words])
        # A shell adds the line feed, and the command removes it.
        self.monkeypatch.setattr(sys, "stdin", Input(body + b"\n"))
        main()
        out, error = self.capture.readouterr()
        return out, error.decode()

    def convert(self, given: tuple[str, str], line: str, body: bytes, *words: str) -> Shown:
        way = ("--from", given[0], "--to", given[1])
        out, error = self.run(
            body, "convert", self.file, "a", *way, "-i", "--request", line, *words
        )
        if error.startswith("refused with "):
            status, code, detail = error.removeprefix("refused with ").split(" ", 2)
            return Shown("", [], b"", without_cause(f"{status} {code} {detail}"))
        head, _, made = out.partition(b"\n\n") if not out.startswith(b"\n") else (b"", b"", out[1:])
        first, *fields = head.split(b"\n") if "--status" not in words else (b"", *head.split(b"\n"))
        lines = [
            (name, value) for name, _, value in (one.partition(b": ") for one in fields) if name
        ]
        query = first.decode().partition("?")[2]
        return compared(Message(first, lines, made.removesuffix(b"\n")), query)


@pytest.fixture
def served(standing: Program, configured: StartGateway, house: House) -> Program:
    assert standing.config is not None
    code = Path(__file__).with_name("house_code.py")
    (standing.config.parent / code.name).write_text(code.read_text())
    return configured(RULES.format(port=house.service.port))


@pytest.fixture
def commands(
    served: Program, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Commands:
    return Commands(str(served.config), monkeypatch, capfdbinary)


def options(fields: tuple[str, ...]) -> list[str]:
    return [word for field in fields for word in ("-H", field)]


@pytest.mark.parametrize(("method", "target", "fields", "body"), REQUESTS)
def test_convert_shows_a_request_as_the_service_gets_it(
    served: Program,
    commands: Commands,
    house: House,
    method: str,
    target: str,
    fields: tuple[str, ...],
    body: bytes,
) -> None:
    house.service.answer = answer(b"{}")
    got = ask(served, method, target, *fields, body=body or None)
    if house.service.asked:
        last = house.service.last
        live = compared(last, last.line.split()[1].decode().partition("?")[2])
    else:
        problem = got.problem
        live = Shown(
            "", [], b"", without_cause(f"{got.status} {problem['code']}: {problem['detail']}")
        )
    line, words = f"{method} {target}", options(fields)
    assert commands.convert(("1", "2"), line, body, *words) == live
    out, _ = commands.run(body, "explain", commands.file, line, *words, "--body", "-")
    kind, _, shown = out.decode().strip().rpartition("\n")[2].strip().partition(" ")
    shown = shown.strip()
    if live.refusal:
        assert (kind, without_cause(shown)) == ("answer", live.refusal)
    elif kind != "beside":
        assert kind == "becomes"
        known = live.body.decode("latin-1")
        assert shown == (known or "none") or (known and shown.startswith(("unchanged", "'", '"')))


@pytest.mark.parametrize(("method", "target", "status", "fields", "body"), ANSWERS)
def test_convert_shows_a_response_as_the_client_gets_it(
    served: Program,
    commands: Commands,
    house: House,
    method: str,
    target: str,
    status: int,
    fields: tuple[str, ...],
    body: bytes,
) -> None:
    framed = answer(body, *fields, status=f"{status} Such", content_type=None)
    house.service.answer = (
        framed.replace(b"Content-Length: 0\r\n", b"") if status == 204 else framed
    )
    got = ask(served, method, target)
    live = compared(got)
    if got.status == 502:
        problem = got.problem
        live = Shown(
            "", [], b"", without_cause(f"{got.status} {problem['code']}: {problem['detail']}")
        )
    words = ("--status", str(status), *options(fields))
    assert commands.convert(("2", "1"), f"{method} {target}", body, *words) == live
