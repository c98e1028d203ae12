"""Chaos: replicas and their database are killed, suspended and cut off; all counts stay correct.

Meanwhile, rules are reloaded, replicas are restarted one after the other, the percentage of one
cutover rises, an operator has set another one to 0%, a third one is rolled back by its gates while
replicas are killed, and an operator pauses and resumes brownouts. `make test-fleet` runs it for
half a minute, with each failure once; `make chaos MINUTES=10` runs it for longer.
"""

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fleet.agreement import WATCHED, Agreement
from tests.fleet.cluster import Cluster
from tests.fleet.fleet import CUTOVER, Fleet, judge, presence
from tests.fleet.fragile import FRAGILE, Fragile
from tests.gateway.kit import Program, wait_for
from tests.gateway.live.shifting import admin

SECONDS = float(os.environ.get("CHAOS_MINUTES", "0.5")) * 60
NAMES = ("a", "b", "c")
OF_JUDGE = {"kill the judge": "kill", "suspend the judge": "suspend"}
MISHAPS = (
    *("kill", "suspend", "drop", "refuse", "crash", "pause", "reload", "restart", "turn bad"),
    *OF_JUDGE,
)
STEPS = [1, 5, 10, 25, 50, 75, 90, 100]
CLIMBING = f"""\
  climb:
    upstream_path: /person
    endpoints: [ {{ path: "/climb/v{{version}}", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: old, cutover: {{ via: "2", steps: {STEPS}, every: 4s }} }}
      "2": {{ service: new }}
    conversions: [ {{ between: ["1", "2"], changes: [ {{ rename: {{ field: a, to: b }} }} ] }} ]
"""


class Load:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.fragile = Fragile()
        fleet.service.answer = self.fragile.answer
        self._to_forget = threading.Event()
        self._down: set[str] = set()
        self._back: dict[str, float] = {}
        self._times: dict[str, list[float]] = {name: [] for name in NAMES}
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(name,)) for name in NAMES]

    def note_down(self, name: str) -> None:
        """Record that a replica is killed. Its errors are expected until it is back."""
        self._down.add(name)

    def note_back(self, name: str) -> None:
        self._back[name] = time.monotonic()
        self._down.discard(name)

    def answered(self, name: str, since: float = 0.0) -> int:
        """Return the number of responses of a replica since a time, in seconds since 1970."""
        return sum(at >= since for at in self._times[name])

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._to_forget.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str) -> None:
        for path in cycle(("/v1/person", "/climb/v1", "/fragile/v1")):
            if self._to_forget.is_set():
                return
            program, began = self._fleet.replicas[name], time.monotonic()
            connection = HTTPConnection("127.0.0.1", program.port, timeout=20)
            try:
                connection.request("GET", path, headers={"X-Client": name})
                status = connection.getresponse().status
                self._times[name].append(time.time())
                if status != 200 and not (status == 500 and "fragile" in path):
                    self.wrong.append(f"{name} answered {status}")
            except (OSError, HTTPException) as error:
                if name not in self._down and self._back.get(name, 0.0) < began:
                    self.wrong.append(f"{name}: {error!r}")
            finally:
                connection.close()
            self._to_forget.wait(0.02)


