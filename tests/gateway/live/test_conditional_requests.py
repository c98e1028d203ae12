"""Conditional requests, ranges and codings of converted responses, over sockets."""

import gzip
import json
from pathlib import Path

import brotli
import pytest

from tests.gateway.kit import Program, StartGateway, StartUpstream, rules
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, Message, answer, ask, get
from tests.gateway.talk import get as talk_get

BOB = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
BOB_1 = b'{"name":"Bob Charlie"}'
SINCE = "Thu, 01 Jan 2026 00:00:00 GMT"
V1, V2 = "/down/v1", "/down/v2"


class Resource:
    """A service that evaluates conditions strictly by RFC 9110, section 13."""

    def __init__(self, tag: str = '"s1"', body: bytes = BOB) -> None:
        self.tag = tag
        self.body = body

    def __call__(self, asked: Message) -> bytes:
        lines = [f"ETag: {self.tag}", f"Last-Modified: {SINCE}", "Accept-Ranges: bytes"]
        method = asked.line.split()[0]
        matches, none_match = asked.members("If-Match"), asked.members("If-None-Match")
        strong = [tag for tag in matches if not tag.startswith("w/")]
        if matches and self.tag not in strong and matches != ["*"]:
            return answer(b'{"title":"no"}', *lines, status="412 Precondition Failed")
        opaque = [tag.removeprefix("w/") for tag in none_match]
        same = self.tag.removeprefix("W/") in opaque or none_match == ["*"]
        if none_match and same and method not in (b"GET", b"HEAD"):
            return answer(b"", *lines, status="412 Precondition Failed")
        if same or (not none_match and asked.all("If-Modified-Since") == [SINCE.encode()]):
            return answer(b"", *lines, status="304 Not Modified")
        if method == b"PUT":
            self.tag = '"s2"'
            return answer(b"", 'ETag: "s2"', status="204 No Content", content_type=None)
        data = answer(self.body, *lines)
        return data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else data


def tag(got: Answer) -> str:
    return got.one("ETag").decode()


@pytest.fixture
def resource(house: House) -> Resource:
    resource = Resource()
    house.service.answer = resource
    return resource


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}, "y"', '"x"\r\nIf-None-Match: {}', "*"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.usefixtures("resource")
def test_a_304_of_the_service_is_forwarded_for_a_converted_tag(
    house: House, method: str, form: str
) -> None:
    first = get(house.gateway, V1)
    assert (first.body, first.one("Last-Modified")) == (BOB_1, SINCE.encode())
    assert first.one("Accept-Ranges") == b"none"
    assert tag(first).startswith('"s1.')
    condition = f"If-None-Match: {form.format(tag(first))}"
    got = ask(house.gateway, method, V1, condition)
    assert (got.status, got.body) == (304, b"")
    if "W/" not in form:
        assert tag(got) == tag(first)
    assert got.members("Vary") == first.members("Vary") == ["accept-encoding"]


@pytest.mark.parametrize(
    ("method", "status"), [("GET", "304 Not Modified"), ("HEAD", "304 No"), ("HEAD", "200 OK")]
)
def test_a_response_without_a_body_has_no_fields_about_body_bytes(
    house: House, method: str, status: str
) -> None:
    """The endpoint /down/v1 is converted; /down/v2 is not."""
    lines = (
        *("Content-Length: 12345", "Content-Encoding: gzip", "Content-MD5: Q2hlY2s="),
        *(
            "Content-Range: bytes 0-1/12345",
            "Repr-Digest: sha-256=:YQ==:",
            "Cache-Control: private",
        ),
    )
    head = "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: application/json", *lines, "", ""])
    house.service.answer = head.encode()
    names = [line.partition(":")[0] for line in lines]
    of_v1, of_v2 = (ask(house.gateway, method, path) for path in (V1, V2))
    assert [name for name in names if of_v2.all(name)] == names
    assert [name for name in names if of_v1.all(name)] == ["Cache-Control"]


