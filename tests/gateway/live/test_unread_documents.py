"""Merged writes over sockets: whatever the read responds, no write is sent unmerged."""

import asyncio
import gzip
import json
import re
from typing import NamedTuple

from tests.gateway.kit import Scripted, StartGateway, StartUpstream
from tests.gateway.talk import Client, End, Reader, Writer, ask, connect, end, reset

LIMIT = 20_000
RULES = """
services:
  orders: {{ targets: ["http://127.0.0.1:{port}"], ejection: {{ failures: 1000 }} }}
  slow:
    targets: ["http://127.0.0.1:{port}"]
    ejection: {{ failures: 1000 }}
    timeouts: {{ whole: 1 }}
limits: {{ convert: {limit} }}
apis:
  orders: &api
    endpoints: [ {{ path: "/v{{version}}/orders/{{id}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: orders }} }}
    conversions:
      - between: ["1", "2"]
        writes: merge
        changes:
          - rename: {{ field: status, to: state }}
          - default: {{ field: channel, value: web }}
  slow:
    <<: *api
    endpoints: [ {{ path: "/v{{version}}/slow/{{id}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: slow }} }}
"""
ORDER = b'{"status":"new","channel":"app"}'
TAG = b'ETag: "1"'
JSON = b"Content-Type: application/json"


def response(
    status: int, body: bytes = ORDER, *fields: bytes, of: bytes = JSON, tag: bytes = TAG
) -> bytes:
    length = b"Content-Length: %d" % len(body)
    lines = [b"HTTP/1.1 %d X" % status, *(one for one in (of, tag, *fields) if one), length]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Case(NamedTuple):
    """A response to the read, and how the service ends the connection."""

    read: bytes
    then: End = "hold"
    status: int = 502
    code: str = "write_unread"
    path: str = "orders"


