"""Usage counts and overrides of real processes: they survive crashes and apply at once."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.__main__ import main
from tests.fork_server import fork_server
from tests.gateway.kit import ROOT, Program, StartGateway, StartUpstream, children, rules
from tests.gateway.talk import ask, connect, soon

pytestmark = pytest.mark.slow

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NAMED = "clients: { by: [ { header: X-Client } ] }\n"
KEPT = f"state: state.db\n{NAMED}"
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


def admin(program: Program, path: str, method: str = "GET", body: str | None = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_a_foreign_web_page_cannot_change_the_gateway(gateway: StartGateway) -> None:
    """A host name that resolves to this machine gives a page no access, and neither does a form."""
    program = gateway(KEPT + rules(1))
    for name, value, status in (
        ("Host", "evil.example", 421),
        ("Origin", "http://evil.example", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
        try:
            connection.request("GET", "/overrides", headers={name: value})
            assert connection.getresponse().status == status
        finally:
            connection.close()
    assert admin(program, "/overrides")[0] == 200


def counts(program: Program) -> dict[tuple[str, str], int]:
    _, told = admin(program, "/usage?api=person")
    return {(line["client"], line["version"]): line["count"] for line in told["usage"]}


Command = Callable[..., tuple[str, int]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(program: Program, *words: str) -> tuple[str, int]:
        monkeypatch.setattr(sys, "argv", ["gateway", *words])
        monkeypatch.setenv("GATEWAY_ADMIN_PORT", str(program.admin))
        status = main()
        return "".join(capsys.readouterr()), status

    return run


async def call(program: Program, client: str, version: int = 1, times: int = 1) -> None:
    """Request a version, each time on a new connection, so that all workers get requests."""
    for _ in range(times):
        async with connect(program) as caller:
            caller.send(ask(f"GET /v{version}/person", f"X-Client: {client}", "Connection: close"))
            assert (await caller.answer()).status == 200


async def statuses(program: Program) -> set[int]:
    """Send enough requests to reach every worker; return the statuses."""
    found = set()
    for _ in range(8):
        async with connect(program) as caller:
            caller.send(ask("GET /v1/person", "Connection: close"))
            found.add((await caller.answer()).status)
    return found


async def until(program: Program, expected: dict[tuple[str, str], int]) -> None:
    await soon(lambda: counts(program) == expected)


async def gone(program: Program, number: signal.Signals) -> None:
    program.process.send_signal(number)
    await asyncio.to_thread(program.process.wait, 60)


def again(start: StartGateway, program: Program, text: str, **variables: str) -> Program:
    state = program.output.parent / "state.db"
    return start(text.replace("state.db", str(state)), **variables)


@WORKERS
async def test_a_stopped_gateway_keeps_all_counts(
    workers: str, gateway: StartGateway, upstream: StartUpstream
) -> None:
    text = KEPT + rules((await upstream(OK)).port)
    first = gateway(text, GATEWAY_WORKERS=workers)
    await call(first, "acme", times=4)
    await call(first, "globex", 2, times=3)
    await gone(first, signal.SIGTERM)
    second = again(gateway, first, text, GATEWAY_WORKERS=workers)
    assert counts(second) == {("acme", "1"): 4, ("globex", "2"): 3}
    await call(second, "acme", times=2)
    await until(second, {("acme", "1"): 6, ("globex", "2"): 3})


async def test_counts_reported_by_a_worker_survive_its_end(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(KEPT + rules((await upstream(OK)).port), GATEWAY_WORKERS="2")
    await call(program, "acme", times=8)
    await until(program, {("acme", "1"): 8})
    for worker in children(program):
        worker.kill()
    await soon(lambda: len(program.log("worker_replaced")) == 2)
    await call(program, "acme", times=2)
    await until(program, {("acme", "1"): 10})


async def test_written_counts_survive_a_killed_gateway(
    gateway: StartGateway, upstream: StartUpstream, command: Command
) -> None:
    text = KEPT + rules((await upstream(OK)).port)
    first = gateway(text, GATEWAY_WORKERS="2")
    await call(first, "acme", times=5)
    state = str(first.output.parent / "state.db")

    def written() -> bool:
        told, status = command(first, "usage", "--state", state, "--json")
        return status == 0 and [line["count"] for line in json.loads(told)["usage"]] == [5]

    await soon(written)
    words = ("usage", "--state", f"sqlite:///{state}", "--history", "1", "--json")
    told, status = await asyncio.to_thread(command, first, *words)
    assert status == 0
    assert sum(day["requests"] for day in json.loads(told)["lines"]) == 5
    await gone(first, signal.SIGKILL)
    second = again(gateway, first, text)
    assert counts(second) == {("acme", "1"): 5}


async def test_hashed_client_names_never_appear_as_plain_text(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    hashed = KEPT.replace("} ] }", '} ], hash: "salt" }')
    program = gateway(hashed + rules((await upstream(OK)).port))
    await call(program, "acme-corporation")
    await soon(lambda: counts(program))
    await gone(program, signal.SIGTERM)
    for kept in (program.output, program.output.with_name("state.db")):
        assert b"hash-" in kept.read_bytes()
        assert b"acme" not in kept.read_bytes()


async def test_overrides_apply_when_the_command_returns_and_after_a_restart(
    gateway: StartGateway, upstream: StartUpstream, command: Command
) -> None:
    text = KEPT + rules((await upstream(OK)).port)
    text = text.replace('"1": { service: s }', '"1": { service: s, brownout: { percent: 100 } }')
    cutover = '"2": { service: s, cutover: { via: "1", percent: 5, sticky_by: request } }'
    text = text.replace('"2": { service: s }', cutover)
    first = gateway(text, GATEWAY_WORKERS="2")
    assert await statuses(first) == {503}
    told, status = command(first, "brownout", "pause", "person", "1", "--why", "trial")
    assert (told, status) == ("Brownouts of version 1 of person are paused.\n", 0)
    assert await statuses(first) == {200}
    told, _ = command(first, "cutover", "set", "person", "2", "30%", "--why", "trial")
    assert "person: 30% goes via 1" in told
    overrides = {
        "paused": [["person", "1"]],
        "percents": [{"api": "person", "version": "2", "percent": 30.0}],
    }
    assert admin(first, "/overrides") == (200, overrides)
    await gone(first, signal.SIGKILL)
    second = again(gateway, first, text)
    assert admin(second, "/overrides") == (200, overrides)
    assert await statuses(second) == {200}
    assert command(second, "brownout", "resume", "person", "1", "--why", "trial")[1] == 0
    assert await statuses(second) == {503}
    assert command(second, "cutover", "clear", "person", "2", "--why", "trial")[1] == 0
    assert admin(second, "/overrides") == (200, {"paused": [], "percents": []})


async def test_usage_shows_clients_and_whether_a_version_can_be_retired(
    gateway: StartGateway, upstream: StartUpstream, command: Command
) -> None:
    program = gateway(NAMED + rules((await upstream(OK)).port))
    assert command(program, "usage")[0].startswith("Nobody has called since 20")
    assert command(program, "usage", "--retire", "1")[1] == 2
    await call(program, "acme", times=3)
    await until(program, {("acme", "1"): 3})
    told, status = command(program, "usage", "--api", "person")
    head, row, since = told.splitlines()
    assert head.split()[:6] == ["CLIENT", "API", "VERSION", "OPERATION", "COUNT", "REFUSED"]
    assert row.split()[:8] == ["acme", "person", "1", "GET", "/v{version}/person", "3", "0", "0"]
    assert since.startswith("Counted since 20")
    told, status = command(program, "usage", "--history", "1")
    head, row = told.splitlines()
    assert (head.split()[:3], status) == (["START", "REQUESTS", "SHARE"], 0)
    day, *numbers = row.split()
    assert day.startswith("20")
    assert (numbers[:4], numbers[-1]) == (["3", "100.0%", "0", "0"], "1")
    by_minute = json.loads(
        command(program, "usage", "--history", "1", "--by", "minute", "--json")[0]
    )
    assert sum(line["requests"] for line in by_minute["lines"]) == 3
    told, _ = command(program, "usage", "--history", "2", "--api", "person")
    assert told == "No client has called version 2 of person.\n"
    told, status = command(program, "usage", "--retire", "1")
    assert status == 1
    assert "1 client called it in the last 30 days: acme at 20" in told
    assert json.loads(command(program, "usage", "--retire", "1", "--json")[0])["answer"] == "no"


async def test_usage_separates_refused_clients_from_served_clients(
    gateway: StartGateway, upstream: StartUpstream, command: Command
) -> None:
    text = rules((await upstream(OK)).port)
    version = '"1": { service: s'
    assert text.count(version) == 1
    program = gateway(NAMED + text.replace(version, f"{version}, brownout: {{ percent: 100 }}"))
    async with connect(program) as caller:
        for _ in range(2):
            caller.send(ask("GET /v1/person", "X-Client: acme"))
            assert (await caller.answer()).status == 503
    await until(program, {("acme", "1"): 2})
    assert command(program, "usage")[0].splitlines()[1].split()[5:7] == ["2", "2"]
    assert command(program, "usage")[0].splitlines()[1].endswith("never")
    refused = "1 client called it in the last 30 days and got only refusals or failures: acme at 20"
    assert refused in command(program, "usage", "--retire", "1")[0]
    assert command(program, "brownout", "pause", "person", "1", "--why", "trial")[1] == 0
    await call(program, "acme")
    await until(program, {("acme", "1"): 3})
    assert command(program, "usage")[0].splitlines()[1].endswith("Z")
    assert "refusals" not in command(program, "usage", "--retire", "1")[0]


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        ("brownout pause persn 1", "no API is called 'persn'; did you mean 'person'?\n", 2),
        ("cutover show person 3", "person has no version '3'; known: 1, 2\n", 2),
        ("cutover set person 1 130", "'percent' must be from 0 to 100\n", 2),
        ("cutover set person 1 5%", "version 1 of person has no cutover in the configuration\n", 2),
        (
            "cutover set person 1 half",
            "'half' is not a percentage; write a number from 0 to 100, such as 5 or 5%\n",
            2,
        ),
        (
            "cutover promote person 1",
            "version 1 of person has no cutover in the configuration\n",
            2,
        ),
        ("cutover clear person 1", "version 1 of person has no cutover in the configuration\n", 2),
        ("cutover show person 1", "version 1 of person has no cutover in the configuration\n", 2),
        (
            "brownout pause person 1",
            ("version 1 of person has no brownout in the configuration\n"),
            2,
        ),
        (
            "brownout resume person 1",
            ("version 1 of person has no brownout in the configuration\n"),
            2,
        ),
        ("brownout show person 1", "version 1 of person has no brownout in the configuration\n", 2),
        ("shadow show person 1", "version 1 of person has no shadow in the configuration\n", 2),
        ("shadow reset person 1", "version 1 of person has no shadow in the configuration\n", 2),
        ("usage --api persn", "no API is called 'persn'; did you mean 'person'?\n", 2),
        ("usage --api person --version 3", "no version '3'; known: 1, 2\n", 2),
        ("usage --retire 7", "no API has a version '7'; known: 1, 2\n", 2),
        (
            "usage --within 5m",
            "--within is only valid with --retire; add --retire, or remove --within\n",
            2,
        ),
        (
            "usage --retire 1 --by day",
            "--by is only valid with --history; add --history, or remove --by\n",
            2,
        ),
        (
            "usage --history 1 --version 1",
            "--retire and --history already name a version; remove --version\n",
            2,
        ),
        (
            "usage --retire 1 --within 0d",
            "'0d' is not a period; write it like 30d, 12h, 5m or 30s\n",
            2,
        ),
    ],
)
def test_a_command_for_an_unknown_version_reports_the_error(
    standing: Program, command: Command, words: str, said: str, status: int
) -> None:
    acts = {"pause", "resume", "set", "clear", "reset"} & set(words.split())
    why = ["--why", "trial"] if acts else []
    assert command(standing, *words.split(), *why) == (said, status)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/none", 404, "not_found"),
        ("GET", "/brownouts/person/9", 404, "not_found"),
        ("POST", "/usage", 405, "method_not_allowed"),
        ("PUT", "/cutovers/person/1", 400, "bad_request"),
        ("DELETE", "/fleet/other", 404, "not_found"),
        ("GET", "/retire/person/1?within=long", 400, "bad_request"),
        ("GET", "/history/person/1?by=week", 400, "bad_request"),
        ("GET", "/history/person/9", 404, "not_found"),
    ],
)
def test_refusals_are_problem_details(
    standing: Program, method: str, path: str, status: int, code: str
) -> None:
    given, problem = admin(standing, path, method)
    assert (given, problem["status"], problem["code"]) == (status, status, code)
    assert problem["instance"] == path.partition("?")[0]


def test_a_command_without_a_gateway_names_the_address_it_tried(
    standing: Program, command: Command, tmp_path: Path
) -> None:
    nobody = Program(standing.process, tmp_path / "log", admin=1)
    assert command(nobody, "usage") == (
        (
            "the admin port 127.0.0.1:1 cannot be used: connection refused; start the gateway, or"
            " correct GATEWAY_ADMIN_HOST and GATEWAY_ADMIN_PORT\n"
        ),
        2,
    )


async def test_a_command_reports_a_port_of_another_program(
    standing: Program, upstream: StartUpstream, command: Command, tmp_path: Path
) -> None:
    clients = Program(standing.process, tmp_path / "log", admin=standing.port)
    said, status = command(clients, "usage")
    assert status == 2
    assert (
        "cannot be used: it is the port for clients of a gateway; start the gateway, or correct"
        in said
    )
    stranger = await upstream(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    other = Program(standing.process, tmp_path / "log", admin=stranger.port)
    for words in (
        *("usage", "cutover show person 1", "fleet show", "fleet show --json"),
        *("fleet audit --json", "notify show --json"),
    ):
        said, status = await asyncio.to_thread(command, other, *words.split())
        assert said.startswith("the response does not come from an admin port of this release: ")
        assert (status, said.count("\n")) == (2, 1)


async def test_two_gateways_do_not_share_a_state(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(KEPT + rules((await upstream(OK)).port))
    assert program.config is not None
    ports = {"GATEWAY_PORT": "0", "GATEWAY_ADMIN_PORT": "0", "GATEWAY_WORKERS": "1"}
    done = await asyncio.to_thread(
        subprocess.run,
        [fork_server().python, "-m", "gateway"],
        cwd=program.output.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), **ports},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    said = "state.db: another running gateway uses the state; name another file in 'state'\n"
    assert done.stderr == said


@WORKERS
async def test_metrics_count_the_requests_of_all_workers(
    workers: str, gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    program = gateway(NAMED + rules(service.port), GATEWAY_WORKERS=workers)
    await call(program, "acme", times=3)
    async with connect(program) as caller:
        caller.send(ask("GET /v9/person"))
        assert (await caller.answer()).status == 404

    def scraped() -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        families = text_string_to_metric_families(text)
        samples = [sample for family in families for sample in family.samples]
        return {f"{each.name}{sorted(each.labels.values())}": each.value for each in samples}

    served = "['/v{version}/person', '1', '200', 'GET', 'http', 'person']"
    await soon(lambda: scraped().get(f"http_server_request_duration_seconds_count{served}") == 3)
    await soon(lambda: "gateway_refusals_total['person', 'version_unknown']" in scraped())
    values = scraped()
    refused = "['/v{version}/person', '404', 'GET', 'http', 'person']"
    assert values[f"http_server_request_duration_seconds_count{refused}"] == 1
    asked = sorted(["1", "127.0.0.1", "200", "GET", "person", str(service.port)])
    assert values[f"http_client_request_duration_seconds_count{asked}"] == 3
    assert values["gateway_usage_total['1', 'person']"] == 3
    assert values["gateway_usage_clients['1', 'person']"] == 1
    assert values["gateway_workers[]"] == int(workers)
    assert not any("acme" in name for name in values)


@WORKERS
async def test_resetting_a_shadow_clears_the_counts_of_all_workers(
    workers: str, gateway: StartGateway, upstream: StartUpstream, command: Command
) -> None:
    """Workers deliver their earlier counts before the reset, so none reappears later."""
    body = b'{"name":{"firstName":"Ann","lastName":"Lee"}}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    text = KEPT + rules((await upstream(head % len(body) + body)).port)
    text = text.replace('"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }')
    first = gateway(text, GATEWAY_WORKERS=workers)
    await call(first, "acme", times=6)

    def compared(program: Program) -> int:
        found: int = admin(program, "/shadows/person/1")[1]["compared"]
        return found

    await soon(lambda: compared(first) == 6)
    assert "6 responses compared, 6 differ" in command(first, "shadow", "show", "person", "1")[0]
    told, status = command(first, "shadow", "show", "person", "1", "--replica", "other")
    assert (status, told.startswith("no replica is called 'other'; this gateway, ")) == (2, True)
    await call(first, "acme")
    told, status = command(first, "shadow", "reset", "person", "1", "--why", "trial")
    none = "  missing    never compared: GET /v{version}/person\n"
    assert (told, status) == (f"person 1: 0 responses compared, 0 differ\n{none}", 0)
    assert counts(first) == {("acme", "1"): 7}
    assert admin(first, "/shadows/person/1")[1]["samples"] == []
    await soon(lambda: compared(first) <= 1)
    await gone(first, signal.SIGKILL)
    second = again(gateway, first, text)
    assert compared(second) <= 1
    await call(second, "acme", times=2)
    await soon(lambda: compared(second) >= 2)
