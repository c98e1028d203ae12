"""The log: a JSON line for every request, without secrets."""

import asyncio
import json
import os
import re
import socket
import struct
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.kit import ROOT, Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import (
    OK,
    Client,
    Reader,
    Writer,
    ask,
    connect,
    get,
    logged,
    reply,
    reset,
    soon,
)

PERSON = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 41\r\n\r\n"
    b'{"name":{"firstName":"A","lastName":"B"}}'
)
VERSIONED = {"api": "person", "service": "s", "status": 200}

# The request line and fields, and a part of the expected log line.
LINES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "path, converted": (
        ["GET /v1/person"],
        VERSIONED
        | {
            "version": "1",
            "chosen_by": "path",
            "endpoint": "/v{version}/person",
            "converted": True,
            "bytes_sent": 14,
        },
    ),
    "path": (
        ["GET /v2/person"],
        VERSIONED | {"version": "2", "chosen_by": "path", "converted": False, "bytes_sent": 41},
    ),
    "query": (
        ["GET /param?version=2"],
        VERSIONED | {"version": "2", "chosen_by": "query", "path": "/param"},
    ),
    "header": (
        ["GET /header", "X-API-VERSION: 2"],
        VERSIONED | {"version": "2", "chosen_by": "header", "method": "GET"},
    ),
    "accept": (
        ["GET /accept", "Accept: application/vnd.t-v1+json"],
        VERSIONED | {"version": "1", "chosen_by": "accept", "converted": True},
    ),
    "HEAD": (["HEAD /v2/person"], VERSIONED | {"version": "2", "method": "HEAD", "bytes_sent": 0}),
    "without versions": (
        ["POST /plain", "Content-Length: 0"],
        {"api": "plain", "version": None, "chosen_by": None, "service": "s", "converted": False},
    ),
    "no endpoint": (["GET /nowhere"], {"status": 404, "code": "not_found", "path": "/nowhere"}),
    "no version": (
        ["GET /param"],
        {"status": 400, "code": "version_missing", "api": "person", "endpoint": "/param"},
    ),
    "unknown version": (["GET /v3/person"], {"status": 404, "code": "version_unknown"}),
}


async def test_a_request_line_has_the_address_of_a_target_that_is_a_host_name(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """The name `orders.localhost` stands for the two addresses of `localhost` (RFC 6761)."""
    port = (await upstream(OK)).port
    for host, address in (("orders.localhost", "127.0.0.1"), ("127.0.0.1", None)):
        program = reloaded(rules(port).replace("http://127.0.0.1", f"http://{host}"))
        answer = await get(program)
        assert answer.status == 200
        line = await logged(program, answer["x-request-id"])
        assert (line["target"], line.get("address")) == (f"{host}:{port}", address)


@pytest.mark.parametrize(("request_lines", "expected"), LINES.values(), ids=LINES)
async def test_a_request_is_logged_as_one_line_with_these_fields(
    request_lines: list[str], expected: dict[str, Any], standing: Program, through: StartUpstream
) -> None:
    scripted = await through(PERSON, via=True)
    before = datetime.now(UTC)
    answer = await get(standing, *request_lines)
    line = await logged(standing, answer["x-request-id"])
    assert {name: line[name] for name in expected} == expected
    assert (line["level"], line["event"], line["program"]) == ("info", "request", "gateway")
    assert line["peer"] == "127.0.0.1"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert abs(datetime.fromisoformat(line["time"]) - before) < timedelta(seconds=10)
    assert 0 < line["duration_ms"] < 10_000
    if "service" in expected:
        assert line["target"] == f"127.0.0.1:{scripted.port}"
        assert 0 < line["upstream_ms"] < line["duration_ms"]


async def test_log_times_separate_the_service_from_the_whole_request(
    standing: Program, through: StartUpstream
) -> None:
    come = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        await asyncio.sleep(0.1)
        writer.write(OK.removesuffix(b"ok"))
        await come.wait()
        await asyncio.sleep(0.2)
        writer.write(b"ok")

    await through(script)
    async with connect(standing) as client:
        client.send(ask("GET /plain", "X-Request-Id: timed", "Connection: close"))
        assert (await client.head()).status == 200
        come.set()
        assert await client.rest() == b"ok"
    line = await logged(standing, "timed")
    assert 100 <= line["upstream_ms"] < line["duration_ms"] - 200


async def test_a_fault_of_the_service_is_logged_with_its_cause(
    standing: Program, through: StartUpstream
) -> None:
    """The log has the address and the cause; the client gets neither."""
    scripted = await through(reply(b"nonsense\r\n\r\n"))
    answer = await get(standing)
    line = await logged(standing, answer["x-request-id"])
    assert (line["status"], line["code"], line["service"]) == (502, "upstream_protocol", "s")
    assert line["cause"].startswith(f"127.0.0.1:{scripted.port}: ")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("abc-123", True),
        ("urn:uuid:0f/a~b+c=d@e.f_g", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("with space", False),
        ('quote"', False),
        ("\xe9", False),
        ("tab\tbed", False),
        ("{}", False),
        ("a,b", False),
        ("", False),
    ],
)
async def test_a_valid_request_id_is_kept_and_an_invalid_one_is_replaced(
    given: str, kept: bool, standing: Program, through: StartUpstream
) -> None:
    scripted = await through(OK)
    answer = await get(standing, "GET /plain", f"X-Request-Id: {given}")
    used = answer["x-request-id"]
    assert (used == given) == kept
    assert re.fullmatch(r"[A-Za-z0-9._~:/+=@-]{1,128}", used)
    assert f"\r\nX-Request-Id: {used}\r\n".encode() in scripted.requests[0]
    assert scripted.requests[0].lower().count(b"x-request-id") == 1
    assert (await logged(standing, used))["status"] == 200


