"""Functions that process untrusted bytes, with the properties that hold for all inputs.

Each target takes any bytes and returns if all properties hold. Two drivers call them: hypothesis in
every test run, and atheris for any duration (`python -m tests.fuzz`).
"""

import json
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from multidict import CIMultiDict

from gateway.base import headers
from gateway.base.headers import HeaderFields
from gateway.base.mistakes import ConfigError
from gateway.base.request import RequestHead
from gateway.base.urls import parameters
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body
from gateway.conversion.formats.json_body import NotJsonError
from gateway.conversion.formats.yaml_body import json_of
from gateway.http import content_coding
from gateway.routing.plan import Options, Plan, plan
from gateway.routing.snapshot import Route
from gateway.rules.load import load
from gateway.versions.mechanisms.media_range import parse_accept
from gateway.versions.mechanisms.query import QueryReader
from tests.gateway.kit import ROOT

LIMIT = 100_000

_RULES = b"""
services: { s: { targets: ["http://h:1"] } }
apis:
  a:
    upstream_path: /up
    endpoints:
      - { path: "/v{version}/x", version: { in: path } }
      - { path: "/v{version}/x/{id}", version: { in: path }, upstream_path: "/in/{id}" }
      - { path: /query, version: { in: query, name: version }, methods: [GET] }
      - { path: /header, version: { in: header, name: X-API-VERSION } }
      - { path: /accept, version: { in: accept, media_type: "application/vnd.t-v{version}+json" } }
      - path: /all
        version:
          - { in: query, name: version }
          - { in: header, name: X-API-VERSION }
          - { in: accept, media_type: "application/vnd.t-v{version}+json", default: "2" }
    versions: { "1": { via: "2" }, "2": { service: s } }
    conversions:
      - between: ["1", "2"]
        changes:
          - join: { fields: [name.first, name.last], into: name }
          - split: { field: place, into: ["where.city", "where.zip"], separator: "," }
          - default: { field: "items[].price", value: 1.0 }
  b:
    service: s
    endpoints: [ { path: "/tail/{rest*}", upstream_path: "/deep/{rest*}" } ]
"""


SNAPSHOT = load(_RULES, "rules", {})


def _routes() -> list[Route]:
    found = SNAPSHOT.router.find("/query")
    assert found is not None
    return [route for route in found[0].routes.values() if route.request is not None]


(CONVERTED,) = _routes()