def test_no_count_is_lost_or_doubled_and_no_override_is_undone(
    own_cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chance, lost = Random(int(os.environ.get("CHAOS_SEED", "1"))), 0
    with ExitStack() as stack:
        database = own_cluster.create("chaos")
        fleet = Fleet(
            stack, tmp_path, database, own_cluster, CUTOVER, more=CLIMBING + FRAGILE + WATCHED
        )
        for name in NAMES:
            fleet.start(name)
        assert admin(fleet.replicas["a"], "PUT", "/cutovers/person/1", {"percent": 0})[0] == 200
        climbed = 0.0
        with Load(fleet) as load, Agreement(fleet) as agreement:
            end = time.monotonic() + SECONDS
            mishaps: list[str] = []
            while time.monotonic() < end or len(mishaps) < len(MISHAPS):
                if not len(mishaps) % len(MISHAPS):
                    coming = iter(chance.sample(MISHAPS, len(MISHAPS)))
                mishaps.append(next(coming))
                lost += one_mishap(mishaps[-1], chance.choice(NAMES), fleet, load, own_cluster)
                climbed = check_percents(fleet, climbed)
        served = sum(b" /watched" not in each.line for each in fleet.service.asked)
        assert load.wrong == []
        assert load.fragile.wrong == []
        assert agreement.wrong == []
        assert agreement.changes > 5
        assert sum(map(load.answered, NAMES)) > 100
        assert climbed > STEPS[0]

        def total() -> int:
            def whole() -> list[Any] | None:
                found = admin(fleet.replicas["a"], "GET", "/usage")[1]
                return None if found["missing"] else [found["usage"]]

            lines = wait_for(whole)[0]
            return sum(line["count"] for line in lines if line["api"] != "watched")

        def is_settled() -> bool:
            before = total()
            time.sleep(2)
            return total() == before

        wait_for(is_settled, 60)
        found = total()
        with capfd.disabled():
            sys.stdout.write(
                f"\n{len(mishaps)} mishaps; {served} requests reached services, {served - found}"
                f" of them are not counted (at most {lost}); {agreement.changes} changes, in force"
                f" on all within {agreement.longest:.1f} s\n"
            )
        assert served - lost <= found <= served
        wait_for(lambda: presence(fleet.replicas["a"]) == dict.fromkeys(NAMES, "heard"))
        wait_for(lambda: admin(fleet.replicas["a"], "GET", "/fleet")[1]["warnings"] == [])


def one_mishap(what: str, name: str, fleet: Fleet, load: Load, cluster: Cluster) -> int:
    """Cause one failure and repair it; return how many counts may be lost with it."""
    if what in OF_JUDGE:
        what, name = OF_JUDGE[what], wait_for(lambda: judge(fleet.replicas["a"]))
    if what == "kill":
        return kill(name, fleet, load)
    if what == "turn bad":
        return roll_back(name, fleet, load)
    if what == "restart":
        for each in NAMES:  # a replica that stops cleanly loses no count
            stop(each, signal.SIGTERM, fleet, load)
    elif what == "reload":
        fleet.reload()
    elif what == "suspend":
        process = fleet.replicas[name].process
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
    elif what == "crash":
        cluster.stop("immediate")
        time.sleep(1)
        cluster.start()
    elif what == "pause":
        cluster.signal(signal.SIGSTOP)
        time.sleep(3)
        cluster.signal(signal.SIGCONT)
    else:
        fleet.relay.drop() if what == "drop" else fleet.relay.refuse()
        time.sleep(3)
        fleet.relay.pass_on()
    # A replica that is killed before the database has its counts loses them.
    wait_until_handed_in(fleet.replicas["a"])
    return 0


def kill(name: str, fleet: Fleet, load: Load) -> int:
    """Kill a replica and start it again; return how many requests may be lost with it."""
    heard = stop(name, signal.SIGKILL, fleet, load)
    # Requests in the three seconds before its last heartbeat may be missing in that heartbeat.
    return load.answered(name, since=heard - 3)


def roll_back(name: str, fleet: Fleet, load: Load) -> int:
    """Let a version fail, kill a replica and the leader, and wait for the rollback by its gates.

    Afterwards, the version works again. This changes nothing: only an operator may raise the
    percentage.
    """
    fragile, lost = load.fragile, 0

    def stands_at(percent: float | None) -> bool:
        return {percents(each).get("fragile") for each in fleet.replicas.values()} == {percent}

    fragile.rolled_back.clear()
    assert admin(fleet.replicas[name], "DELETE", "/cutovers/fragile/1")[0] == 200
    wait_for(lambda: stands_at(None))  # the percentage of the configuration
    fragile.bad.set()
    lost += kill(name, fleet, load)
    lost += kill(wait_for(lambda: judge(fleet.replicas[name])), fleet, load)
    wait_for(lambda: stands_at(0.0))
    time.sleep(1)  # for requests in flight
    fragile.rolled_back.set()
    fragile.bad.clear()
    wait_until_handed_in(fleet.replicas[name])
    return lost


def wait_until_handed_in(program: Program) -> None:
    """Wait for two more heartbeats of each replica.

    The first has what was not confirmed, the second has the rest.
    """
    beats: dict[tuple[str, str], set[str]] = {}

    def have() -> bool:
        time.sleep(0.2)
        status, found = admin(program, "GET", "/fleet")
        for each in found["replicas"] if status == 200 else ():
            beats.setdefault((each["replica"], each["started"]), set()).add(each["heard"])
        return {name for (name, _), heard in beats.items() if len(heard) > 2} == set(NAMES)

    wait_for(have, 60)


def stop(name: str, number: signal.Signals, fleet: Fleet, load: Load) -> float:
    """Restart a replica; return the time of its last heartbeat in the database."""
    process = fleet.replicas[name].process
    load.note_down(name)
    process.send_signal(number)
    process.wait()
    other = next(fleet.replicas[each] for each in NAMES if each != name)
    _, found = wait_for(
        lambda: answer if (answer := admin(other, "GET", "/fleet"))[0] == 200 else ()
    )
    heard = [each["heard"] for each in found["replicas"] if each["replica"] == name]
    fleet.start(name)
    load.note_back(name)
    return datetime.fromisoformat(max(heard)).timestamp() if heard else time.time()


def check_percents(fleet: Fleet, climbed: float) -> float:
    def agreed() -> tuple[float] | None:
        found = {percents(program).get("climb", 0.0) for program in fleet.replicas.values()}
        return (found.pop(),) if len(found) == 1 else None

    for program in fleet.replicas.values():
        with suppress(OSError):
            assert percents(program)["person"] == 0
    (reached,) = wait_for(agreed)
    assert reached >= climbed
    return float(reached)


def percents(program: Program) -> dict[str, float]:
    found = admin(program, "GET", "/overrides")[1]["percents"]
    return {each["api"]: each["percent"] for each in found}
