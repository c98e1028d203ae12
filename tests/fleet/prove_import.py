"""What goes past the gateway is counted by the log of Envoy: once, whoever is killed meanwhile."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from gateway.core.clients import ClientNaming, HeaderName
from gateway.export.access_log.log_import import LogCounts, LogImport
from gateway.state.fleet import postgres
from gateway.state.fleet.fleet_reading import read_stored_fleet
from gateway.state.state_changes import StateError, StateUnreachableError
from tests.fleet.cluster import Cluster
from tests.fleet.envoy import export, start_envoy
from tests.fleet.fleet import counted, presence
from tests.fleet.relay import Relay
from tests.gateway.kit import DEADLINE, ROOT, Program, free_port, start_program, wait_for
from tests.gateway.live.raw import Service, answer
from tests.gateway.live.shifting import admin

RULES = """\
bypass: [edge]
state: "STATE"
workers: 1
clients: { by: [{ header: X-Client }] }
services: { old: { targets: ["http://127.0.0.1:PORT"] } }
apis:
  person:
    upstream_path: /person
    endpoints: [{ path: "/v{version}/person", version: { in: path }, methods: [GET] }]
    versions:
      "1": { service: old }
      "2": { service: old, lifecycle: { deprecated: 2020-01-01, sunset: 2020-01-02 } }
    conversions: [{ between: ["1", "2"], changes: [{ rename: { field: a, to: b } }] }]
