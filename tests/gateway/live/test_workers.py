"""Several workers on one port: load distribution, replacement, reload and shutdown."""

import asyncio
import errno
import os
import signal
import socket
from collections import Counter
from functools import partial
from time import monotonic

import psutil
import pytest

from tests.gateway.kit import (
    Program,
    StartGateway,
    StartUpstream,
    children,
    open_files,
    rules,
    wait_for,
)
from tests.gateway.talk import ask, connect, get, soon

pytestmark = pytest.mark.slow

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PERSON = b'{"name":{"firstName":"A","lastName":"B"}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


def is_replaced(program: Program, times: int) -> bool:
    return len(program.log("worker_replaced")) == times


async def asked(program: Program, line: str = "GET /plain") -> bytes:
    async with connect(program) as client:
        client.send(ask(line, "Connection: close"))
        return (await client.answer()).body


async def test_the_workers_share_the_port(gateway: StartGateway, upstream: StartUpstream) -> None:
    scripted = await upstream(ANSWER)
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    assert len(children(program)) == 2
    for _ in range(40):
        assert await asked(program) == b"ok"
    # Each worker has its own connection to the service, so both workers got requests.
    assert scripted.connections == 2


async def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(ANSWER)
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    before = {worker.pid for worker in children(program)}
    os.kill(min(before), signal.SIGKILL)
    # The other worker accepts the connections in the queue of the dead worker's socket.
    answers = await asyncio.gather(*(asked(program) for _ in range(40)))
    assert Counter(answers) == {b"ok": 40}
    await asyncio.to_thread(wait_for, lambda: len(children(program)) == 2)
    after = {worker.pid for worker in children(program)}
    assert len(before & after) == 1
    (died,) = program.log("worker_died")
    assert died["exit_status"] == -signal.SIGKILL


def doubled(worker: psutil.Process) -> int:
    """Return the number of dead workers whose sockets this worker serves.

    The worker registers each socket several times, also its own, so that it accepts several
    connections per iteration of its event loop.
    """
    links = Counter(open_files(worker.pid))
    return sum(times > 1 for link, times in links.items() if link.startswith("socket:")) - 1


async def test_clients_do_not_wait_for_a_worker_that_cannot_be_replaced(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """No descriptor is left to start workers. They start as soon as descriptors are free."""
    scripted = await upstream(ANSWER)
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="3")
    first, second, third = children(program)
    supervisor = psutil.Process(program.process.pid)
    limits = supervisor.rlimit(psutil.RLIMIT_NOFILE)
    supervisor.rlimit(psutil.RLIMIT_NOFILE, (3, limits[1]))
    first.kill()
    second.kill()
    await soon(lambda: doubled(third) == 2)
    answers = await asyncio.gather(*(asked(program) for _ in range(40)))
    assert Counter(answers) == {b"ok": 40}
    await soon(lambda: len(program.log("worker_not_started")) > 3)
    assert program.log("worker_not_started")[0]["reason"] == "too many open files"
    supervisor.rlimit(psutil.RLIMIT_NOFILE, limits)
    await soon(lambda: is_replaced(program, 2))
    assert {await asked(program) for _ in range(40)} == {b"ok"}
    await soon(lambda: doubled(third) == 0)