CODED = b"Content-Encoding: gzip"
CHUNKS = b"".join(b"%x\r\n%b\r\n" % (4096, b" " * 4096) for _ in range(8)) + b"0\r\n\r\n"
CASES = {
    "401": Case(response(401, b""), status=401, code="write_denied"),
    "403": Case(response(403, b""), status=403, code="write_denied"),
    **{
        str(status): Case(response(status))
        for status in (201, 202, 203, 206, 300, 400, 405, 406, 409, 410, 412, 416, 429)
    },
    **{str(status): Case(response(status)) for status in (500, 501, 502, 503, 504)},
    **{
        f"{status} to another document": Case(response(status, b"", b"Location: /v2/orders/ok"))
        for status in (301, 302, 303, 307, 308)
    },
    "204": Case(b"HTTP/1.1 204 No Content\r\n" + TAG + b"\r\n\r\n"),
    "304": Case(b"HTTP/1.1 304 Not Modified\r\n" + TAG + b"\r\n\r\n"),
    "HTML": Case(response(200, b"<p>", of=b"Content-Type: text/html")),
    "no Content-Type": Case(response(200, b"<p>", of=b"")),
    "a merge patch": Case(response(200, of=b"Content-Type: application/merge-patch+json")),
    "a form": Case(response(200, b"a=b", of=b"Content-Type: application/x-www-form-urlencoded")),
    "JSON in UTF-16": Case(response(200, ORDER.decode().encode("utf-16"))),
    "not UTF-8": Case(response(200, b'{"status":"\xff"}')),
    "no body": Case(response(200, b"")),
    "no JSON": Case(response(200, b"{status: new}")),
    "half of a document": Case(response(200, ORDER[:-1])),
    "two documents": Case(response(200, ORDER + ORDER)),
    "a repeated name": Case(response(200, b'{"status":"new","status":"old"}')),
    "a document that does not fit": Case(response(200, b'{"status":"new","state":"old"}')),
    "1,000 levels": Case(response(200, b'{"a":' * 1000 + b"1" + b"}" * 1000)),
    "no tag": Case(response(200, tag=b"")),
    "a weak tag": Case(response(200, tag=b'ETag: W/"1"')),
    "an unquoted tag": Case(response(200, tag=b"ETag: 1")),
    "two tags": Case(response(200, ORDER, b'ETag: "2"')),
    "an empty field for a tag": Case(response(200, tag=b"ETag:")),
    "over the budget": Case(response(200, b'{"status":"%b"}' % (b"x" * LIMIT))),
    "chunks over the budget": Case(
        b"\r\n".join((b"HTTP/1.1 200 OK", JSON, TAG, b"Transfer-Encoding: chunked", b"", CHUNKS))
    ),
    "decoded over the budget": Case(
        response(200, gzip.compress(b'{"status":"%b"}' % (b"x" * LIMIT)), CODED)
    ),
    "an unknown coding": Case(response(200, ORDER, b"Content-Encoding: zip")),
    "a wrong coding": Case(response(200, ORDER, CODED)),
    "half of a coded document": Case(response(200, gzip.compress(ORDER)[:-9], CODED)),
    "a malformed head": Case(b"HTTP/1.1 200 OK\r\nContent-Le\r\n\r\n", "close"),
    "a switch of protocols": Case(b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "closed before the response": Case(b"", "close"),
    "reset before the response": Case(b"", "reset"),
    "closed within the body": Case(response(200)[:-1], "close"),
    "reset within the body": Case(response(200)[:-1], "reset"),
    "no response in time": Case(b"", path="slow"),
    "half a response in time": Case(response(200)[:-1], path="slow"),
}
NAMES = [*CASES]
UNMERGED = b'{"status":"paid","channel":"web"}'
WRITES = {
    "PUT": (b'{"state":"paid"}', "application/json"),
    "PATCH": (b'{"state":"paid"}', "application/merge-patch+json"),
}


async def serve(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    """Respond to a read as its case says, and to any other request with the document."""
    while True:
        request = await scripted.take(reader)
        number = re.match(rb"GET /v2/\w+/(\d+) ", request)
        case = Case(response(200)) if number is None else CASES[NAMES[int(number[1])]]
        writer.write(case.read)
        await writer.drain()
        if case.then != "hold":
            return await end(reader, writer, case.then)


async def written(client: Client, method: str, path: str, *fields: str) -> tuple[int, str]:
    body, media = WRITES[method]
    given = (f"Content-Type: {media}", f"Content-Length: {len(body)}", *fields)
    client.send(ask(f"{method} /v1/{path}", *given, body=body))
    answer = await client.answer()
    return answer.status, json.loads(answer.body).get("code", "")


async def test_a_write_is_never_sent_if_its_document_cannot_be_read(
    upstream: StartUpstream, reloaded: StartGateway
) -> None:
    """Each case is written by PUT and by PATCH; the service gets only the reads."""
    service = await upstream(serve)
    program = reloaded(RULES.format(port=service.port, limit=LIMIT))
    found: dict[tuple[str, str], tuple[int, str]] = {}
    places = asyncio.Semaphore(8)

    async def write(method: str, number: int, name: str) -> None:
        async with places, connect(program) as client:
            path = f"{CASES[name].path}/{number}"
            found[method, name] = await written(client, method, path)

    await asyncio.gather(*(write(method, *case) for method in WRITES for case in enumerate(CASES)))
    assert found == {
        (method, name): (case.status, case.code)
        for method in WRITES
        for name, case in CASES.items()
    }
    assert {request.split()[0] for request in service.requests} == {b"GET"}


async def test_a_write_is_merged_into_a_coded_document_or_converted_if_there_is_none(
    upstream: StartUpstream, reloaded: StartGateway
) -> None:
    """The control for the tests in which a read prevents the write."""
    coded = response(200, gzip.compress(ORDER), CODED)
    merged = b'{"status":"paid","channel":"app"}'
    for read, tagged, sent in ((coded, True, merged), (response(404), False, UNMERGED)):
        service = await upstream(read)
        program = reloaded(RULES.format(port=service.port, limit=LIMIT))
        async with connect(program) as client:
            await written(client, "PUT", "orders/ok")
        # The gateway also fetches the service's OpenAPI document, at its own time.
        [write] = [request for request in service.requests if request.startswith(b"PUT ")]
        head, _, body = write.partition(b"\r\n\r\n")
        assert (body, b'If-Match: "1"' in head) == (sent, tagged)


async def test_writes_of_clients_that_abort_are_sent_merged_or_not_at_all(
    upstream: StartUpstream, reloaded: StartGateway
) -> None:
    """The clients reset their connections before, during and after the read."""
    reads: asyncio.Queue[Writer] = asyncio.Queue()

    async def hold_read(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while (await scripted.take(reader)).startswith(b"GET"):
            await reads.put(writer)
        writer.write(response(200))

    service = await upstream(hold_read)
    program = reloaded(RULES.format(port=service.port, limit=LIMIT))
    for answers in (False, True) * 5:
        async with connect(program) as client:
            body, media = WRITES["PUT"]
            fields = (f"Content-Type: {media}", f"Content-Length: {len(body)}")
            client.send(ask("PUT /v1/orders/1", *fields, body=body))
            service_side = await reads.get()
            if answers:
                service_side.write(response(200))
            reset(client.writer)
        if not answers:
            service_side.write(response(200))

    async def respond() -> None:
        while True:
            (await reads.get()).write(response(200))

    responding = asyncio.create_task(respond())  # an aborted read may have been sent once more
    async with connect(program) as client:
        assert await written(client, "PUT", "orders/1") == (200, "")
    responding.cancel()
    writes = [request for request in service.requests if not request.startswith(b"GET")]
    assert all(b'If-Match: "1"' in write and b'"channel":"app"' in write for write in writes)
    assert len(writes) <= 11
