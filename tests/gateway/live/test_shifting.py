"""Cutovers, over real sockets: who is moved, what turns it back, and what survives a restart."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from gateway.core.cutover.cutover import bucket
from tests.gateway.kit import ROOT, Program, StartGateway, StartUpstream, start_program
from tests.gateway.live.shifting import NEW, OLD, WRONG, Lane, admin, answer, rules, shadow
from tests.gateway.talk import soon

FAILING = answer({"oh": 1}, status="500 Oh")


def cutover(text: str) -> str:
    """What stands beside the service of version 1."""
    return f', cutover: {{ via: "2", {text} }}'


def command(program: Program, *words: str) -> tuple[int, str]:
    """Run a command of the gateway against a gateway; return its status and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        env={"PYTHONPATH": str(ROOT), "GATEWAY_ADMIN_PORT": str(program.admin)},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    return done.returncode, done.stdout + done.stderr


async def test_the_same_clients_are_moved_always(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """And more of them as the percentage grows; all of them get version 1."""
    old, new = await upstream(OLD), await upstream(NEW)
    lane = Lane(gateway(rules("person", old.port, new.port, cutover("percent: 30"))), "person")
    buckets = {name: bucket(("person", "1"), name) for name in "abcdefghijklmnopqrst"}
    for percent in (30, 60):
        lane.lead(old.port, new.port, cutover(f"percent: {percent}"))
        for name, number in [*buckets.items(), *buckets.items()]:
            before = len(new.requests)
            got = await lane.get(f"X-Client: {name}")
            assert got.body in (b'{"name": "Bob Charlie"}', b'{"name":"Bob Charlie"}')
            assert len(new.requests) - before == (number < percent * 100)
    await soon(lambda: lane.cutover()["percent"] == 60)
    assert lane.program.log("cutover_set") == []
    refused = "version 2 of person has no cutover in the rules"
    status, problem = admin(lane.program, "PUT", "/cutovers/person/2", {"percent": 5})
    assert (status, problem["detail"]) == (404, refused)


async def test_a_bad_service_is_left_again(tmp_path: Path, upstream: StartUpstream) -> None:
    """It says why; a restart does not forget it; an operator has the last word."""
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
        assert "requests failed the new way" in stands["why"]
        assert stands["next"] == "stays at 0% until it is cleared or set"
        (line,) = lane.program.log("cutover_set")
        assert (line["percent"], line["reason"]) == (0, stands["why"])
        assert {(await lane.get()).status for _ in range(20)} == {200}

        lane.program.process.terminate()
        lane.program.process.wait()
        lane = Lane(start_program(stack, tmp_path, "gateway"), "person")
        assert lane.cutover()["why"] == stands["why"]
        assert {(await lane.get()).status for _ in range(20)} == {200}

        status, said = command(lane.program, "cutover", "set", "person", "1", "100")
        assert (status, "operator" in said) == (0, True)
        assert (await lane.get()).status == 500
        assert lane.cutover()["next"] == "stays until it is cleared"
        assert lane.cutover("DELETE")["percent"] == 50


async def test_answers_that_differ_hold_it(gateway: StartGateway, upstream: StartUpstream) -> None:
    """While they do, the rules cannot raise it; when they do no more, it goes on."""
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
    await soon(lambda: lane.cutover()["percent"] == 90)


async def test_steps_are_climbed(gateway: StartGateway, upstream: StartUpstream) -> None:
    old, new = await upstream(OLD), await upstream(NEW)
    beside = cutover("steps: [50, 100], every: 1s, sticky_by: request")
    lane = Lane(gateway(rules("person", old.port, new.port, beside)), "person")
    await soon(lambda: lane.cutover()["percent"] == 100)
    before = len(old.requests)
    assert [(await lane.get()).status for _ in range(10)] == [200] * 10
    assert len(old.requests) == before
    assert lane.cutover()["next"] == "has arrived"


async def test_several_workers_obey(gateway: StartGateway, upstream: StartUpstream) -> None:
    """When the command returns, every process goes by it."""
    old, new = await upstream(OLD), await upstream(NEW)
    text = rules("person", old.port, new.port, cutover("percent: 0, sticky_by: request"))
    lane = Lane(gateway(text, GATEWAY_WORKERS="2"), "person")
    assert [(await lane.get()).status for _ in range(10)] == [200] * 10
    assert new.requests == []
    before = len(old.requests)
    assert lane.cutover("PUT", {"percent": 100})["state"] == "operator"
    assert [(await lane.get()).status for _ in range(10)] == [200] * 10
    assert (len(old.requests) - before, len(new.requests)) == (0, 10)