async def test_every_request_has_a_different_id(standing: Program, through: StartUpstream) -> None:
    await through(b"HTTP/1.1 200 OK\r\nX-Request-Id: theirs\r\nContent-Length: 2\r\n\r\nok")
    ids = [(await get(standing))["x-request-id"] for _ in range(20)]
    ids += [(await get(standing, "GET /nowhere"))["x-request-id"] for _ in range(20)]
    assert len(set(ids)) == 40
    for each in ids:
        await logged(standing, each)  # each id has its own log line


async def test_no_secret_is_logged(standing: Program, upstream: StartUpstream) -> None:
    secret = "hunter2"  # noqa: S105
    fields = (f"Authorization: Bearer {secret}", f"Cookie: a={secret}", f"X-Api-Key: {secret}")
    body = b'{"password":"hunter2"}'
    responses: list[bytes] = [
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=hunter2\r\nContent-Length: 7\r\n\r\nhunter2",
        b"HTTP/1.1 200 OK\r\nContent-Type: a/hunter2\r\nContent-Length: 7\r\n\r\nhunter2",
        b"hunter2\r\n\r\n",
        b"HTTP/1.1 200 hunter2\r\nhunter2: hunter2",
        b"HTTP/1.1 200 OK\r\nhunter2 : hunter2\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"hunter2"',
    ]
    sent = 0
    for response in responses:
        scripted = await upstream(reply(response, "close"))
        standing.reload(rules(scripted.port, via=True))
        for target in ("/plain", "/v1/person", "/param", "/nowhere", "/header"):
            async with connect(standing) as client:
                client.send(
                    ask(
                        f"POST {target}?version={secret}&token={secret}",
                        *fields,
                        f"X-API-VERSION: {secret}",
                        "Content-Type: application/json",
                        f"Content-Length: {len(body)}",
                        "Connection: close",
                        body=body,
                    )
                )
                await client.head()
                sent += 1
    for malformed in (
        f"GET /plain?{secret} HTTP/9.9\r\n{secret}: {secret}\r\n\r\n",
        f"GET /plain?{secret} HTTP/1.1\r\nHost: a\r\n{secret} : {secret}\r\n\r\n",
        f"{secret}\r\n\r\n",
        f"GET {secret} HTTP/1.1\r\nHost: a\r\n\r\n",
        f"GET /plain?{secret} HTTP/1.1\r\nHost: {secret} {secret}\r\n\r\n",
        f"POST /plain?{secret} HTTP/1.1\r\nHost: a\r\nContent-Length: {secret}\r\n\r\n",
        f"POST /plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{secret}\r\n",
        f"GET /plain?{secret} HTTP/1.1\r\nHost: a\r\nExpect: {secret}\r\n\r\n",
        f"GET /plain?{secret * 2000} HTTP/1.1\r\nHost: a\r\n\r\n",
        f"GET http://user:{secret}@a/plain HTTP/1.1\r\nHost: a\r\n\r\n",
        f"GET http://{secret}/plain?{secret}# HTTP/1.1\r\nHost: a\r\n\r\n",
    ):
        async with connect(standing) as client:
            client.send(malformed.encode())
            assert 400 <= (await client.head()).status < 600
            sent += 1
    await soon(lambda: len(standing.log("request")) >= sent)
    assert secret not in standing.output.read_text()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /plain HTTP/1.1\r\n\r\n", 400),
        (b"GET /plain HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /plain HTTP/1.1\r\nHost: a\r\nA: \0\r\n\r\n", 400),
        (b"GET /plain HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n", 400),
        (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET /plain HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /plain HTTP/1.1\r\nHost: a\r\n" + b"A: a\r\n" * 200 + b"\r\n", 431),
    ],
    ids=["TLS", "short", "no host", "two hosts", "NUL", "no colon", "target", "field", "fields"],
)
async def test_an_unreadable_request_is_one_log_line_without_a_traceback(
    data: bytes, status: int, standing: Program
) -> None:
    async with connect(standing) as client:
        client.send(data)
        answer = await client.answer()
        assert await client.rest() == b""
    problem = json.loads(answer.body)
    assert (answer.status, problem["status"]) == (status, status)
    assert answer["content-type"] == "application/problem+json"
    line = await logged(standing, answer["x-request-id"])
    assert (line["status"], line["code"]) == (status, problem["code"])
    assert standing.log("log") == []


