"""How many calls a request takes: what its CPU time follows, and the same on every machine.

Counted are calls of functions of the gateway, and the calls of built-in functions that they make,
over transports without sockets. A bound that is passed shows code that a request did not run
before; one that is undercut by much should be lowered. What an operator or a constructor calls is
not seen here and may cost more: `column[state]` of a subclass of dict, or `Plan(...)`. The
instructions of a request, which show that too, are in benchmarks/README.md.
"""

import asyncio
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

import gateway
from gateway.observe import log
from gateway.proxy.recorder import Recorder
from gateway.proxy.request_log import RequestLog
from tests.gateway.kit import rules
from tests.gateway.proxy.wires import Gateway

ROOT = str(Path(gateway.__file__).parent)
PORT = 1
BODY = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
WRITTEN = b'{"name":"Bob Charlie"}'
ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 21 Nov 2026 21:13:44 GMT\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n%b"
    % (len(BODY), BODY)
)
CARRYING = "- to_header: { field: name.lastName, header: X-Last-Name }"
SHADOWED = rules(PORT).replace('"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }')
TRACE = (
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n"
    "tracestate: congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
)
ENDING = "version_header: X-Version\nclients: { by: [{ header: X-Client }] }\n" + rules(
    PORT
).replace(
    '"2": { service: s }',
    '"2": { service: s, lifecycle: { deprecated: 2026-01-01, sunset: 2098-12-31 },'
    ' brownout: { windows: [{ at: "0 9 * * 1", minutes: 10, from: 2098-01-01 }] } }',
)
CASES = {
    # case: rules, method and target, further field, whether it is busy, Python calls, C calls
    "path": (rules(PORT), "GET /v2/person", "A: b", False, 81, 92),
    "query": (rules(PORT), "GET /param?version=2", "A: b", False, 83, 99),
    "header": (rules(PORT), "GET /header", "X-API-VERSION: 2", False, 82, 94),
    "accept": (rules(PORT), "GET /accept", "Accept: application/vnd.t-v2+json", False, 83, 101),
    "converted": (rules(PORT, via=True), "GET /v1/person", "A: b", False, 95, 134),
    "converted with its fields": (
        rules(PORT, via=True, changes=CARRYING),
        *("GET /v1/person", "A: b", False, 228, 262),  # the field is checked: one call
    ),
    "with a body": (rules(PORT), "POST /v2/person", "A: b", False, 86, 97),
    "converted, with a body": (
        rules(PORT, via=True),
        *("POST /v1/person", "A: b", False, 120, 169),
    ),
    "of a client, to a version that ends": (
        ENDING,
        *("GET /v2/person", "X-Client: acme", False, 86, 106),  # Vary and exposed fields
    ),
    "refused": (rules(PORT), "GET /v3/person", "A: b", False, 52, 64),
    "traced, not sampled": (
        rules(PORT) + "tracing: { ratio: 0 }\n",
        *("GET /v2/person", "A: b", False, 82, 95),
    ),
    "traced, not sampled, as its caller has it": (
        rules(PORT) + "tracing: { ratio: 1 }\n",
        *("GET /v2/person", TRACE, False, 83, 96),
    ),
    "the same without traces": (rules(PORT), "GET /v2/person", TRACE, False, 81, 93),
    "shadow that gives way": (SHADOWED, "GET /v1/person", "A: b", True, 84, 94),
    "shadowed": (SHADOWED, "GET /v1/person", "A: b", False, 347, 354),
}


@pytest.mark.parametrize(
    ("text", "target", "field", "busy", "python", "builtin"), CASES.values(), ids=CASES
)
async def test_calls(
    text: str,
    target: str,
    field: str,
    busy: bool,
    python: int,
    builtin: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The log writes each millisecond once as text: here they are all the same one.
    clock = SimpleNamespace(**{**vars(time), "time": lambda: 0.0})
    monkeypatch.setattr(log, "time", clock)
    loop = asyncio.get_running_loop()
    lines, recorder = RequestLog(loop), Recorder(loop, lambda _: None)

    def record(exchange: Any) -> None:
        lines.record(exchange, log.now())
        recorder.record(exchange)

    served = Gateway(text, {PORT: lambda _: ANSWER}, record)
    served.shadows.load._share = 0.0 if busy else 1.0
    served.shadows.load._due = float("inf")
    request = f"{target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{field}\r\n\r\n".encode()
    if target.startswith("POST"):
        framed = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(WRITTEN)
        request = request[:-2] + framed + WRITTEN
    for _ in range(3):  # whatever is remembered from the first requests
        answer = await served.ask(request)
    assert answer.startswith(b"HTTP/1.1 404" if "v3" in target else b"HTTP/1.1 200")
    # A timer may ring meanwhile, so that the least of several counts.
    counts = [await counted(served, request) for _ in range(10)]
    served.close()
    lines.flush()
    recorder.flush()
    assert min(count["call"] for count in counts) <= python
    assert min(count["c_call"] for count in counts) <= builtin


async def counted(served: Gateway, request: bytes) -> Counter[str]:
    """Return how many calls the gateway makes for a request."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_filename.startswith(ROOT):
            calls[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        await served.ask(request)
    finally:
        sys.setprofile(before)
    return calls