def read_accept(data: bytes) -> None:
    """Members are well-formed and in order, and do not depend on the split into header lines."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    ranges = list(parse_accept(lines))
    for member in ranges:
        kind, slash, subtype = member.essence.partition("/")
        assert kind, member
        assert slash, member
        assert subtype, member
        assert member.essence == member.essence.lower()
        assert 0 <= member.weight <= 1
        (again,) = parse_accept([f"{member.essence};q={member.weight:.3f}"])
        assert again == member._replace(parameters=())
    assert list(parse_accept([""] * len(lines) + lines)) == ranges
    assert [each for line in lines for each in parse_accept([line])] == ranges


def make_plan(data: bytes) -> None:
    """A plan for a request line and header lines uses only what the configuration offers."""
    text = data.decode("utf-8", "surrogateescape")
    line, *lines = text.split("\n")
    method, _, target = line.partition(" ")
    path, mark, query = target.partition("?")
    fields = [(name, value) for name, _, value in (each.partition(":") for each in lines)]
    head = RequestHead(method, path, query if mark else None, CIMultiDict(fields))
    outcome = plan(SNAPSHOT, head)
    assert outcome == plan(SNAPSHOT, head)
    if isinstance(outcome, Plan):
        assert outcome.route in outcome.endpoint.routes.values()
        assert outcome.target.startswith(("/up", "/in/", "/deep/"))
        asked = outcome.target.partition("?")
        rewrite = outcome.rewrite
        readers = () if rewrite is None else rewrite.readers
        told = {reader.name for reader in readers if isinstance(reader, QueryReader)}
        sent = asked[2].split("&") if asked[1] else []
        given = query.split("&") if mark else []
        if len(sent) > len(given) or (given == [""] and sent != given):
            # The version is added if the request has none.
            added = sent.pop()
            assert rewrite is not None
            assert isinstance(rewrite.added, QueryReader)
            assert parameters(rewrite.added.name).fullmatch(added)
            given = [] if given == [""] else given
        for now, before in zip(sent, given, strict=True):
            assert now == before or any(parameters(name).fullmatch(before) for name in told)
        # The target never leaves the folder of the inserted path, whatever its encoding.
        parts = asked[0].lower().replace("%2e", ".").split("/")
        assert not {".", ".."} & set(parts)
        assert outcome.route.service.name == "s"
    elif isinstance(outcome, Options):
        assert method == "OPTIONS"
    else:
        assert 400 <= outcome.fault.status < 500
        assert outcome.fault.detail


def pass_fields(data: bytes) -> None:
    """Hop-by-hop fields are removed; all other fields stay unchanged and in order."""
    fields: HeaderFields = []
    for line in data.split(b"\n"):
        name, _, value = line.partition(b":")
        fields.append((name, value.strip(b" \t")))
    kept = headers.end_to_end(fields, headers.FORWARDING)
    named = {
        option.strip(b" \t").lower()
        for name, value in fields
        if name.lower() == b"connection"
        for option in value.split(b",")
    }
    gone = headers.HOP_BY_HOP | headers.FORWARDING | named
    # Fields with these names do not occur in practice, so Connection may or may not remove them.
    either = {b"", b"close"}
    assert [line for line in kept if line[0].lower() not in either] == [
        line for line in fields if line[0].lower() not in gone | either
    ]
    assert headers.end_to_end(kept, frozenset()) == kept
    varied = headers.with_vary(kept, ("X-API-VERSION", "Accept"))
    assert varied[: len(kept)] == kept
    assert headers.with_vary(varied, ("X-API-VERSION", "Accept")) == varied
    inherited = tuple(line for line in fields if line[0].lower() in headers.FORWARDING)
    for origin in (None, ("https", "shop.test")):
        said = headers.forwarding("::1", "http", "api.test:80", inherited, origin)
        for name in (b"Forwarded", b"X-Forwarded-For", b"X-Forwarded-Host", b"X-Forwarded-Proto"):
            (value,) = (value for key, value in said if key.lower() == name.lower())
            assert value
        assert dict(said)[b"X-Forwarded-For"].endswith(b"::1")
    names = [line[0] for line in kept]
    headers.retype(kept, "application/vnd.t-v1+json")
    assert [line[0] for line in kept] == names


def load_rules(data: bytes) -> None:
    """A configuration is loaded as a whole, or each mistake is reported on its own line."""
    try:
        snapshot = load(data, "gateway.yaml", {"SET": "value"})
    except ConfigError as error:
        _check_report(error, len(data.decode(errors="replace").splitlines()))
    else:
        assert snapshot.summary
        plan(snapshot, RequestHead("GET", "/", None, CIMultiDict()))


def _check_report(error: ConfigError, most: int) -> None:
    lines = error.report().splitlines()
    assert 0 < len(lines) == len(error.issues)
    for line, issue in zip(lines, error.issues, strict=True):
        assert 1 <= issue.line <= most + 1, line
        assert issue.column >= 1, line
        assert line.startswith(f"gateway.yaml:{issue.line}:{issue.column}: "), line
        assert line.isprintable()
        assert issue.text


def convert_json(data: bytes) -> None:
    """A converted body is JSON, and can be converted back if both directions are possible."""
    assert CONVERTED.request is not None
    assert CONVERTED.response is not None
    asked, answered = (
        CONVERTED.request.for_request("POST"),
        CONVERTED.response.for_response("POST", 200),
    )
    for there, back in ((asked, answered), (answered, asked)):
        assert there is not None
        assert back is not None
        try:
            converted = json_body.convert(data, there)
        except ConversionError:
            continue
        _parsed(data)
        _parsed(converted)
        try:
            returned = json_body.convert(converted, back)
        except ConversionError:
            continue
        _parsed(returned)


def _parsed(body: bytes) -> Any:
    # Numbers may have more digits than Python converts to an int; the gateway forwards them as
    # text.
    return json.loads(body, parse_constant=_refuse, parse_int=str, parse_float=str)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def read_yaml(data: bytes) -> None:
    """A YAML document becomes JSON, or is refused."""
    try:
        made = json_of(data)
    except NotJsonError:
        return
    _parsed(made)


def undo_codings(data: bytes) -> None:
    """The first line is Content-Encoding; the decoded rest stays within the limit."""
    value, _, body = data.partition(b"\n")
    applied = content_coding.codings([value])
    try:
        decoded = content_coding.decode(body, applied, LIMIT)
    except content_coding.ContentCodingError:
        return
    assert len(decoded) <= LIMIT or not applied


class Target(NamedTuple):
    """A target and seed inputs that reach most of its code."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


