"""Fleet: real gateways on one database, and queries to each of them."""

import threading
import time
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.fleet.cluster import Cluster
from tests.fleet.relay import Relay
from tests.gateway.kit import DEADLINE, Program, start_program
from tests.gateway.live.raw import Service, answer
from tests.gateway.live.shifting import admin, rules

CUTOVER = ', cutover: { via: "2", percent: 5 }'
ENDED = f", lifecycle: {{ deprecated: 2020-01-01, sunset: 2020-01-02 }}{CUTOVER}"


class Fleet:
    """Gateways that share a database through a relay."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        database: str,
        cluster: Cluster,
        first: str = ENDED,
        more: str = "",
    ) -> None:
        self._stack = stack
        self._folder = folder
        self._first = first
        self._more = more
        self._reloads = 0
        self.relay = stack.enter_context(Relay(cluster.port))
        self.url = database.replace(f":{cluster.port}/", f":{self.relay.port}/")
        self.service = stack.enter_context(Service())
        stack.callback(self.service.shutdown)
        threading.Thread(target=self.service.serve_forever, args=(0.01,), daemon=True).start()
        self.service.answer = answer(b'{"name": "Bob Charlie"}')
        self.replicas: dict[str, Program] = {}

    def start(self, name: str, percent: float = 5, **variables: str) -> Program:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        text = self._rules().replace("percent: 5", f"percent: {percent:g}")
        (folder / "gateway.yaml").write_text(text)
        program = start_program(self._stack, folder, "gateway", GATEWAY_REPLICA=name, **variables)
        program.config = folder / "gateway.yaml"
        self.replicas[name] = program
        return program

    def reload(self) -> None:
        self._reloads += 1
        for program in self.replicas.values():
            program.reload(self._rules())

    def _rules(self) -> str:
        port, top = self.service.port, f"state: '{self.url}' # {self._reloads}"
        return rules("person", port, port, self._first, top=top) + self._more


def call(program: Program, client: str = "acme", times: int = 1) -> float:
    """Request version 1 several times; return the seconds of the fastest response."""
    quickest = DEADLINE
    for _ in range(times):
        began = time.monotonic()
        connection = HTTPConnection("127.0.0.1", program.port, timeout=DEADLINE)
        connection.request("GET", "/v1/person", headers={"X-Client": client})
        assert connection.getresponse().status in (200, 410)
        connection.close()
        quickest = min(quickest, time.monotonic() - began)
    return quickest


def counted(program: Program) -> dict[str, int]:
    status, found = admin(program, "GET", "/usage?api=person")
    assert status == 200
    return {line["client"]: line["count"] for line in found["usage"]}


def is_counted(program: Program, expected: dict[str, int]) -> bool:
    return counted(program) == expected


def verdict(program: Program) -> Any:
    return admin(program, "GET", "/retire/person/1?within=1s")[1]


def doubt(found: Any) -> str:
    return "\n".join(each["text"] for each in found["reasons"] if each["answer"] == "unknown")


def presence(program: Program) -> dict[str, str]:
    return {
        each["replica"]: each["presence"] for each in admin(program, "GET", "/fleet")[1]["replicas"]
    }


def judge(program: Program) -> str | None:
    found = admin(program, "GET", "/fleet")[1]["replicas"]
    return next((each["replica"] for each in found if each["judges"]), None)