@pytest.mark.usefixtures("resource")
def test_entity_tags_of_other_versions_do_not_match(house: House) -> None:
    native, own = tag(get(house.gateway, V2)), tag(get(house.gateway, V1))
    assert native == '"s1"'
    for lines in (
        [f"If-None-Match: {native}"],
        [f"If-None-Match: {native}", f"If-Modified-Since: {SINCE}"],
    ):
        assert get(house.gateway, V1, *lines).body == BOB_1
    assert get(house.gateway, V2, f"If-None-Match: {own}").body == BOB
    assert get(house.gateway, V1, f"If-Modified-Since: {SINCE}").status == 304


def test_if_match_is_translated_to_the_tag_of_the_service(house: House, resource: Resource) -> None:
    json_type = "Content-Type: application/json"

    def put(*conditions: str) -> Answer:
        return ask(house.gateway, "PUT", V1, json_type, *conditions, body=BOB_1)

    own = tag(get(house.gateway, V1))
    for condition in (f"W/{own}", '"s1"', '"x"', f'"s1{own[3:-2]}0"'):
        got = put(f"If-Match: {condition}")
        assert (got.status, tag(got), resource.tag) == (412, own, '"s1"')
    assert put("If-None-Match: *").status == 412
    done = put(f'If-Match: "x", {own}')
    assert (done.status, resource.tag) == (204, '"s2"')
    assert house.service.last.one("If-Match") == b'"s1"'
    assert put(f"If-Match: {own}").status == 412
    assert tag(get(house.gateway, V1)) == tag(done)
    assert put(f"If-Match: {tag(done)}").status == 204
    assert put("If-Match: *").status == 204


def test_a_weak_entity_tag_stays_weak(house: House, resource: Resource) -> None:
    resource.tag = 'W/"s1"'
    own = tag(get(house.gateway, V1))
    assert own.startswith('W/"s1.')
    assert get(house.gateway, V1, f"If-None-Match: {own}").status == 304
    put = ask(
        house.gateway, "PUT", V1, "Content-Type: application/json", f"If-Match: {own}", body=BOB_1
    )
    assert put.status == 412


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
def test_more_than_2048_entity_tags_are_431(house: House, name: str) -> None:
    """Each tag costs time: 64 KiB of tags delay all other requests by 25 ms."""
    house.service.answer = answer(b"{}")
    assert get(house.gateway, V1, f"{name}: " + '"a",' * 2048).status == 200
    got = get(house.gateway, V1, f"{name}: " + '"a",' * 2049)
    assert got.refusal() == (431, "headers_too_large")
    assert get(house.gateway, "/plain", f"{name}: " + '"a",' * 2049).status == 200


@pytest.mark.usefixtures("resource")
def test_ranges_of_converted_responses_are_ignored(house: House) -> None:
    own = tag(get(house.gateway, V1))
    for lines in (["Range: bytes=0-1"], ["Range: bytes=0-1", f"If-Range: {own}"]):
        got = get(house.gateway, V1, *lines)
        assert (got.status, got.body) == (200, BOB_1)
        assert not house.service.last.all("Range")
        assert not house.service.last.all("If-Range")


NAMES = [{"name": {"firstName": f"Bob{number}", "lastName": "Charlie"}} for number in range(900)]
MANY = json.dumps(NAMES).encode()


def decoded(body: bytes, coding: str) -> bytes:
    if coding == "gzip":
        return gzip.decompress(body)
    if coding == "br":
        return bytes(brotli.decompress(body))
    from gateway.http import content_coding

    return content_coding.decode(body, [coding], 10**6)


@pytest.mark.parametrize("count", [100, 900])
def test_large_converted_responses_are_compressed(
    house: House, resource: Resource, count: int
) -> None:
    resource.body = json.dumps(NAMES[:count]).encode()
    plain = get(house.gateway, V1)
    assert plain.all("Content-Encoding") == []
    tags = {tag(plain)}
    for coding in ("gzip", "br", "zstd"):
        line = f"Accept-Encoding: {coding}, deflate"
        got = get(house.gateway, V1, line, "X-Request-Id: coded")
        assert got.one("Content-Encoding") == coding.encode()
        assert len(got.body) < len(plain.body) / 3
        assert decoded(got.body, coding) == plain.body
        assert got.one("Content-Length") == b"%d" % len(got.body)
        assert got.members("Vary") == ["accept-encoding"]
        tags.add(tag(got))
        again = get(house.gateway, V1, line, f"If-None-Match: {tag(got)}")
        assert (again.status, tag(again)) == (304, tag(got))
        assert tag(ask(house.gateway, "HEAD", V1, line)) == tag(got)
        assert get(house.gateway, V1, line).body == got.body
    assert len(tags) == 4
    assert get(house.gateway, V2, "Accept-Encoding: gzip").body == resource.body


