"""Python functions with a time limit, which also ends C code; no failure ends a worker."""

import asyncio
import json
import signal
import time
from asyncio import StreamReader, StreamWriter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, Program, Scripted, StartGateway, StartUpstream
from tests.gateway.talk import Answer, ask, connect, get, soon

CODE = """\
import os, re, signal, sys, time
from decimal import Decimal
from pathlib import Path
from gateway.convert import Refused

class Odd:
    pass

def up(value):
    match value:
        case "backtrack":
            Path(__file__).with_name(f"{os.getpid()}.backtracks").touch()
            return bool(re.match(r"(a+)+$", "a" * 40 + "b"))
        case "exit":
            sys.exit()
        case "end":
            os._exit(0)
        case "interrupt":
            raise KeyboardInterrupt
        case "generator":
            raise GeneratorExit
        case "memory":
            raise MemoryError
        case "recursion":
            return up("recursion")
        case "odd":
            return Odd()
        case "function":
            return lambda: 1
        case "close":
            os.close(1)
            sys.stdout.close()
            return "closed"
        case "all":
            os.closerange(3, 1000)
            return "closed"
        case "pid":
            return os.getpid()
        case ["refuse", *_]:
            raise Refused("the \\n second element is odd", "/1")
        case "refuse":
            raise Refused("a text is odd")
        case "slow pid":
            time.sleep(1)
            return os.getpid()
    return value

def down(value):
    return value

def plain(value, message):
    return f"{message.method} {message.operation} {sorted(message.fields)}"
"""
RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        changes:
          - python: {{ field: a, up: "slow:up", down: "slow:down"{limit} }}
          - python: {{ field: b, up: "slow:plain", down: "slow:plain"{limit} }}