async def test_clients_that_leave_without_a_request_are_not_logged(
    standing: Program, through: StartUpstream
) -> None:
    """The clients leave before a request, within one, or without sending a byte."""
    await through(OK)
    address = ("127.0.0.1", standing.port)
    for number in range(200):
        with socket.create_connection(address) as connection:
            if number % 2:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(ask()[: number % 4 * 20])
    for _ in range(20):
        async with connect(standing) as client:
            client.send(ask("POST /plain", "Content-Length: 9") + b"part")
            reset(client.writer)
    assert (await get(standing)).status == 200
    assert standing.log("log") == []


def test_an_unknown_variable_is_logged_once_and_refuses_no_request(gateway: StartGateway) -> None:
    linked = {"GATEWAY_PORT_8080_TCP": "tcp://10.0.0.1:8080", "GATEWAY_SERVICE_HOST": "10.0.0.1"}
    misspelt = {"GATEWAY_PROT": "hush", "GATEWAY_WORKERS": "2"}
    text = rules(1).replace("127.0.0.1:1", "${GATEWAY_TARGET:-127.0.0.1:1}")
    program = gateway(text, GATEWAY_TARGET="127.0.0.1:2", **misspelt, **linked)
    (line,) = program.log("variable_unknown")
    assert (line["level"], line["variable"]) == ("warning", "GATEWAY_PROT")
    assert "did you mean GATEWAY_PORT?" in line["reason"]
    assert b"hush" not in program.output.read_bytes()


async def test_a_log_without_a_reader_delays_no_response(
    tmp_path: Path, upstream: StartUpstream
) -> None:
    """This happens when the log collector has died."""
    config = tmp_path / "gateway.yaml"
    config.write_text(rules((await upstream(OK)).port))
    ports = {"GATEWAY_PORT": "0", "GATEWAY_ADMIN_PORT": "0", "GATEWAY_WORKERS": "1"}
    log, end = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **ports},
        stdout=end,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        os.close(end)
        url = json.loads(await asyncio.to_thread(os.read, log, 10_000))["url"]
        os.close(log)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        client = Client(reader, writer)
        for _ in range(10):
            client.send(ask() * 100)
            for _ in range(100):
                assert (await client.answer()).status == 200
        writer.close()
        assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


async def test_requests_go_to_a_file_which_may_be_renamed_and_events_do_not(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    path = tmp_path / "access.log"
    port = (await upstream(OK)).port
    text = f"access_log: {{ file: {path} }}\n{rules(port)}"
    program = gateway(text, GATEWAY_WORKERS="2")
    sent = []

    async def send_until(begun: Path) -> None:
        while not os.path.exists(begun):  # noqa: PTH110, ASYNC240  # takes microseconds
            sent.append((await get(program))["x-request-id"])
            await asyncio.sleep(0.02)

    await send_until(path)
    for number in (1, 2):
        path.rename(tmp_path / f"old{number}.log")
        await send_until(path)
    program.reload(rules(port), workers=2)
    on_output = (await get(program))["x-request-id"]
    assert (await logged(program, on_output))["status"] == 200
    assert len(program.log("request")) == 1

    def lines() -> list[str]:
        files = tmp_path.glob("*.log")
        text = "".join(file.read_text() for file in files)
        return [json.loads(line)["request_id"] for line in text.splitlines()]

    await soon(lambda: len(lines()) >= len(sent))
    assert sorted(lines()) == sorted(sent)


@pytest.mark.parametrize(
    ("keys", "statuses"),
    [
        ("ratio: 0", {404}),
        ("ratio: 0, errors: false", set()),
        ("ratio: 1, errors: false", {200, 404}),
        ("ratio: 0.5, errors: true", {200, 404}),
    ],
)
async def test_the_log_has_the_share_of_successful_requests_and_the_failed_ones(
    keys: str, statuses: set[int], gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(f"access_log: {{ {keys} }}\n{rules((await upstream(OK)).port)}")
    async with connect(program) as client:
        client.send((ask() + ask("GET /nowhere")) * 40)
        answers = [await client.answer() for _ in range(80)]
    program.process.terminate()
    await asyncio.to_thread(program.process.wait)
    found = [line["status"] for line in program.log("request")]
    assert [answer.status for answer in answers] == [200, 404] * 40
    assert set(found) == statuses
    if keys == "ratio: 0.5, errors: true":
        assert found.count(404) == 40
        assert 4 < found.count(200) < 36  # beyond in one of ten million runs


async def test_requests_are_logged_on_the_output_if_their_file_cannot_be_opened(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    file = tmp_path / "none" / "access.log"
    program = gateway(f"access_log: {{ file: {file} }}\n{rules((await upstream(OK)).port)}")
    assert (await logged(program, (await get(program))["x-request-id"]))["status"] == 200
    (line,) = program.log("access_log_unopened")
    assert (line["file"], "No such file" in line["reason"]) == (str(file), True)
