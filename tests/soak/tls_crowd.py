"""Clients that use TLS, close only their sending side, or fail in the handshake."""

import asyncio
import json
import socket
import ssl
from contextlib import suppress
from random import Random
from time import monotonic

from tests.gateway.talk import Answer, Client, ask, connect, reset
from tests.soak.load import FAILURES, Load, Question
from tests.soak.mirror import pattern
from tests.soak.questions import any_of, echo

_strangers = ssl.create_default_context()  # trusts no authority that signed the certificate


async def secure(load: Load, random: Random) -> None:
    async with load.visit("", secure=True) as visit:
        for _ in range(random.randint(1, 20)):
            await visit.ask(_vault(load, random) if random.random() < 0.7 else any_of(random))
            await asyncio.sleep(0.005)
        match random.randrange(3):
            case 0:
                reset(visit.client.writer)
            case 1:  # without close_notify
                _end_sending(visit.client)
                await visit.client.rest()


def _end_sending(client: Client) -> None:
    """Close the sending side of the TCP connection, without a close_notify."""
    own = client.writer.get_extra_info("socket")
    if own is None:
        raise ConnectionResetError("the connection ended early")
    own.shutdown(socket.SHUT_WR)


def _vault(load: Load, random: Random) -> Question:
    if random.random() < 0.2:
        size = random.randint(1, 200_000)
        expected = b"".join(pattern(min(65536, size - at), at) for at in range(0, size, 65536))
        line = f"GET /vault/bytes?size={size}"
        return Question("vault", line, lambda answer: answer.body == expected)
    token = echo(random).line.partition("/echo/")[2]

    began = monotonic()

    def right(answer: Answer) -> bool:
        told = json.loads(answer.body)
        expected = {"path": f"/echo/{token}", "request_id": answer["x-request-id"]}
        address = told.pop("address")
        allowed = not load.seen or load.seen.get(address, 0.0) > began
        return answer.status == 200 and told == expected and allowed

    return Question("vault", f"GET /vault/echo/{token}", right)


async def half_closed(load: Load, random: Random) -> None:
    """Close the sending side after the request; the gateway treats this as a disconnect."""
    tls, place = random.choice(((None, None), (load.tls, load.secure_place)))
    with suppress(*FAILURES):
        async with connect(load.gateway, tls=tls, place=place) as client:
            client.send(ask(f"GET /bytes?size={random.randint(1, 300_000)}"))
            await client.writer.drain()
            await asyncio.sleep(random.random() / 50)
            _end_sending(client)
            await client.rest()
    await asyncio.sleep(0.05)


async def broken_service(load: Load, random: Random) -> None:
    by = random.choice(("reset", "end"))
    with suppress(*FAILURES):
        async with connect(load.gateway) as client:
            client.send(ask(f"GET /vault/cut?by={by}"))
            answer = await client.answer()
            if answer.status < 500:
                load.wrong.append(f"a response that breaks off is complete: {answer}")
    await asyncio.sleep(0.1)


async def failed_handshake(load: Load, random: Random) -> None:
    kind = random.randrange(5)
    if kind == 0:  # the client refuses the certificate
        with suppress(ssl.SSLError, *FAILURES):
            async with connect(load.gateway, tls=_strangers, place=load.secure_place):
                load.wrong.append("a certificate of an unknown authority is accepted")
    else:
        sent = (
            b"GET /echo/1 HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the beginning of a ClientHello
            random.randbytes(300),
            b"",
        )[kind - 1]
        with suppress(*FAILURES):
            async with connect(load.gateway, place=load.secure_place) as client:
                client.send(sent)
                await asyncio.sleep(random.random() / 10)
                if random.random() < 0.5:
                    reset(client.writer)
    await asyncio.sleep(0.05)