def _gzip(wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(b'{"name": "A B"}' * 9) + packer.flush()


def _mistakes() -> tuple[bytes, ...]:
    text = (ROOT / "tests/gateway/rules/mistakes.txt").read_bytes()
    return tuple(text.split(b"\n\n")[:40])


TARGETS = {
    "accept": Target(
        read_accept,
        (
            b"application/vnd.t-v1+json;q=0.5, */*;q=0",
            b'text/html;a="b,c\\"";q=1.000,application/json',
            b'a/b;c="\na/b;q=0.001',
        ),
    ),
    "plan": Target(
        make_plan,
        (
            b"GET /v1/x?a=b",
            b"GET /v2/x/17\nHost: a",
            b"GET /query?version=1&version=%31\nAccept: */*",
            b"OPTIONS /header\nX-API-VERSION: 2",
            b"GET /accept\nAccept: application/vnd.t-v1+json;q=0.1, application/vnd.t-v2+json",
            b"POST /all?version=1\nX-API-VERSION: 1\nAccept: application/vnd.t-v2+json;q=0",
            b"GET /tail/a/b/%2E./c?",
        ),
    ),
    "headers": Target(
        pass_fields,
        (
            b"Connection: close, X-Hop\nX-Hop: 1\nX-Stays: 2\nTE: trailers",
            b"Forwarded: for=1.2.3.4\nX-Forwarded-For: 1.2.3.4\nVary: *, Accept",
            b"Content-Type: application/json; charset=utf-8\nvary: accept",
            b"Connection: close, X-Hop\nClose: no option names this one\nX-Hop: 1",
        ),
    ),
    "config": Target(
        load_rules,
        (_RULES, (ROOT / "gateway.yaml").read_bytes(), b"a: &a [*a]\n<<: *a", *_mistakes()),
    ),
    "json": Target(
        convert_json,
        (
            b'{"name": "A B", "place": "C,D", "items": [{"price": 1e400}, {}], "x": -0.0}',
            b'[{"name": {"first": "A", "last": null}, "where": {"city": "C", "zip": "1"}}]',
            b'{"name": "\\ud83d\\ude00 \\u0000", "name": 1}',
        ),
    ),
    "yaml": Target(
        read_yaml,
        (
            b"a: [0644, 0x1F, 1_0, .5, 1e3, ~, yes]\nb: {c: 'd', e: \"\\u00e9\"}\nf: |\n  g\n",
            b"- a\n- - b\n  - c: d\n- ? e\n  : f\n--- \n",
            b"a: &x 1\nb: *x\nc: !!int 3\n",
        ),
    ),
    "coding": Target(
        undo_codings,
        (
            b"gzip\n" + _gzip(31),
            b"deflate\n" + _gzip(15),
            b"deflate\n" + _gzip(-15),
            b"br\n\x0b\x02\x80hello\x03",
            b"zstd\n(\xb5/\xfd\x04\x00A\x00\x00hello\xeaz*\xa1",
            b"gzip, identity, br\nx",
        ),
    ),
}
