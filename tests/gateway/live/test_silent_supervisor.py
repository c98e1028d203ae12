"""Only the supervisor is suspended: its workers continue, and lost counts are reported."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest

from tests.gateway.kit import DEADLINE, Program, start_program, wait_for
from tests.gateway.live.raw import Service, answer
from tests.gateway.live.shifting import admin, rules

pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path: Path) -> Iterator["Start"]:
    with ExitStack() as stack:
        yield Start(stack, tmp_path)


class Start:
    """Starts gateways with two workers and a state file, one after the other."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        service = stack.enter_context(Service())
        stack.callback(service.shutdown)
        Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        service.answer = answer(b'{"name": "Bob Charlie"}')
        self.mark = folder / "state.db.unheard"
        text = rules("person", service.port, service.port, top=f"state: {folder}/state.db")
        (folder / "gateway.yaml").write_text(text)

    def __call__(self) -> Program:
        return start_program(self._stack, self._folder, "gateway", GATEWAY_WORKERS="2")


def call(program: Program, times: int) -> None:
    for _ in range(times):
        connection = HTTPConnection("127.0.0.1", program.port, timeout=DEADLINE)
        connection.request("GET", "/v1/person", headers={"X-Client": "acme"})
        assert connection.getresponse().status == 200
        connection.close()


def counted(program: Program) -> int:
    return sum(line["count"] for line in admin(program, "GET", "/usage")[1]["usage"])


def test_counts_lost_with_a_killed_supervisor_are_reported(start: Start) -> None:
    former = start()
    call(former, 3)
    wait_for(lambda: counted(former) == 3)
    since = admin(former, "GET", "/usage")[1]["since"]
    former.process.send_signal(signal.SIGSTOP)
    call(former, 5)
    wait_for(start.mark.exists)
    assert former.log("supervisor_silent")
    former.process.kill()
    former.process.wait()
    again = start()
    (entry,) = again.log("state_went_back")
    assert entry["reason"].endswith(
        "the gateway ended while counts of its workers were not delivered"
    )
    assert admin(again, "GET", "/usage")[1]["since"] > since
    wait_for(lambda: not start.mark.exists())
    # The loss is reported only once, not at the next start.
    again.process.terminate()
    again.process.wait()
    assert start().log("state_went_back") == []


def test_no_count_is_lost_if_the_supervisor_resumes(start: Start) -> None:
    program = start()
    program.process.send_signal(signal.SIGSTOP)
    call(program, 5)
    wait_for(start.mark.exists)
    call(program, 5)
    os.kill(program.process.pid, signal.SIGCONT)
    wait_for(lambda: not start.mark.exists())
    assert counted(program) == 10
    assert program.log("supervisor_heard")
    assert program.log("state_went_back") == []