"""
EARLIER = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 9 * 86_400))
ENTRY = {
    "milliseconds": 20,
    "route": "straight person 1 /v{version}/person",
    "status": 200,
    "time": f"{EARLIER}T12:00:00.000Z",
}


def entry(client: str, **changed: object) -> bytes:
    """Return a line of the log."""
    return json.dumps({**ENTRY, "fields": {"x-client": client}} | changed).encode() + b"\n"


class Edge:
    """A gateway on a database, with rules by which version 1 goes straight."""

    def __init__(self, stack: ExitStack, folder: Path, url: str) -> None:
        self._stack = stack
        self.folder = folder
        self.log = folder / "access.log"
        service = stack.enter_context(Service())
        stack.callback(service.shutdown)
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        service.answer = answer(b"{}")
        text = RULES.replace("PORT", str(service.port)).replace("STATE", url)
        (folder / "gateway.yaml").write_text(text)
        self.state = url
        self.gateway: Program = start_program(
            stack, folder, "gateway", GATEWAY_CONFIG="gateway.yaml", GATEWAY_REPLICA="a"
        )

    def start_import(self, *words: str) -> subprocess.Popen[str]:
        """Start `usage import`."""
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "usage", "import", "access.log", *words],
            cwd=self.folder,
            env={"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process

    def imports(self, *words: str) -> tuple[int, str]:
        """Run `usage import`; return its status and what it prints."""
        process = self.start_import(*words)
        printed = process.communicate(timeout=DEADLINE)[0]
        return process.returncode, printed

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command; return its status and what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *words],
            cwd=self.folder,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
        return done.returncode, done.stdout + done.stderr

    def reasons(self, within: str = "1s") -> list[str]:
        """Return what speaks against retiring version 1."""
        found = admin(self.gateway, "GET", f"/retire/person/1?within={within}")[1]
        return [
            reason["text"]
            for reason in found["reasons"]
            if reason["answer"] in ("unknown", "no") and "counting began" not in reason["text"]
        ]

    def days(self, requests: int) -> list[dict[str, Any]]:
        """Return the history of version 1 once it has so many requests; the judge adds them."""

        def found() -> list[dict[str, Any]]:
            days: list[dict[str, Any]] = admin(self.gateway, "GET", "/history/person/1")[1]["lines"]
            return days if sum(day["requests"] for day in days) == requests else []

        every: list[dict[str, Any]] = wait_for(found)
        return every

    def imported(self) -> list[dict[str, Any]]:
        """Return how much is known from logs."""
        found: list[dict[str, Any]] = admin(self.gateway, "GET", "/usage")[1]["imported"]
        return found


@pytest.fixture
def edge(database: str, tmp_path: Path) -> Iterator[Edge]:
    with ExitStack() as stack:
        yield Edge(stack, tmp_path, database)


def ask(port: int, version: int, client: str) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    connection.request("GET", f"/v{version}/person", headers={"X-Client": client})
    connection.getresponse().read()
    connection.close()


def test_a_log_is_counted_once(edge: Edge) -> None:
    edge.log.write_bytes(
        entry("acme") * 3 + entry("zed", status=503) + entry("x", route="everything else")
    )
    told = "access.log: {} lines, of which {} went straight to services and 0 are no entries\n"
    assert edge.imports() == (0, told.format(5, 4))
    assert edge.imports() == (0, told.format(0, 0))
    wait_for(lambda: counted(edge.gateway) == {"acme": 3, "zed": 1})
    lines = {line["client"]: line for line in admin(edge.gateway, "GET", "/usage")[1]["usage"]}
    assert (lines["zed"]["failed"], lines["zed"]["refused"]) == (1, 0)
    assert lines["zed"]["last"] == f"{EARLIER}T12:00:00Z"
    (imported,) = edge.imported()
    assert (imported["version"], imported["front_proxy"], imported["count"]) == ("1", "edge", 4)
    assert presence(edge.gateway) == {"a": "heard"}
    # The history has them at the time of the log, as if they had passed the gateway.
    (day,) = edge.days(4)
    assert day["start"] == f"{EARLIER}T00:00:00Z"
    assert (day["requests"], day["errors"], day["callers"], day["mean_ms"]) == (4, 1, 2, 20)


def test_no_line_is_counted_twice_where_the_file_that_was_read_is_gone(edge: Edge) -> None:
    """As where the log was truncated while nobody read it; older files are still there."""
    for number, client in enumerate(("zero", "one", "two")):
        edge.log.write_bytes(entry(client) * 2)
        assert edge.imports()[0] == 0
        if client != "two":
            edge.log.rename(f"{edge.log}.{number}")
    time.sleep(0.1)  # file systems keep times to some milliseconds
    edge.log.write_bytes(entry("3"))
    edge.log.rename(f"{edge.log}.2")
    edge.log.write_bytes(entry("4"))
    status, told = edge.imports()
    assert (status, told.count("the file that was read is gone")) == (0, 1)
    wait_for(lambda: counted(edge.gateway) == {"zero": 2, "one": 2, "two": 2, "3": 1, "4": 1})


def test_the_database_is_read_without_a_gateway(edge: Edge, cluster: Cluster) -> None:
    """`usage --state` answers as the gateway does; its errors have no secrets."""
    edge.log.write_bytes(entry("acme") * 3)
    edge.imports()
    ask(edge.gateway.port, 1, "zed")
    wait_for(lambda: counted(edge.gateway) == {"acme": 3, "zed": 1})
    url = edge.state
    status, printed = edge.run("usage", "--state", url, "--json")
    assert status == 0
    assert json.loads(printed)["usage"] == admin(edge.gateway, "GET", "/usage")[1]["usage"]
    edge.days(4)
    status, printed = edge.run("usage", "--state", url, "--history", "1", "--json")
    assert sum(day["requests"] for day in json.loads(printed)["lines"]) == 4
    status, printed = edge.run("usage", "--state", url, "--retire", "1", "--within", "30d")
    assert status == 1
    assert "2 clients called it" in printed
    empty = cluster.url()
    for place, said in (
        (empty, "not the state of a gateway; name another database"),
        (url.replace("s3cret", "wrong"), "the user or the password is refused"),
        (url.replace("//", "/"), "not a location of state"),
    ):
        status, printed = edge.run("usage", "--state", place)
        assert (status, said in printed) == (2, True)
        assert "s3cret" not in printed
        assert "wrong" not in printed


def test_what_is_no_entry_is_named_and_counting_begins_anew(edge: Edge) -> None:
    edge.log.write_bytes(entry("acme") + b"{torn\n" * 7 + entry("acme"))
    status, printed = edge.imports()
    assert status == 1
    place = len(entry("acme"))
    assert printed.count("is no entry") == 5
    assert f"the line at byte {place} of access.log is no entry: " in printed
    assert "2 more of access.log" in printed
    assert "9 lines, of which 2 went straight to services and 7 are no entries" in printed
    wait_for(lambda: counted(edge.gateway) == {"acme": 2})
    (reason,) = edge.reasons("1d")
    assert ", because the line at byte " in reason


@pytest.mark.parametrize(
    ("rules", "words", "said"),
    [
        (("bypass: [edge]", "bypass: true"), (), "the rules name no front proxies"),
        (("bypass: [edge]", "bypass: [edge, b]"), (), "name one with --source: edge, b"),
        (
            ("", ""),
            ("--source", "c"),
            "'c' is no front proxy of the rules",
        ),
        (('state: "', 'state: "" #'), (), "usage import adds to a state in PostgreSQL"),
        (("", ""), (), "access.log cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    edge: Edge, rules: tuple[str, str], words: tuple[str, ...], said: str
) -> None:
    file = edge.folder / "gateway.yaml"
    file.write_text(file.read_text().replace(*rules))
    status, printed = edge.imports(*words)
    assert status == 2
    assert printed.startswith(said)
    assert printed.count("\n") == 1


def test_each_line_is_counted_once_whatever_is_killed(edge: Edge) -> None:
    """Readers are killed and followed by others, while the log grows and is rotated."""
    total = 0
    for turn in range(4):
        with edge.log.open("ab") as file:
            for _ in range(500):
                file.write(entry(f"client{turn}"))
                total += 1
            file.write(entry("torn")[:20])
        reader = edge.start_import("--follow")
        if turn % 2:
            wait_for(lambda: sum(each["count"] for each in edge.imported()) == total)  # noqa: B023
        with edge.log.open("ab") as file:
            file.write(entry("torn")[20:] + entry("more") * 100)
        total += 101
        if turn == 2:
            wait_for(lambda: sum(each["count"] for each in edge.imported()) == total)  # noqa: B023
            edge.log.rename(edge.folder / "access.log.1")
        reader.kill()
        reader.wait()
    edge.start_import("--follow")
    wait_for(lambda: sum(counted(edge.gateway).values()) == total)
    assert counted(edge.gateway)["torn"] == 4
    wait_for(lambda: edge.reasons() == [])


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, in this event loop."""
    await asyncio.to_thread(wait_for, is_so)