def test_accept_encoding_of_several_lines_is_one_list(house: House) -> None:
    house.service.answer = answer(MANY)
    got = get(house.gateway, V1, "Accept-Encoding: deflate", "Accept-Encoding: gzip")
    assert got.one("Content-Encoding") == b"gzip"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (BOB, []),
        (MANY, ["Cache-Control: private, No-Transform"]),
        (MANY, ["Accept-Encoding: gzip;q=0"]),
        (MANY, [f"Accept-Encoding: {'a' * 1020},gzip"]),  # longer than any client sends
    ],
)
def test_small_or_opted_out_responses_are_not_compressed(
    house: House, body: bytes, lines: list[str]
) -> None:
    asked = [line for line in lines if line.startswith("Accept")] or ["Accept-Encoding: gzip"]
    house.service.answer = answer(body, *(line for line in lines if line.startswith("Cache")))
    got = get(house.gateway, V1, *asked)
    assert got.all("Content-Encoding") == []
    assert got.members("Vary") == ["accept-encoding"]
    assert got.body.startswith((b'{"name":"Bob Charlie', b'[{"name":"Bob0'))


ANSWER = (
    b'HTTP/1.1 200 OK\r\nETag: "s1"\r\nContent-Type: application/json\r\n'
    b"Content-Length: %d\r\n\r\n%b" % (len(MANY), MANY)
)


async def tags(program: Program) -> set[str]:
    """Return the tags of responses on many connections, which different workers serve."""
    found = [
        await talk_get(program, "GET /v1/person", "Accept-Encoding: gzip", "Connection: close")
        for _ in range(12)
    ]
    return {got["etag"] for got in found}


async def test_every_worker_sends_the_same_entity_tags(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    """Tags depend only on the configuration, not on the number of workers or their start time."""
    scripted = await upstream(ANSWER)
    text = rules(scripted.port, via=True)
    program = gateway(text, GATEWAY_WORKERS="2")
    (first,) = await tags(program)
    assert first.startswith('"s1.')
    assert first.endswith('.gzip"')
    # Two connections to the service show that both workers have handled requests.
    assert scripted.connections == 2
    program.reload(text + "\n# other words, the same rules\n")
    assert await tags(program) == {first}
    program.reload(text.replace("into: name }", "into: name, separator: '-' }"))
    (other,) = await tags(program)
    assert other != first
    got = await talk_get(program, "GET /v1/person", f"If-None-Match: {first}")
    assert got.status == 200
    program.reload("compress: false\n" + text)
    plain = await talk_get(program, "GET /v1/person", "Accept-Encoding: gzip")
    assert plain["etag"] == first.replace(".gzip", "")
    assert plain.all("content-encoding") == plain.all("vary") == []
    program.process.terminate()
    program.process.wait()
    assert await tags(gateway(text)) == {first}


async def test_responses_converted_by_an_impure_function_have_weak_tags(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """If-Match still works with a weak tag: the service gets its own strong tag."""
    scripted = await upstream(ANSWER)
    python = '- python: { field: a, up: "json:loads", down: "json:dumps" }'
    program = gateway(rules(scripted.port, changes=python, via=True))
    got = await talk_get(program, "GET /v1/person")
    assert got["etag"].startswith('W/"s1.')
    await talk_get(program, "GET /v1/person", f"If-Match: {got['etag']}")
    assert b'If-Match: "s1"\r\n' in scripted.requests[-1]
    pure = python.replace(" }", ", pure: true }")
    program.reload(rules(scripted.port, changes=pure, via=True))
    got = await talk_get(program, "GET /v1/person")
    assert got["etag"].startswith('"s1.')