async def test_a_dead_worker_is_replaced_even_if_the_file_has_mistakes(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(JSON % (len(PERSON), PERSON))
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    program.rewrite(rules(scripted.port, via=True))
    program.rewrite("nonsense")
    for count in (1, 2):
        os.kill(children(program)[0].pid, signal.SIGKILL)
        await soon(partial(is_replaced, program, count))
    assert {await asked(program, "GET /v1/person") for _ in range(20)} == {b'{"name":"A B"}'}
    assert [died["exit_status"] for died in program.log("worker_died")] == [-signal.SIGKILL] * 2


async def test_a_reload_takes_effect_in_all_workers(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(JSON % (len(PERSON), PERSON))
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    assert await asked(program, "GET /v1/person") == PERSON
    program.rewrite(rules(scripted.port, via=True))
    await asyncio.to_thread(wait_for, lambda: len(program.log("config_loaded")) == 2)
    assert {await asked(program, "GET /v1/person") for _ in range(20)} == {b'{"name":"A B"}'}
    program.rewrite("nonsense")
    assert len(program.log("config_rejected")) == 1
    assert {await asked(program, "GET /v1/person") for _ in range(20)} == {b'{"name":"A B"}'}


def refuses(program: Program) -> bool:
    """Return whether the port refuses connections, so that clients use another gateway at once."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", program.port)) == errno.ECONNREFUSED


async def test_all_workers_finish_their_requests_on_sigterm(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    go = asyncio.Event()

    async def slow(scripted, reader, writer) -> None:  # type: ignore[no-untyped-def]
        await scripted.take(reader)
        await go.wait()
        writer.write(ANSWER)

    scripted = await upstream(slow)
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    pids = [worker.pid for worker in children(program)]
    async with connect(program) as client:
        client.send(ask())
        await asyncio.to_thread(wait_for, lambda: scripted.requests)
        program.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(wait_for, lambda: program.log("stopping"))
        await asyncio.to_thread(wait_for, lambda: refuses(program))
        go.set()
        assert (await client.answer()).body == b"ok"
    assert await asyncio.to_thread(program.process.wait, 10) == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert [entry["event"] for entry in program.log()][-1] == "stopped"


async def test_workers_exit_when_their_supervisor_is_killed(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(ANSWER)
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    left = children(program)
    program.process.kill()
    await asyncio.to_thread(psutil.wait_procs, left, 10)
    assert not any(worker.is_running() for worker in left)


async def test_a_worker_that_hangs_is_replaced(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Clients do not wait for the hanging worker, and an idle worker is not replaced."""
    scripted = await upstream(ANSWER)
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    hanging, idle = children(program)
    hanging.suspend()
    began = monotonic()
    waiting = [asyncio.create_task(get(program)) for _ in range(40)]
    await soon(lambda: doubled(idle) == 1)  # it also accepts the other one's connections
    assert {await asked(program) for _ in range(40)} == {b"ok"}
    await soon(lambda: program.log("worker_died"))
    assert 3 < monotonic() - began < 6
    await soon(partial(is_replaced, program, 1))
    assert [entry["worker"] for entry in program.log("worker_hangs")] == [0]
    answered = await asyncio.gather(*waiting, return_exceptions=True)
    assert {each.status for each in answered if not isinstance(each, BaseException)} == {200}
    assert {await asked(program) for _ in range(40)} == {b"ok"}
    assert idle in children(program)
    assert hanging not in children(program)


async def test_a_replaced_worker_loads_a_configuration_changed_meanwhile(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(JSON % (len(PERSON), PERSON))
    program = gateway(rules(scripted.port), GATEWAY_WORKERS="2")
    for count, via in enumerate((True, False, True), 1):
        os.kill(children(program)[0].pid, signal.SIGKILL)
        # Some reloads happen before the supervisor detects the loss, some while the new worker
        # starts. Only the surviving worker is sure to log each of them, since a new worker does
        # not log the configuration with which it starts.
        for _ in range(8):
            program.reload(rules(scripted.port, via=via), workers=1)
        await soon(partial(is_replaced, program, count))
    program.reload(rules(scripted.port, via=True))
    assert {await asked(program, "GET /v1/person") for _ in range(20)} == {b'{"name":"A B"}'}
    assert [died["exit_status"] for died in program.log("worker_died")] == [-signal.SIGKILL] * 3


async def test_all_workers_end_on_sigterm_while_a_replacement_is_pending(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(rules((await upstream(ANSWER)).port), GATEWAY_WORKERS="2")
    os.kill(children(program)[0].pid, signal.SIGKILL)
    await soon(lambda: program.log("worker_died"))
    program.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(program.process.wait, 10) == 0
    assert [entry["event"] for entry in program.log()][-2:] == ["stopping", "stopped"]


async def test_the_configuration_sets_the_number_of_workers(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(ANSWER)
    program = gateway("workers: 3\n" + rules(scripted.port), GATEWAY_WORKERS="")
    assert len(children(program)) == 3
    assert program.log("listening")[0]["workers"] == 3