async def test_one_process_reads_a_log_and_the_database_may_be_away(
    database: str, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_STATEMENT", 0.5)
    log = tmp_path / "access.log"
    log.write_bytes(entry("acme"))
    told: list[str] = []
    with Relay(cluster.port) as relay:
        url = database.replace(f":{cluster.port}/", f":{relay.port}/")
        first = LogImport(url, log, "edge", None, told.append)
        task = asyncio.create_task(first.run(follow=True))
        await until(lambda: first.counts.lines == 1)
        relay.refuse()
        with pytest.raises(StateUnreachableError):
            await LogImport(url, log, "edge", None, told.append).run(follow=False)
        await until(lambda: bool(told))
        assert "what it lacks is handed in later" in told[0]
        relay.pass_on()
        with log.open("ab") as file:
            file.write(entry("acme"))
        await until(lambda: first.counts.lines == 2)
        second = LogImport(url, log, "edge", None, told.append)
        await second.run(follow=False)
        with pytest.raises(StateError, match="another process reads the log of edge"):
            await task
    assert first.counts == LogCounts(2, 2, 0)
    assert second.counts == LogCounts()


async def test_a_database_from_a_backup_is_given_what_it_lacks(
    database: str, cluster: Cluster, tmp_path: Path
) -> None:
    """The log is read again from where the backup was made."""
    name, log = database.rpartition("/")[2], tmp_path / "access.log"
    log.write_bytes(entry("acme"))
    told: list[str] = []
    naming = ClientNaming((HeaderName("X-Client"),))
    reading = LogImport(database, log, "edge", naming, told.append)
    task = asyncio.create_task(reading.run(follow=True))
    await until(lambda: reading.counts.lines == 1)
    # In a thread: what reads the log may be amid a transaction, and goes on.
    kept = "CREATE TABLE kept AS SELECT * FROM gateway.documents"
    await asyncio.to_thread(cluster.execute, kept, name)
    with log.open("ab") as file:
        file.write(entry("zed"))
    await until(lambda: reading.counts.lines == 2)
    await asyncio.to_thread(
        cluster.execute,
        "DELETE FROM gateway.batches WHERE sequence > 1; UPDATE gateway.documents d"
        " SET document = kept.document FROM kept WHERE kept.name = d.name",
        name,
    )
    with log.open("ab") as file:
        file.write(entry("late"))
    await until(lambda: reading.counts.lines == 4)
    task.cancel()
    view, _, _ = await read_stored_fleet(database, None)
    found = {client: row.count for (_, client), row in view.totals.clients["person", "1"]}
    assert found == {"acme": 1, "zed": 1, "late": 1}
    assert "as one from a backup; what it lacks is handed in later" in told[0]


def test_a_fleet_behind_envoy(edge: Edge) -> None:
    """Traffic through Envoy, whose log is rotated, is in the verdict as if the gateway had it."""
    with ExitStack() as stack:
        port = free_port()
        where = (f"--listen=127.0.0.1:{port}", f"--gateway=127.0.0.1:{edge.gateway.port}")
        export(edge.folder, *where, f"--log={edge.log}")
        envoy = start_envoy(stack, edge.folder, port)
        assert edge.reasons() == ["what edge sends straight to services was never counted"]
        ask(port, 1, "acme")
        reader = edge.start_import("--follow")
        wait_for(lambda: counted(edge.gateway).get("acme") == 1)
        for _ in range(3):
            ask(port, 1, "zed\xff")
            ask(port, 2, "late")
        edge.log.rename(edge.folder / "access.log.1")
        envoy.send_signal(signal.SIGUSR1)
        wait_for(edge.log.exists)
        for _ in range(4):
            ask(port, 1, "zed\xff")
        wait_for(lambda: sorted(counted(edge.gateway).values()) == [1, 3, 7])
        assert [each["count"] for each in edge.imported()] == [8]
        (reason,) = edge.reasons("1d")[:1]
        assert "2 clients called it" in reason
        wait_for(lambda: edge.reasons() == [])
        # An earlier export sends version 1 past its dates, which the log alone has.
        rules = edge.folder / "gateway.yaml"
        dated = '"1": { service: old, lifecycle: { sunset: 2020-01-01 } }'
        rules.write_text(rules.read_text().replace('"1": { service: old }', dated))
        wait_for(lambda: edge.gateway.log("config_loaded"))
        ask(port, 1, "stray")
        wait_for(lambda: any("stray" in text for text in edge.reasons("1d")))
        reader.send_signal(signal.SIGTERM)
        assert reader.communicate(timeout=DEADLINE)[0].endswith(" and 0 are no entries\n")
        assert reader.returncode == 0
        wait_for(lambda: any("is counted until" in text for text in edge.reasons()))
        (warning,) = admin(edge.gateway, "GET", "/fleet")[1]["warnings"]
        assert warning == "the log of the front proxy edge is not read now"
        # It may have the export of former rules still.
        rules.write_text(rules.read_text().replace("bypass: [edge]\n", ""))
        wait_for(lambda: not admin(edge.gateway, "GET", "/fleet")[1]["warnings"])
        assert any("is counted until" in text for text in edge.reasons("1d"))
        assert not any("is counted until" in text for text in edge.reasons("1s"))
