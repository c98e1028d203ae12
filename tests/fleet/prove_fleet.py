"""A fleet of real gateways on one database: each reports for all, and serves without it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.store.leader import LEASE_SECONDS
from tests.fleet.cluster import PASSWORD, Cluster, Execute
from tests.fleet.fleet import Fleet, call, counted, doubt, is_counted, judge, presence, verdict
from tests.gateway.kit import DEADLINE, ROOT, Program, wait_for
from tests.gateway.live.shifting import admin, rules


@pytest.fixture
def fleet(database: str, cluster: Cluster, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(stack, tmp_path, database, cluster)


def page(program: Program, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", program.admin, timeout=DEADLINE)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def test_every_replica_reports_the_counts_of_all(fleet: Fleet) -> None:
    one, other = fleet.start("a"), fleet.start("b")
    call(one, "acme", 3)
    call(other, "acme", 4)
    call(other, "zed")
    for program in (one, other):
        wait_for(partial(is_counted, program, {"acme": 7, "zed": 1}))
    assert admin(one, "GET", "/usage?replica=b")[0] == 404
    found = admin(other, "GET", "/usage?replica=b")[1]
    assert sum(line["count"] for line in found["usage"]) == 5
    assert found["replica"] == "b"
    # A change on one replica applies on the other and has its reason.
    status, _ = admin(one, "PUT", "/cutovers/person/1?why=trial", {"percent": 50})
    assert status == 200
    wanted = [{"api": "person", "version": "1", "percent": 50.0}]
    wait_for(lambda: admin(other, "GET", "/overrides")[1]["percents"] == wanted)
    changes = admin(other, "GET", "/audit")[1]
    assert len(changes) == 1, changes
    (change,) = changes
    assert (change["what"], change["why"], change["after"]) == ("cutover", "trial", "50%")
    wait_for(lambda: admin(other, "GET", "/fleet")[1]["warnings"] == [])
    fleet.start("c", percent=7)
    (warning,) = wait_for(lambda: admin(one, "GET", "/fleet")[1]["warnings"])
    assert warning.startswith("the configurations differ: ")
    assert presence(one) == {"a": "heard", "b": "heard", "c": "heard"}
    fleet.replicas["c"].process.send_signal(signal.SIGTERM)
    wait_for(lambda: presence(one) == {"a": "heard", "b": "heard"})


def test_another_replica_becomes_leader_when_the_leader_stops(fleet: Fleet) -> None:
    # The delay depends on the lease, which expires after half of the five seconds.
    assert LEASE_SECONDS <= 2.5
    for name in "ab":
        fleet.start(name)
    some = fleet.replicas["a"]
    first = wait_for(lambda: judge(some))
    other = next(name for name in "ab" if name != first)
    left = fleet.replicas[other]
    # The leader is suspended. When it resumes, it cannot overrule its successor.
    fleet.replicas[first].process.send_signal(signal.SIGSTOP)
    wait_for(lambda: judge(left) == other)
    assert admin(left, "PUT", "/cutovers/person/1", {"percent": 0})[0] == 200
    fleet.replicas[first].process.send_signal(signal.SIGCONT)
    wanted = [{"api": "person", "version": "1", "percent": 0.0}]
    wait_for(lambda: admin(fleet.replicas[first], "GET", "/overrides")[1]["percents"] == wanted)
    assert judge(left) == other
    # The replica is killed. It is lost, and the verdict cannot be yes until it is forgotten.
    fleet.replicas[other].process.kill()
    back = fleet.replicas[first]
    wait_for(lambda: judge(back) == first)
    assert admin(back, "GET", "/overrides")[1]["percents"] == wanted
    assert admin(back, "PUT", "/cutovers/person/1", {"percent": 100})[0] == 200
    wait_for(lambda: presence(back)[other] == "lost")
    time.sleep(1.1)
    found = verdict(back)
    assert found["answer"] == "unknown"
    assert f"the replica {other} has sent no heartbeat since" in doubt(found)
    assert admin(back, "DELETE", f"/fleet/{first}")[0] == 404
    assert admin(back, "DELETE", f"/fleet/{other}?why=its+machine+burnt")[0] == 200
    assert verdict(back)["answer"] == "yes"


def test_failures_of_one_replica_are_shown_by_all(
    database: str, cluster: Cluster, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        fleet = Fleet(stack, tmp_path, database, cluster, "")
        one, other = fleet.start("a"), fleet.start("b")
        assert other.config is not None
        right = other.config.read_text()
        target = f'"http://127.0.0.1:{fleet.service.port}"'
        closed = stack.enter_context(socket.socket())  # bound, but nobody listens
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        wrong = f'{target}, "http://127.0.0.1:{port}"'
        ejecting = "], ejection: { failures: 1, seconds: 60, longest: 60 }"
        other.reload(right.replace(f"{target}]", f"{wrong}{ejecting}", 1))

        def seen() -> bool:
            call(other)
            return f"1 of 2 targets fails: 127.0.0.1:{port} since " in page(one, "/")[1]

        wait_for(seen)
        assert "old in b" in page(one, "/")[1]
        assert "Connection refused" in page(one, "/")[1]
        (failing,) = admin(one, "GET", "/fleet")[1]["replicas"][1]["failing"]
        assert failing["errors"] == {f"127.0.0.1:{port}": "Connection refused"}
        shown = fleet_show(one)
        assert "warning: in b, 1 of 2 targets of service old fail since " in shown
        assert "warning: in a" not in shown
        other.reload(right)
        wait_for(lambda: "Service fails" not in page(one, "/")[1])
        assert "targets" not in fleet_show(one)


def fleet_show(program: Program) -> str:
    return subprocess.run(
        [sys.executable, "-m", "gateway", "fleet", "show"],
        check=True,
        cwd=ROOT,
        env={**os.environ, "GATEWAY_ADMIN_PORT": str(program.admin)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE,
    ).stdout


WRONG_CLOCK = """
import time
right = time.time
time.time = lambda: right() + {}
"""


@pytest.mark.parametrize(("minutes", "status"), [(30, 200), (-30, 410)])
def test_replicas_with_wrong_clocks_agree_on_dates(
    database: str, cluster: Cluster, tmp_path: Path, minutes: float, status: int
) -> None:
    """Workers use the database's time even while it is away, and so does a replaced worker."""
    day = datetime.fromtimestamp(time.time() + 60 * minutes, UTC)
    ends = f", lifecycle: {{ deprecated: 2020-01-01, sunset: {day:%Y-%m-%dT%H:%M:%SZ} }}"
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "sitecustomize.py").write_text(WRONG_CLOCK.format(120 * minutes))
    with ExitStack() as stack:
        fleet = Fleet(stack, tmp_path, database, cluster, ends)
        fleet.start("right")
        path = f"{wrong}:{ROOT}"
        program = fleet.start("wrong", PYTHONPATH=path, GATEWAY_WORKERS="2")
        assert program.log("clock_skewed")[0]["seconds"] == pytest.approx(-120 * minutes, abs=5)

        def answers() -> set[int]:
            return {asked(each) for each in fleet.replicas.values() for _ in range(10)}

        assert answers() == {status}
        fleet.relay.drop()
        wait_for(lambda: admin(program, "GET", "/readyz")[1].get("state_stale_since"))
        assert answers() == {status}
        psutil.Process(program.process.pid).children()[0].kill()
        wait_for(lambda: program.log("worker_replaced"))
        assert answers() == {status}


