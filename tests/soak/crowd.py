"""Clients that misbehave or send large messages: each function is one visit of one client."""

import asyncio
import json
from contextlib import suppress
from itertools import count
from random import Random

from tests.gateway.talk import Answer, ask
from tests.soak.load import FAILURES, Load, Question, Visit, WrongAnswerError, is_refusal
from tests.soak.mirror import PIECE, catalog, pattern
from tests.soak.questions import echo, is_json

_names = count()

# Invalid requests, each with the expected refusal.
GARBAGE = (
    (b"\x00\xff\x16\x03\x01\r\n\r\n", 400),
    (b"GET /v1/person HTTP/3.0\r\nHost: a\r\n\r\n", 400),
    (b"GET /v1/person HTTP/1.1\r\n\r\n", 400),
    (b"GET /v1/person HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", 400),
    (b"GET /v1/person HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    (b"GET /v1/person HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", 400),
    (b"POST /users HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400),
    (ask("POST /users", "Content-Length: 3", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
    (b"PUT /bytes HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    (ask("POST /v1/catalog", "Connection: close", "Content-Length: 2", body=b"no"), 415),
    (
        ask(
            "POST /v1/catalog",
            "Connection: close",
            "Content-Type: application/json",
            "Content-Length: 2",
            body=b"{]",
        ),
        400,
    ),
)


async def garbage(load: Load, random: Random) -> None:
    data, status = random.choice(GARBAGE)
    async with load.visit("mirror") as visit:
        visit.client.send(data)
        answer = await visit.client.rest()
        if not answer.startswith(b"HTTP/1.1 %d " % status):
            raise WrongAnswerError(f"{data[:80]!r}: {answer[:200]!r}")
        load.right += 1


async def user(load: Load, random: Random) -> None:
    async with load.visit("users") as visit:
        for _ in range(random.randint(1, 20)):
            posted = {"name": f"user {next(_names):x}", "birthDate": "1990-04-01"}
            answer = await visit.ask(Question("users", "POST /users", _is_created, body=posted))
            if answer is None:
                continue
            number = json.loads(answer.body)["id"]
            stored = {"id": number, **posted}
            load.created[number] = posted["name"]

            def is_stored(answer: Answer, stored: object = stored) -> bool:
                return is_json(answer, stored)

            if json.loads(answer.body) != stored:
                raise WrongAnswerError(f"POST /users of {posted}: {answer}")
            await visit.ask(Question("users", f"GET /users/{number}", is_stored))
            await asyncio.sleep(0.01)


def _is_created(answer: Answer) -> bool:
    number = json.loads(answer.body)["id"]
    return answer.status == 201 and answer["location"] == f"http://api.test/users/{number}"


async def large(load: Load, random: Random) -> None:
    async with load.visit("mirror") as visit:
        size = random.randint(1, 4_000_000)
        await visit.ask(_bytes(size, random))
        number = random.choice((5_000, 20_000))
        items = [{**item, "name": f"First{item['id']} Last"} for item in catalog(number)]
        line = f"GET /v1/catalog?size={number}"
        await visit.ask(Question("mirror", line, lambda answer: is_json(answer, items)))
        await _upload(visit, size, chunked=random.random() < 0.5)


async def slow(load: Load, random: Random) -> None:
    if random.random() < 0.5:
        async with load.visit("mirror") as visit:
            for byte in ask("GET /v2/catalog?size=0"):
                visit.client.send(bytes([byte]))
                await visit.client.writer.drain()
                await asyncio.sleep(0.005)
            answer = _expect(200, await visit.client.answer())
            if answer.body != b"[]":
                raise WrongAnswerError(f"a request that came slowly: {answer}")
            load.right += 1
        return
    async with load.visit("mirror", window=32_768) as visit:
        size = 400_000
        visit.client.send(ask(f"GET /bytes?size={size}&sized"))
        _expect(200, await visit.client.head())
        offset = 0
        while offset < size:
            data = await visit.client.reader.read(8192)
            if not data:
                raise ConnectionResetError("ended early")
            if data != pattern(len(data), offset):
                raise WrongAnswerError(f"a large answer, after {offset} bytes")
            offset += len(data)
            await asyncio.sleep(0.01)
        load.right += 1


async def leaver(load: Load, random: Random) -> None:
    async with load.visit("mirror") as visit:
        client = visit.client
        match random.randrange(6):
            case 0:
                client.send(ask("GET /bytes?size=3000000"))
                _expect(200, await client.head())
                await client.reader.read(10_000)
            case 1:
                client.send(ask("PUT /bytes", "Content-Length: 1000000", body=bytes(100_000)))
                await client.head()
            case 2:
                client.send(ask("GET /v1/person"))
            case 3:
                client.send(b"GET /v1/person HTTP/1.1\r\nHost: api")
            case 4:
                client.send(ask("GET /v1/catalog?size=20000"))
                await asyncio.sleep(random.random() / 20)
            case _:
                await _open_socket(visit)
        client.cut()


async def ahead(load: Load, random: Random) -> None:
    """Pipeline several requests; responses come in their order (RFC 9112, section 9.3.2)."""
    async with load.visit("mirror") as visit:
        questions = [echo(random) for _ in range(8)]
        ids = [f"ahead-{next(load.serial)}" for _ in questions]
        visit.client.send(b"".join(map(Question.request, questions, ids)))
        for question, request_id in zip(questions, ids, strict=True):
            visit.judge(question, request_id, await visit.client.final())


async def socket(load: Load, random: Random) -> None:
    """Use a WebSocket (RFC 6455) for a while; a mask of zeros leaves texts unchanged."""
    async with load.visit("mirror") as visit:
        await _open_socket(visit)
        for number in range(random.randint(1, 30)):
            said = f"message {number}".encode()
            visit.client.send(bytes([0x81, 0x80 | len(said), 0, 0, 0, 0]) + said)
            heard = await visit.client.reader.readexactly(2 + len(said))
            if heard != bytes([0x81, len(said)]) + said:
                raise WrongAnswerError(f"by WebSocket: {heard!r} for {said!r}")
            load.right += 1
            await asyncio.sleep(0.01)
        visit.client.send(bytes([0x88, 0x80, 0, 0, 0, 0]))
        await visit.client.rest()


async def _open_socket(visit: Visit) -> None:
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    fields = ("Connection: Upgrade", "Upgrade: websocket", key, "Sec-WebSocket-Version: 13")
    visit.client.send(ask("GET /socket", *fields))
    _expect(101, await visit.client.head())


def _expect(status: int, answer: Answer) -> Answer:
    if is_refusal(answer):
        raise ConnectionRefusedError(f"{answer.status}")
    if answer.status != status:
        raise WrongAnswerError(f"not {status}: {answer}")
    return answer


async def _upload(visit: Visit, size: int, *, chunked: bool) -> None:
    client, question = visit.client, _bytes(size)
    request_id = f"upload-{next(visit.load.serial)}"
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"

    async def send() -> None:
        with suppress(*FAILURES):  # an error shows when the response is read
            for offset in range(0, size, PIECE):
                piece = pattern(min(PIECE, size - offset), offset)
                client.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                await client.writer.drain()
            if chunked:
                client.send(b"0\r\n\r\n")

    visit.begin(question)
    client.send(ask("PUT /bytes", framing, f"X-Request-Id: {request_id}"))
    sending = asyncio.create_task(send())
    try:
        visit.judge(question, request_id, await client.final())
    finally:
        sending.cancel()


def _bytes(size: int, random: Random | None = None) -> Question:
    def right(answer: Answer) -> bool:
        pieces = (pattern(min(PIECE, size - at), at) for at in range(0, size, PIECE))
        return answer.status == 200 and answer.body == b"".join(pieces)

    sized = "&sized" if random is not None and random.random() < 0.5 else ""
    return Question("mirror", f"GET /bytes?size={size}{sized}", right)
