"""Reloads of a running gateway: the new configuration applies, or the old one stays."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic

import pytest

from tests.gateway.kit import (
    DEADLINE,
    Program,
    Scripted,
    StartGateway,
    StartUpstream,
    rules,
    wait_for,
)
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, reply, soon


def named(name: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(name)}\r\n\r\n{name}".encode()


def in_place(config: Path, text: str) -> None:
    with config.open("r+") as file:
        file.write(text)
        file.truncate()


def by_rename(config: Path, text: str) -> None:
    fresh = config.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(config)


def by_removal(config: Path, text: str) -> None:
    config.unlink()
    config.write_text(text)


def by_symlink(config: Path, text: str) -> None:
    """Change the target of a link as a mounted volume does: gateway.yaml -> ..data/gateway.yaml."""
    volume = config.with_name("..data")
    number = len(list(config.parent.glob("..version*")))
    version = config.with_name(f"..version{number}")
    version.mkdir()
    (version / config.name).write_text(text)
    fresh = config.with_name("..fresh")
    fresh.symlink_to(version.name)
    fresh.rename(volume)
    if not config.is_symlink():
        config.unlink()
        config.symlink_to(volume / config.name)


def has_loaded(program: Program, times: int) -> bool:
    return len(program.log("config_loaded")) >= times


@pytest.mark.parametrize("edit", [in_place, by_rename, by_removal, by_symlink])
async def test_an_edited_configuration_takes_effect(
    edit: Callable[[Path, str], None], standing: Program, upstream: StartUpstream
) -> None:
    assert standing.config is not None
    ports = [(await upstream(named(name))).port for name in ("one", "two")]
    for turn in (0, 1):
        loaded = len(standing.log("config_loaded")) + 1
        edit(standing.config, rules(ports[turn]))
        await soon(partial(has_loaded, standing, loaded))
        assert (await get(standing)).body == (b"one", b"two")[turn]


async def test_sighup_reloads_an_unchanged_file(standing: Program) -> None:
    for _ in range(3):
        loaded = len(standing.log("config_loaded")) + 1
        standing.process.send_signal(signal.SIGHUP)
        wait_for(partial(has_loaded, standing, loaded))


async def test_a_file_change_with_a_signal_is_loaded_once(gateway: StartGateway) -> None:
    program = gateway(rules(1))
    for port in (2, 3, 4):
        # The gateway detects both at once, however long this process has to wait in between.
        program.process.send_signal(signal.SIGSTOP)
        program.replace_rules(rules(port))
        program.process.send_signal(signal.SIGHUP)
        program.process.send_signal(signal.SIGCONT)
        wait_for(partial(has_loaded, program, port - 1))
    assert len(program.log("config_loaded")) == 3


# The edit (of the whole file, if no old text is given), the text in the line that the report names,
# and the text of the report.
BROKEN: dict[str, tuple[str, str, str, str]] = {
    "a typing error": ("services:", "servces:", "servces:", "services"),
    "an unknown service": ('"2": { service: s }', '"2": { service: z }', "service: z", "known: s"),
    "a missing conversion": ('["1", "2"]', '["1", "3"]', '["1", "3"]', "known: 1, 2"),
    "not YAML": ("apis:", "apis: [", "service: s", "not YAML"),
    "a tab": ("  plain:", "\tplain:", "\tplain:", "indent with spaces"),
    "a NUL": ("plain", "pl\0ain", "", "not YAML"),
    "nothing": ("", "", "", "mapping"),
    "an endless alias": ("", "a: &a [*a]\nservices: *a\napis: {}\n", "&a", "alias"),
    "another type": ("", "42\n", "42", "mapping"),
    "a date": ("", "2001-01-01\n", "2001", "mapping"),
    "a number for a name": ("", "services: {1: {targets: []}}\napis: {}\n", "{1:", '"1"'),
}


@pytest.mark.parametrize(("old", "new", "mark", "remedy"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_file_is_reported_and_the_old_configuration_stays(
    old: str, new: str, mark: str, remedy: str, standing: Program, upstream: StartUpstream
) -> None:
    assert standing.config is not None
    good = rules((await upstream(named("old"))).port)
    standing.reload(good)
    assert (await get(standing)).body == b"old"

    before = len(standing.log("config_rejected"))
    broken = good.replace(old, new, 1) if old else new
    by_rename(standing.config, broken)
    standing.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(standing.log("config_rejected")) > before)
    issue = standing.log("config_rejected")[before]["issue"]
    line = broken[: broken.index(mark)].count("\n") + 1
    assert issue.startswith(f"{standing.config.name}:{line if mark else ''}")
    assert remedy in issue
    assert (await get(standing)).body == b"old"

    standing.reload(rules((await upstream(named("mended"))).port))
    assert (await get(standing)).body == b"mended"


async def test_a_deeply_nested_configuration_is_reported(gateway: StartGateway) -> None:
    program = gateway(rules(1))
    assert program.config is not None
    by_rename(program.config, "[" * 100_000 + "]" * 100_000)
    program.process.send_signal(signal.SIGHUP)
    wait_for(lambda: program.process.poll() or program.log("config_rejected"))
    assert program.process.poll() is None, "the gateway died"
    program.reload(rules(1))


async def test_a_configuration_that_is_not_utf_8_is_reported(standing: Program) -> None:
    assert standing.config is not None
    before = len(standing.log("config_rejected"))
    standing.config.write_bytes(b"services: \xff\xfe\n")
    standing.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(standing.log("config_rejected")) > before)
    standing.reload(rules(1))


@pytest.mark.parametrize("gone", ["removed", "a folder"])
async def test_a_deleted_configuration_stays_in_force(
    gone: str, standing: Program, upstream: StartUpstream
) -> None:
    assert standing.config is not None
    standing.reload(rules((await upstream(named("kept"))).port))
    standing.config.unlink()
    if gone == "a folder":
        standing.config.mkdir()
    before = len(standing.log("config_rejected"))
    standing.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(standing.log("config_rejected")) > before)
    assert (await get(standing)).body == b"kept"
    if gone == "a folder":
        standing.config.rmdir()
    standing.reload(rules(1))


async def test_a_request_keeps_the_configuration_of_its_start(
    standing: Program, upstream: StartUpstream
) -> None:
    new = await upstream(named("new"))
    held = asyncio.Event()

    async def waits(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        await held.wait()
        writer.write(named("old"))

    old = await upstream(waits)
    standing.reload(rules(old.port))
    async with connect(standing) as client:
        client.send(ask())
        await soon(lambda: old.requests)
        standing.reload(rules(new.port))
        held.set()
        assert (await client.answer()).body == b"old"
        client.send(ask())
        assert (await client.answer()).body == b"new"


@pytest.mark.slow
async def test_fifty_reloads_under_load_leave_every_response_correct(
    standing: Program, upstream: StartUpstream
) -> None:
    """Version 1 switches between its own service and the converted service of version 2."""

    def person(name: bytes) -> bytes:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return head % len(name) + name

    own = await upstream(person(b'{"name":"Bob One"}'))
    newer = await upstream(person(b'{"name":{"firstName":"Bob","lastName":"Two"}}'))

    def text(via: bool) -> str:
        target = f'  s1: {{ targets: ["http://127.0.0.1:{own.port}"] }}'
        base = rules(newer.port, via=via).replace("services:", f"services:\n{target}")
        return base.replace('"1": { service: s }', '"1": { service: s1 }')

    stop = asyncio.Event()
    right = {
        1: {b'{"name":"Bob One"}', b'{"name":"Bob Two"}'},
        2: {b'{"name":{"firstName":"Bob","lastName":"Two"}}'},
    }
    seen: list[bytes] = []

    async def load(version: int) -> None:
        async with connect(standing) as client:
            while not stop.is_set():
                client.send(ask(f"GET /v{version}/person"))
                answer = await client.answer()
                assert (answer.status, answer.reason) == (200, "OK")
                assert answer.body in right[version]
                seen.append(answer.body)

    standing.reload(text(via=False))
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(load(1 + number % 2))
        for turn in range(50):
            await asyncio.to_thread(standing.reload, text(via=turn % 2 == 0))
        stop.set()
    counts = {body: seen.count(body) for body in right[1] | right[2]}
    assert min(counts.values()) > 50
    refused = [line for line in standing.log("request") if line["status"] != 200]
    assert not [line for line in refused if line["path"].endswith("/person")]


def test_a_key_that_needs_a_restart_is_reported_at_each_reload(gateway: StartGateway) -> None:
    program = gateway(rules(1))
    for top, said in (("state: other.db", 1), ("workers: 3\nstate: other.db", 3), ("", 3)):
        program.rewrite(f"{top}\n{rules(1)}")
        wait_for(lambda: len(program.log("restart_needed")) >= said)  # noqa: B023
        assert len(program.log("restart_needed")) == said
    assert "'state'" in program.log("restart_needed")[0]["reason"]


async def write_slowly(config: Path, text: str) -> float:
    """Write a file in place in small pieces; return the longest pause in seconds."""
    longest, last = 0.0, monotonic()
    with config.open("w") as file:
        for begin in range(0, len(text), len(text) // 60):
            file.write(text[begin : begin + len(text) // 60])
            file.flush()
            longest, last = max(longest, monotonic() - last), monotonic()
            await asyncio.sleep(0.02)
    return longest


async def test_workers_never_load_a_partly_written_file(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """An editor writes in place for longer than the interval of the file check."""
    one, two = [(await upstream(named(name))).port for name in ("one", "two")]
    program = gateway(rules(one), GATEWAY_WORKERS="2")
    assert program.config is not None
    text, known = rules(two) + "# the end\n", 0
    while await write_slowly(program.config, text) > 0.1:
        # After a long pause of the writer, half of the file looks like a complete edit.
        program.reload(rules(one))
        known = len(program.log())

    def news(event: str) -> int:
        return sum(entry["event"] == event for entry in program.log()[known:])

    await soon(lambda: news("config_loaded") == 2)  # each worker has loaded it
    assert {(await get(program)).body for _ in range(8)} == {b"two"}
    assert (news("config_loaded"), news("config_rejected")) == (2, 0)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_module_that_fails_or_hangs_on_import_stops_no_request(
    gateway: StartGateway, upstream: StartUpstream, workers: int
) -> None:
    up = await upstream(reply(OK, "close"))
    program = gateway(rules(up.port), GATEWAY_WORKERS=str(workers))
    assert program.config is not None
    for name, line in (("ends", "raise KeyboardInterrupt"), ("hangs", "time.sleep(1000)")):
        code = f"import pathlib, time\npathlib.Path('{name}').touch()\n{line}\n"
        (program.config.parent / f"{name}.py").write_text(code)

    def change(name: str) -> str:
        return rules(up.port, via=True, changes=f"- python: {{ up: {name}:a, down: {name}:a }}")

    program.replace_rules(change("ends"))
    (refused,) = await soon(lambda: program.log("config_rejected"))
    assert "cannot be loaded: RuntimeError: it raises KeyboardInterrupt" in refused["issue"]
    assert (await get(program)).status == 200
    program.replace_rules(change("hangs"))
    await soon((program.config.parent / "hangs").exists)
    assert (await get(program)).status == 200
    program.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(program.process.wait, DEADLINE) == 0