SET_CLOCK = """
import time
right = time.time
time.time = lambda: right() + float(open({!r}).read())
"""


@pytest.mark.parametrize(("minutes", "status"), [(30, 200), (-30, 410)])
def test_setting_the_clock_of_a_running_replica_has_no_effect(
    database: str, cluster: Cluster, tmp_path: Path, minutes: float, status: int
) -> None:
    """Dates use the database's time, and everything else uses elapsed time."""
    day = datetime.fromtimestamp(time.time() + 60 * minutes, UTC)
    ends = f", lifecycle: {{ deprecated: 2020-01-01, sunset: {day:%Y-%m-%dT%H:%M:%SZ} }}"
    offset, wrong = tmp_path / "offset", tmp_path / "wrong"
    wrong.mkdir()
    offset.write_text("0")
    (wrong / "sitecustomize.py").write_text(SET_CLOCK.format(str(offset)))
    with ExitStack() as stack:
        fleet = Fleet(stack, tmp_path, database, cluster, ends)
        program = fleet.start("set", PYTHONPATH=f"{wrong}:{ROOT}")
        assert asked(program) == status

        def replica() -> dict[str, Any]:
            found: list[dict[str, Any]] = admin(program, "GET", "/fleet")[1]["replicas"]
            return found[0]

        def wait_for_beat() -> None:
            heard = replica()["heard"]
            wait_for(lambda: replica()["heard"] != heard)

        for hours in (5, -5):
            fresh = tmp_path / "fresh"
            fresh.write_text(str(3600 * hours))
            fresh.replace(offset)
            wait_for_beat()
            wait_for_beat()  # the next heartbeat detects it
            assert {asked(program) for _ in range(10)} == {status}
            assert "state_stale_since" not in admin(program, "GET", "/readyz")[1]
            assert replica()["presence"] == "heard"
            wait_for(lambda: replica()["judges"])
        assert program.log("clock_skewed")
        (line,) = admin(program, "GET", "/usage")[1]["usage"]
        first, last = (datetime.fromisoformat(line[name]) for name in ("first", "last"))
        assert abs(datetime.now(UTC) - first).total_seconds() < 600
        assert abs(datetime.now(UTC) - last).total_seconds() < 600