"""


async def echo(scripted: Scripted, reader: StreamReader, writer: StreamWriter) -> None:
    while await scripted.take(reader):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        )


def causes(program: Program) -> str:
    return " ".join(str(line.get("cause", "")) for line in program.log("request"))


def detail_of(answer: Answer) -> str:
    return str(json.loads(answer.body)["detail"])


def descriptors(process: int) -> list[Path]:
    return [*Path(f"/proc/{process}/fd").iterdir()]


def body_of(value: object, path: str = "/v1/a", **beside: object) -> bytes:
    body = json.dumps({"a": value, **beside}).encode()
    fields = "Content-Type: application/json", f"Content-Length: {len(body)}"
    return ask(f"POST {path}", *fields, body=body)


async def post(to: Program, value: object, path: str = "/v1/a", **beside: object) -> Answer:
    async with connect(to) as client:
        client.send(body_of(value, path, **beside))
        return await client.answer()


@pytest.mark.parametrize("limit", [", timeout: 0.5", ""], ids=["process", "worker"])
async def test_no_failure_of_a_function_ends_a_worker(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path, limit: str
) -> None:
    (tmp_path / "slow.py").write_text(CODE)
    service = await upstream(echo)
    rules = RULES.format(port=service.port, limit=limit)
    program = gateway(rules, PYTHONPATH=f"{ROOT}:{tmp_path}")
    refused = ["exit", "interrupt", "generator", "memory", "recursion", "odd", "function"]
    for value in [*refused, *(["end", "all"] if limit else [])]:
        answer = await post(program, value)
        assert (answer.status, b"unconvertible_request" in answer.body) == (400, True), value
        assert (await post(program, "fine", b="old")).status == 200
    assert b"fine" in service.requests[-1]
    assert b"POST /v{version}/a ['a', 'b']" in service.requests[-1]
    assert program.process.poll() is None
    assert not program.log("worker_died")
    await soon(lambda: "raised KeyboardInterrupt at slow.py:" in causes(program))
    if limit:
        # The function has closed only the standard output of its own process.
        assert (await post(program, "close")).status == 200
        await soon(lambda: "ended its process" in causes(program))


async def refused_list(scripted: Scripted, reader: StreamReader, writer: StreamWriter) -> None:
    body = b'{"a": ["refuse", 1]}'
    while await scripted.take(reader):
        head = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


@pytest.mark.parametrize("limit", [", timeout: 2", ""], ids=["process", "worker"])
async def test_a_function_refuses_with_a_reason_that_the_client_sees(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path, limit: str
) -> None:
    (tmp_path / "slow.py").write_text(CODE)
    service = await upstream(refused_list)
    rules = RULES.format(port=service.port, limit=limit).replace("slow:down", "slow:up")
    query = '        query: [ python: { field: q, up: "slow:up", down: "slow:up" } ]\n'
    program = gateway(rules + query, PYTHONPATH=f"{ROOT}:{tmp_path}")
    answer = await post(program, ["refuse", 2])
    detail = "The request does not fit this version: /a/1: the \\n second element is odd."
    assert (answer.status, detail_of(answer)) == (400, detail)
    answer = await post(program, "fine")
    detail = "The backend's response cannot be converted to this version: /a/1: the \\n second"
    assert (answer.status, json.loads(answer.body)["serviceStatus"]) == (502, 201)
    assert detail_of(answer) == f"{detail} element is odd."
    answer = await post(program, "fine", "/v1/a?q=refuse")
    assert answer.status == 400
    assert detail_of(answer).endswith("the query parameter 'q': a text is odd.")
    answer = await post(program, "exit")
    assert detail_of(answer).endswith("/a: the Python function rejected the value.")
    await soon(lambda: causes(program).count("slow:up refused it: the \\n second") == 2)


async def test_a_time_limit_ends_a_function_in_c_code(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    """A backtracking regular expression is ended, and it delays no other request."""
    (tmp_path / "slow.py").write_text(CODE)
    service = await upstream(echo)
    rules = RULES.format(port=service.port, limit=", timeout: 0.3")
    program = gateway(rules, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (await post(program, "fine")).status == 200  # this starts a process
    slow = [asyncio.create_task(post(program, "backtrack")) for _ in range(2)]
    await asyncio.sleep(0.1)
    begin = time.monotonic()
    assert (await get(program, "GET /v1/b")).status == 404
    assert time.monotonic() - begin < 10
    for answer in await asyncio.gather(*slow):  # the function itself would take hours
        assert answer.status == 400
        assert b"the Python functions took longer than 0.6 s" in answer.body
    await soon(lambda: "took longer than 0.6 s, in slow:up" in causes(program))
    assert (await post(program, "fine")).status == 200


async def test_the_processes_of_functions_end_with_the_gateway(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    """This also holds if the gateway is killed while a function runs."""
    (tmp_path / "slow.py").write_text(CODE)
    service = await upstream(echo)
    rules = RULES.format(port=service.port, limit=", timeout: 0.3")
    program = gateway(rules, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (await post(program, "pid")).status == 200
    asked = json.loads(service.requests[-1].partition(b"\r\n\r\n")[2])
    number = asked["a"]
    assert number != program.process.pid
    assert len(descriptors(number)) <= 5  # no listening socket
    slow = asyncio.create_task(post(program, "backtrack"))
    await asyncio.sleep(0.1)
    program.process.send_signal(signal.SIGKILL)
    with pytest.raises(asyncio.IncompleteReadError):
        await slow

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{number}/stat").read_text().split()[2] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    await soon(is_gone)


LEFT = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  patient:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ python: {{ field: a, up: "slow:up", down: "slow:down", timeout: 30 }} ]
  hasty:
    endpoints: [ {{ path: "/v{{version}}/hasty", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ python: {{ field: a, up: "slow:up", down: "slow:down", timeout: 1 }} ]
"""


async def test_clients_that_leave_do_not_end_function_processes(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    """The function continues to its end or time limit. Queued calls are dropped at once.

    Other clients do not wait for a process to start.
    """
    (tmp_path / "slow.py").write_text(CODE)
    service = await upstream(echo)
    program = gateway(LEFT.format(port=service.port), PYTHONPATH=f"{ROOT}:{tmp_path}")

    async def processes() -> set[int]:
        service.requests.clear()
        answers = await asyncio.gather(*(post(program, "slow pid") for _ in range(4)))
        assert [answer.status for answer in answers] == [200] * 4
        bodies = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in service.requests]
        return {body["a"] for body in bodies}

    begun = await processes()
    assert len(begun) == 4
    for _ in range(2):
        async with AsyncExitStack() as clients:
            for _ in range(8):
                client = await clients.enter_async_context(connect(program))
                client.send(body_of("slow pid"))
                clients.callback(client.cut)
            assert (await get(program, "GET /v1/b")).status == 404  # the others are read by now
    assert await processes() == begun
    async with AsyncExitStack() as clients:
        for _ in range(16):  # the number of threads for functions
            client = await clients.enter_async_context(connect(program))
            client.send(body_of("backtrack", "/v1/hasty"))
            clients.callback(client.cut)
        assert (await get(program, "GET /v1/b")).status == 404  # the others are read by now
        await soon(lambda: len([*tmp_path.glob("*.backtracks")]) >= 4)
    await soon(lambda: sum("hasty" in line["path"] for line in program.log("request")) == 16)
    # It is refused after 5 s without a free process, and at once without a thread.
    assert (await post(program, "fine")).status == 200
    assert not begun & await processes()
