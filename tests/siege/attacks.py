"""The attackers: all attacks at once over ordinary connections, until the program is stopped.

python -m tests.siege.attacks PORT

Each attack is a function that is called repeatedly. One call lasts some seconds or until the
connection is cut. When stopped, the program prints how often each attack was made, because
attackers without processor time cause no load.
"""

import asyncio
import gzip
import json
import logging
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.gateway.kit import Program
from tests.gateway.talk import Client, ask, connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from subprocess import Popen

JSON = "Content-Type: application/json"
_random = Random(2)
_BOMB = gzip.compress(b"[" + b"{}," * 5_500_000 + b"{}]")
_MANY = b"[" + b"{}," * 200_000 + b"{}]"
_HOLD = 5.0
_FAILURES = (OSError, EOFError, TimeoutError, AssertionError, LookupError, ValueError)

# Each request is refused, or forwarded without what it tries to add.
TRICKS = (
    ask("GET /v1/person/..%2fadmin"),
    ask("GET /person/header", "Connection: X-API-VERSION", "X-API-VERSION: 1"),
    ask("POST /users", "X-HTTP-Method-Override: DELETE", "Content-Length: 0"),
    ask("POST /v1/catalog", JSON, "Content-Length: 15", body=b'{"a":1,"a":222}'),
    ask("POST /v1/catalog", JSON, "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    ask("GET /v1/person", "Host: evil", "X_Forwarded_For: 1", "Connection: close"),
    b"POST /users HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
)


async def deaf(client: Client) -> None:
    client.send(ask("GET /bytes?size=12000000"))
    await asyncio.sleep(_HOLD)


async def deaf_converted(client: Client) -> None:
    client.send(ask("GET /v1/catalog?size=3000"))
    await asyncio.sleep(_HOLD)


async def slow_reader(client: Client) -> None:
    client.send(ask("GET /bytes?size=300000"))
    for _ in range(50):
        await client.reader.read(100)
        await asyncio.sleep(_HOLD / 50)


async def slow_sender(client: Client) -> None:
    framing = _random.choice(["Content-Length: 4000", "Transfer-Encoding: chunked"])
    client.send(ask("PUT /bytes", framing))
    for _ in range(25):
        client.send(b"1\r\nx\r\n")
        await asyncio.sleep(_HOLD / 25)


async def slow_head(client: Client) -> None:
    client.send(b"GET /v1/person HTTP/1.1\r\nHost: api.test\r\n")
    for number in range(25):
        client.send(b"X-%d: a\r\n" % number)
        await asyncio.sleep(_HOLD / 25)


async def large_head(client: Client) -> None:
    """Send heads that are too large, one that never ends, and many heads at once."""
    client.send(b"GET /v1/person HTTP/1.1\r\nHost: api.test\r\n" + b"X: %b\r\n" % (b"a" * 60_000))
    client.send(b"Y: " + b"a" * 1_000_000)
    await client.rest()


async def bomb(client: Client) -> None:
    """Request the conversion of a few kilobytes that decompress to millions of elements."""
    gzipped = "Content-Encoding: gzip"
    client.send(ask("POST /v1/catalog", JSON, gzipped, f"Content-Length: {len(_BOMB)}", body=_BOMB))
    await client.rest()


async def many_elements(client: Client) -> None:
    """Send and receive converted bodies with as many elements as 600 kB can hold."""
    client.send(ask("POST /v1/catalog", JSON, f"Content-Length: {len(_MANY)}", body=_MANY))
    await client.final()


async def flood(client: Client) -> None:
    """Send many requests at once that the gateway answers itself, and read the responses."""
    for _ in range(20):
        client.send(ask("GET /nowhere") * 100)
        for _ in range(100):
            await client.final()


async def one_byte_chunks(client: Client) -> None:
    client.send(ask("PUT /bytes", "Transfer-Encoding: chunked"))
    for _ in range(20):
        client.send(b"1\r\nx\r\n" * 10_000)
        await client.writer.drain()
    client.send(b"0\r\n\r\n")
    await client.final()


async def idle_socket(client: Client) -> None:
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    fields = ("Connection: Upgrade", "Upgrade: websocket", key, "Sec-WebSocket-Version: 13")
    client.send(ask("GET /socket", *fields))
    await asyncio.sleep(_HOLD)


async def tricks(client: Client) -> None:
    client.send(_random.choice(TRICKS))
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            await client.rest()


async def come_and_go(client: Client) -> None:
    client.send(ask("GET /v1/catalog?size=100")[: _random.randrange(60)])
    await asyncio.sleep(0.05)
    client.cut()


Attack = Callable[[Client], Awaitable[None]]
ATTACKS: tuple[tuple[Attack, int, int], ...] = (
    # Each attack, the number of clients that make it, and the window of their connections in bytes.
    (deaf, 12, 4096),
    (deaf_converted, 6, 4096),
    (slow_reader, 20, 4096),
    (slow_sender, 40, 0),
    (slow_head, 40, 0),
    (large_head, 4, 0),
    (bomb, 2, 0),
    (many_elements, 2, 0),
    (flood, 2, 0),
    (one_byte_chunks, 2, 0),
    (idle_socket, 20, 0),
    (tricks, 2, 0),
    (come_and_go, 2, 0),
)


async def attack(program: Program) -> Counter[str]:
    made: Counter[str] = Counter()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    attackers = [
        asyncio.create_task(_again(program, each, window, made))
        for each, clients, window in ATTACKS
        for _ in range(clients)
    ]
    await stop.wait()
    for attacker in attackers:
        attacker.cancel()
    return made


async def _again(program: Program, each: Attack, window: int, made: Counter[str]) -> None:
    while True:
        with suppress(*_FAILURES):
            async with connect(program, window=window) as client:
                try:
                    with suppress(*_FAILURES):  # most connections are cut
                        await each(client)
                    made[each.__name__] += 1
                finally:
                    client.cut()
        await asyncio.sleep(0.02)


@asynccontextmanager
async def attacking(program: Program, made: Counter[str]) -> "AsyncIterator[None]":
    """Attack a gateway meanwhile from a separate process, which does not slow down honest clients.

    Args:
        made: at the end, the number of times each attack was made is added to it.
    """
    attackers = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.siege.attacks",
        str(program.port),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield
        assert attackers.returncode is None, "the attackers gave up"
        attackers.terminate()
        said, _ = await attackers.communicate()
        made.update(json.loads(said))
    finally:
        with suppress(ProcessLookupError):
            attackers.kill()
        await attackers.wait()


if __name__ == "__main__":
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # cut connections cause warnings
    _nothing: "Popen[bytes]" = None  # type: ignore[assignment]  # only the port is used
    sys.stdout.write(
        json.dumps(asyncio.run(attack(Program(_nothing, Path(), port=int(sys.argv[1])))))
    )
