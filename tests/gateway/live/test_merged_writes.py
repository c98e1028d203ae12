"""Merged writes over real sockets: a service with entity tags, one gateway or several replicas."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from gateway.conversion.patches import apply_json_patch, apply_merge_patch
from tests.clients.stand_in import Request, Response, StandIn, route
from tests.gateway.kit import Program, start_program, wait_for

RULES = """
services: { orders: { targets: ["${SERVICE}"] } }
apis:
  orders:
    endpoints: [ { path: "/v{version}/orders/{id}", version: { in: path } } ]
    versions: { "1": { via: "2" }, "2": { service: orders, schema: orders.json } }
    conversions:
      - between: ["1", "2"]
        writes: merge
        changes:
          - rename: { field: total, to: sum }
          - default: { field: channel, value: web }
"""
# The sum of the writes of both clients. `make test` runs fewer than the full run by hand.
WRITES = int(os.environ.get("MERGED_WRITES", "120"))
ORDER = {"type": "object", "properties": {"id": {"type": "string", "readOnly": True}}}
BODY = {"content": {"application/json": {"schema": ORDER}}}
DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {"/orders/{id}": {"put": {"requestBody": BODY, "responses": {}}}},
}


class Orders(StandIn):
    """A service with one order and strong entity tags."""

    def __init__(self, **order: object) -> None:
        super().__init__()
        self.order: Any = order
        self.revision = 1
        self.written: list[Any] = []

    @route("GET", "/v2/orders/7")
    def read(self, request: Request) -> Response:
        tag = {"ETag": f'"{self.revision}"', "Content-Type": "application/json"}
        return Response(200, json.dumps(self.order).encode(), tag)

    @route("PUT", "/v2/orders/7")
    def put(self, request: Request) -> Response:
        return self._write(request, request.json())

    @route("PATCH", "/v2/orders/7")
    def patch(self, request: Request) -> Response:
        is_json_patch = "json-patch" in request.headers["content-type"]
        sent = request.json()
        if is_json_patch:
            return self._write(request, lambda: apply_json_patch(self.order, sent))
        return self._write(request, lambda: apply_merge_patch(self.order, sent))

    def _write(self, request: Request, order: Any) -> Response:
        if request.headers.get("if-match", f'"{self.revision}"') != f'"{self.revision}"':
            return Response(412)
        self.order = order() if callable(order) else order
        self.written.append(request.json())
        self.revision += 1
        return self.read(request)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, folder: Path, orders: Orders, replicas: int = 1) -> list[Program]:
    base = stack.enter_context(orders.serve())
    programs = []
    for number in range(replicas):
        home = folder / str(number)
        home.mkdir()
        (home / "gateway.yaml").write_text(RULES)
        (home / "orders.json").write_text(json.dumps(DOCUMENT))
        program = start_program(stack, home, "gateway", SERVICE=base)
        wait_for(partial(program.log, "document_loaded"))
        programs.append(program)
    return programs


class Client:
    """A client of one version with a connection to each replica, which it uses in turn."""

    def __init__(self, stack: ExitStack, programs: list[Program], version: int) -> None:
        self._to = [HTTPConnection("127.0.0.1", each.port, timeout=60) for each in programs]
        self._path, self._next = f"/v{version}/orders/7", 0
        for connection in self._to:
            stack.callback(connection.close)

    def ask(
        self, method: str, document: Any = None, media: str = "application/json", tag: str = ""
    ) -> tuple[int, Any, str]:
        self._next += 1
        connection = self._to[self._next % len(self._to)]
        fields = {"Content-Type": media, **({"If-Match": tag} if tag else {})}
        body = None if document is None else json.dumps(document)
        connection.request(method, self._path, body, fields)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None, answer.headers.get("ETag", "")

    def change(self, change: Callable[[Any], None]) -> None:
        """Read, change and write the order under the condition of its tag, until it succeeds."""
        status = 0
        while status != 200:
            _, order, tag = self.ask("GET")
            change(order)
            status, _, _ = self.ask("PUT", order, tag=tag)
            assert status in (200, 409, 412)

    def patch(self, patch: Any, media: str) -> None:
        status = 0
        while status != 200:
            status, refusal, _ = self.ask("PATCH", patch, f"application/{media}+json")
            assert status == 200 or refusal["code"] == "write_conflict"


def test_a_put_of_version_1_keeps_the_channel_and_omits_read_only_fields(
    stack: ExitStack, tmp_path: Path
) -> None:
    orders = Orders(id="7", total=1, channel="app")
    client = Client(stack, started(stack, tmp_path, orders), 1)
    _, order, _ = client.ask("GET")
    assert order == {"id": "7", "sum": 1}
    status, order, _ = client.ask("PUT", {**order, "sum": 2})
    assert (status, order) == (200, {"sum": 2})
    assert orders.written == [{"total": 2, "channel": "app"}]
    assert [one.method for one in orders.requests] == ["GET", "GET", "PUT"]


def test_concurrent_writes_of_two_versions_are_neither_lost_nor_applied_twice(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The client of version 1 uses three kinds of writes; that of version 2 writes the channel."""
    orders = Orders(total=0, channel=0, log=[])
    programs = started(stack, tmp_path, orders, replicas=3)

    def write_as_version_1() -> None:
        client = Client(stack, programs, 1)
        for number in range(1, WRITES // 2 + 1):
            if number % 10 == 0:
                append = {"op": "add", "path": "/log/-", "value": number}
                client.patch(
                    [append, {"op": "replace", "path": "/sum", "value": number}], "json-patch"
                )
            elif number % 2:
                client.patch({"sum": number}, "merge-patch")
            else:
                client.change(lambda order: order.update(sum=order["sum"] + 1))

    def write_as_version_2() -> None:
        client = Client(stack, programs, 2)
        for _ in range(WRITES // 2):
            client.change(lambda order: order.update(channel=order["channel"] + 1))

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write_as_version_1), pool.submit(write_as_version_2)]:
            done.result()
    log = list(range(10, WRITES // 2 + 1, 10))
    assert orders.order == {"total": WRITES // 2, "channel": WRITES // 2, "log": log}
    assert len(orders.written) == WRITES
