"""Cutovers over sockets: which clients are moved, rollbacks, and the state after a restart."""

import asyncio
import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import termios
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.rollout.cutover import bucket
from tests.fork_server import fork_server
from tests.gateway.kit import (
    ROOT,
    Program,
    Scripted,
    StartGateway,
    StartUpstream,
    run_command,
    start_program,
)
from tests.gateway.live.shifting import NEW, OLD, WRONG, Lane, admin, answer, asked, rules, shadow
from tests.gateway.talk import Reader, Writer, soon

pytestmark = pytest.mark.slow

FAILING = answer({"oh": 1}, status="500 Oh")


def cutover(text: str) -> str:
    return f', cutover: {{ via: "2", {text} }}'


def command(program: Program, *words: str) -> tuple[int, str]:
    return run_command(program, shlex.join(words))


async def test_a_cutover_always_moves_the_same_clients(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """A higher percentage moves further clients. All clients get version 1."""
    old, new = await upstream(OLD), await upstream(NEW)
    lane = Lane(gateway(rules("person", old.port, new.port, cutover("percent: 30"))), "person")
    buckets = {name: bucket(("person", "1"), name) for name in "abcdefghijklmnopqrst"}
    for percent in (30, 60):
        lane.lead(old.port, new.port, cutover(f"percent: {percent}"))
        for name, number in [*buckets.items(), *buckets.items()]:
            before = len(asked(new))
            got = await lane.get(f"X-Client: {name}")
            assert got.body in (b'{"name": "Bob Charlie"}', b'{"name":"Bob Charlie"}')
            assert len(asked(new)) - before == (number < percent * 100)
    await soon(lambda: lane.cutover()["percent"] == 60)
    assert lane.program.log("cutover_set") == []
    refused = "version 2 of person has no cutover in the configuration"
    status, problem = admin(lane.program, "PUT", "/cutovers/person/2", {"percent": 5})
    assert (status, problem["detail"]) == (404, refused)


async def test_an_operator_promotes_a_cutover_to_its_next_step(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(NEW)
    steps = cutover("steps: [10, 50], every: 1h")
    lane = Lane(gateway(rules("person", old.port, new.port, steps)), "person")
    status, found = admin(lane.program, "POST", "/cutovers/person/1?why=calm")
    assert (status, found["percent"], found["state"]) == (200, 50, "rules")
    status, problem = admin(lane.program, "POST", "/cutovers/person/1")
    refused = "no step follows 50% (an operator has promoted it); use set or clear"
    assert (status, problem["detail"]) == (400, refused)
    admin(lane.program, "PUT", "/cutovers/person/1", {"percent": 5})
    assert admin(lane.program, "POST", "/cutovers/person/1")[0] == 400
    assert lane.cutover()["percent"] == 5


async def test_a_cutover_to_a_failing_service_is_rolled_back(
    tmp_path: Path, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(FAILING)
    text = rules(
        "person",
        old.port,
        new.port,
        cutover('percent: 50, sticky_by: request, gates: { errors: "1%", minimum: 10 }'),
        top="state: state.db",
    )
    (tmp_path / "gateway.yaml").write_text(text)
    with ExitStack() as stack:
        lane = Lane(start_program(stack, tmp_path, "gateway"), "person")
        statuses = {(await lane.get()).status for _ in range(60)}
        assert statuses == {200, 500}
        while lane.cutover()["state"] == "rules":
            await lane.get()
        stands = lane.cutover()
        assert (stands["percent"], stands["state"]) == (0, "rolled_back")
        assert stands["why"].startswith("errors (5xx): ")
        assert stands["next"] == "stays at 0% until it is cleared or set"
        assert stands["gates_at"] == stands["since"]
        (gate,) = (each for each in stands["gates"] if each["outcome"] == "exceeded")
        assert (gate["text"], gate["new_count"] > 0) == (stands["why"], True)
        (line,) = lane.program.log("cutover_set")
        assert (line["percent"], line["reason"]) == (0, stands["why"])
        assert {(await lane.get()).status for _ in range(20)} == {200}

        lane.program.process.terminate()
        lane.program.process.wait()
        lane = Lane(start_program(stack, tmp_path, "gateway"), "person")
        assert lane.cutover()["why"] == stands["why"]
        assert {(await lane.get()).status for _ in range(20)} == {200}

        words = ("cutover", "set", "person", "1", "100")
        status, said = command(lane.program, *words, "--why", "trial")
        assert (status, "operator" in said) == (0, True)
        assert (await lane.get()).status == 500
        assert lane.cutover()["next"] == "stays until it is cleared"
        assert lane.cutover("DELETE")["percent"] == 50


async def test_requests_from_before_a_clear_do_not_roll_a_cutover_back(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    mended, given_up = asyncio.Event(), asyncio.Event()

    async def hanging(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            if not mended.is_set():
                await given_up.wait()
            writer.write(FAILING if given_up.is_set() else NEW)

    old, new = await upstream(OLD), await upstream(hanging)
    gates = "gates: { errors: 1%, minimum: 2, window: 4s, overdue: 1s }"
    beside = cutover(f"percent: 50, sticky_by: request, {gates}")
    lane = Lane(gateway(rules("person", old.port, new.port, beside)), "person")
    asking = [asyncio.create_task(lane.get()) for _ in range(40)]
    await soon(lambda: lane.cutover()["state"] == "rolled_back")
    mended.set()
    assert lane.cutover("DELETE")["percent"] == 50

    async def seen(number: int) -> None:
        """Send requests until the gates have counted this many on the new route."""
        while (stands := lane.cutover())["gates"][0]["new_requests"] < number:
            assert stands["state"] == "rules", stands["why"]
            await lane.get()

    await seen(1)
    given_up.set()
    statuses = [answer.status for answer in await asyncio.gather(*asking)]
    assert statuses.count(500) > 5
    given_up.clear()
    await seen(lane.cutover()["gates"][0]["new_requests"] + 5)
    stands = lane.cutover()
    assert (stands["state"], stands["new"]["failures"]) == ("rules", 0)


async def test_differing_responses_hold_a_cutover(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(WRONG)
    gates = 'gates: { differences: "1%", minimum: 2, window: 4s, then: hold }'
    beside = shadow() + cutover(f"percent: 10, sticky_by: request, {gates}")
    lane = Lane(gateway(rules("person", old.port, new.port, beside)), "person")
    while (stands := lane.cutover())["state"] == "rules":
        await lane.get()
    assert (stands["percent"], stands["state"]) == (10, "held")
    assert stands["why"].startswith("differences: ")
    (line,) = lane.program.log("cutover_held")
    assert line["reason"] == stands["why"]
    lane.lead(old.port, new.port, beside.replace("percent: 10", "percent: 90"))
    assert lane.cutover()["percent"] == 10
    assert lane.cutover("DELETE")["percent"] == 90


async def test_a_cutover_climbs_its_steps_until_the_old_route_is_idle(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(NEW)
    beside = cutover("steps: [50, 100], every: 1s, sticky_by: request")
    lane = Lane(gateway(rules("person", old.port, new.port, beside)), "person")
    await soon(lambda: lane.cutover()["percent"] == 100)
    before = len(asked(old))
    assert [(await lane.get()).status for _ in range(10)] == [200] * 10
    assert len(asked(old)) == before
    assert lane.cutover()["next"] == "has arrived"


HALF = cutover("percent: 50, sticky_by: request")
ALL = cutover("percent: 100, sticky_by: request")


async def cutover_wait(
    program: Program, stdout: int, stderr: int | None = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(fork_server().python, "-m", "gateway", "cutover", "wait", "person", "1"),
        env={"PYTHONPATH": str(ROOT), "GATEWAY_ADMIN_PORT": str(program.admin)},
        stdout=stdout,
        stderr=stderr,
    )


async def test_cutover_wait_prints_each_change_and_exits_by_the_end(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(FAILING)
    lane = Lane(gateway(rules("person", old.port, new.port, HALF)), "person")
    waiting_for_all = await cutover_wait(lane.program, stdout=subprocess.PIPE)
    assert waiting_for_all.stdout is not None
    first = (await waiting_for_all.stdout.readline()).decode()
    assert re.fullmatch(r"\S+Z person 1: 50%; has reached its last percentage\n", first)
    lane.lead(old.port, new.port, ALL)
    *_, last = (await waiting_for_all.stdout.read()).decode().splitlines()
    assert re.fullmatch(r"\S+Z person 1: 100% is reached", last)
    assert await waiting_for_all.wait() == 0

    lane.lead(old.port, new.port, HALF)
    await soon(lambda: lane.cutover()["percent"] == 50)
    wait = ("cutover", "wait", "person", "1")
    status, said = await asyncio.to_thread(command, lane.program, *wait, "--timeout", "0.1s")
    assert status == 2
    assert said.endswith(
        " person 1: 100% is not reached within 0.1 s: it has reached its last percentage\n"
    )
    assert command(lane.program, *wait, "--until", "50")[0] == 0

    # An operator rolls it back while a job waits. A job that begins at 0% continues to wait.
    waiting_for_all = await cutover_wait(lane.program, stdout=subprocess.PIPE)
    assert waiting_for_all.stdout is not None
    assert b" 50%; has reached its last percentage" in await waiting_for_all.stdout.readline()
    lane.cutover("PUT", {"percent": 0})
    *_, last = (await waiting_for_all.stdout.read()).decode().splitlines()
    assert last.endswith(" person 1: rolled back: an operator has set it")
    assert await waiting_for_all.wait() == 1
    status, said = await asyncio.to_thread(command, lane.program, *wait, "--timeout", "0.1s")
    assert status == 2
    assert " 0%; an operator has set it; stays until it is cleared\n" in said
    lane.cutover("DELETE")

    gates = 'gates: { errors: "1%", minimum: 10 }'
    lane.lead(old.port, new.port, cutover(f"percent: 50, sticky_by: request, {gates}"))
    waiting = asyncio.create_task(asyncio.to_thread(command, lane.program, *wait))
    while not waiting.done():
        await lane.get()
    status, said = waiting.result()
    assert status == 1
    assert " person 1: rolled back: errors (5xx): " in said.splitlines()[-1]
    assert "rolled_back" not in said

    for wrong, why in (
        (("--until", "150"), "'--until' must be from 0 to 100"),
        (
            ("--until", "all"),
            "'all' is not a percentage; write a number from 0 to 100, such as 5 or 5%",
        ),
        (("--timeout", "5"), "'5' is not a duration; write it like 90s, 30m or 2h"),
    ):
        assert command(lane.program, *wait, *wrong) == (64, f"{why}\n")
    refused = "person has no version '9'; known: 1, 2"
    status, said = command(lane.program, "cutover", "wait", "person", "9")
    assert (status, said) == (64, f"{refused}\n"), said


async def test_cutover_wait_rewrites_one_line_on_a_terminal(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(NEW)
    lane = Lane(gateway(rules("person", old.port, new.port, HALF)), "person")
    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
    watching = await cutover_wait(lane.program, stdout=terminal)
    shown = await asyncio.to_thread(os.read, own, 2**16)
    another = await cutover_wait(lane.program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert another.stdout is not None
    await another.stdout.readline()
    another.send_signal(signal.SIGINT)  # Ctrl-C
    assert await asyncio.wait_for(another.communicate(), 60) == (b"", b"\n")
    assert another.returncode == 130
    lane.lead(old.port, new.port, ALL)
    assert await asyncio.wait_for(watching.wait(), 60) == 0
    shown += os.read(own, 2**16)
    os.close(terminal)
    os.close(own)
    first, *_, last = shown.decode().split("\r")[1:-1]
    state = r"50%, (2:00:00|1:59:\d\d) left; has reached its last percent"
    left = rf"person 1 \[#{{10}}-{{10}}\] {state}\x1b\[K"
    assert re.fullmatch(left, first)
    assert re.fullmatch(r"\x1b\[K\S+Z person 1: 100% is reached", last)


async def test_all_workers_apply_a_command_before_it_returns(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(NEW)
    text = rules("person", old.port, new.port, cutover("percent: 0, sticky_by: request"))
    lane = Lane(gateway(text, GATEWAY_WORKERS="2"), "person")
    assert [(await lane.get()).status for _ in range(10)] == [200] * 10
    assert asked(new) == []
    before = len(asked(old))
    assert lane.cutover("PUT", {"percent": 100})["state"] == "operator"
    assert [(await lane.get()).status for _ in range(10)] == [200] * 10
    assert (len(asked(old)) - before, len(asked(new))) == (0, 10)