def asked(program: Program) -> int:
    connection = HTTPConnection("127.0.0.1", program.port, timeout=DEADLINE)
    connection.request("GET", "/v1/person")
    status = connection.getresponse().status
    connection.close()
    return status


def test_counts_lost_with_a_suspended_process_are_reported(fleet: Fleet, tmp_path: Path) -> None:
    """The supervisor writes the counts of its workers. The workers continue to serve."""
    one, other = fleet.start("a"), fleet.start("b", GATEWAY_WORKERS="2")
    call(other, "acme", 3)
    wait_for(lambda: counted(one) == {"acme": 3})
    since = admin(one, "GET", "/usage")[1]["since"]
    other.process.send_signal(signal.SIGSTOP)
    call(other, "zed", 5)
    (mark,) = wait_for(lambda: list((tmp_path / "b").glob("*.b.unheard")))
    other.process.kill()
    other.process.wait()
    again = fleet.start("b", GATEWAY_WORKERS="2")
    wait_for(lambda: admin(one, "GET", "/usage")[1]["since"] > since)
    assert "unwritten counts" in again.log("state_went_back")[0]["reason"]
    wait_for(lambda: not mark.exists())


# The commit of an entry in the audit log takes long.
SLOW_COMMIT = """
CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_sleep(2); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON gateway.audit DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION public.wait();
"""
COMMITTING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


def test_a_change_without_confirmation_is_reported_as_uncertain(
    fleet: Fleet, execute: Execute, database: str
) -> None:
    one = fleet.start("a")
    execute(SLOW_COMMIT)
    with ThreadPoolExecutor(1) as thread:
        act = thread.submit(admin, one, "PUT", "/cutovers/person/1", {"percent": 50})
        wait_for(lambda: execute(COMMITTING) == ["1"])
        fleet.relay.refuse()
        status, problem = act.result()
    assert (status, problem["code"]) == (503, "state_unavailable")
    assert problem["detail"].endswith("; it may have been changed: check the state")
    fleet.relay.pass_on()
    wait_for(lambda: [each["percent"] for each in admin(one, "GET", "/overrides")[1]["percents"]])


@pytest.mark.parametrize("how", ["dropped", "refused"])
def test_requests_go_on_without_the_database(fleet: Fleet, how: str) -> None:
    one, other = fleet.start("a"), fleet.start("b")
    assert admin(one, "PUT", "/cutovers/person/1", {"percent": 25})[0] == 200
    wait_for(lambda: admin(other, "GET", "/overrides")[1]["percents"])
    call(one, times=2)
    wait_for(lambda: counted(other) == {"acme": 2})
    fleet.relay.drop() if how == "dropped" else fleet.relay.refuse()
    stale = wait_for(lambda: admin(one, "GET", "/readyz")[1].get("state_stale_since"))
    assert stale.endswith("Z")
    # A request that waited for the database would take until its timeout: three seconds.
    assert call(one, times=5) < 2
    assert call(other, "zed", 3) < 2
    assert admin(one, "GET", "/readyz")[0] == 200
    found = verdict(one)
    assert found["answer"] in ("unknown", "no")
    assert "the database has been unreachable since" in doubt(found)
    status, problem = admin(one, "PUT", "/cutovers/person/1", {"percent": 50})
    assert (status, problem["code"]) == (503, "state_unavailable")
    for path in ("/", "/page/versions/person/1", "/page/audit"):
        status, text = page(one, path)
        assert status == 200
        assert "has been unreachable since" in text
        assert PASSWORD not in text
    # A replica that starts meanwhile applies the overrides that it read last.
    other.process.send_signal(signal.SIGTERM)
    assert other.process.wait(DEADLINE) == 0
    again = fleet.start("b")
    assert admin(again, "GET", "/overrides")[1]["percents"][0]["percent"] == 25
    call(again, "zed", 2)
    fleet.relay.pass_on()
    wait_for(lambda: "state_stale_since" not in admin(one, "GET", "/readyz")[1])
    # All counts are present once, except those that the other replica lost when it ended.
    wait_for(lambda: counted(one) == counted(again) == {"acme": 7, "zed": 2})


def test_an_unusable_database_is_reported_in_one_line(database: str, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(rules("person", 1, 1, top='state: "${STATE}"'))
    done = subprocess.run(
        [sys.executable, "-m", "gateway"],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(ROOT),
            "STATE": database.replace("s3cret", "wr0ng"),
            "GATEWAY_PORT": "0",
            "GATEWAY_ADMIN_PORT": "0",
            "GATEWAY_WORKERS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "the user or the password is refused; correct them in 'state'" in done.stderr
    assert "wr0ng" not in done.stderr
