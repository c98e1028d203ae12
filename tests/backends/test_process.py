"""How a backend starts, logs and stops: the other has the same files, as a test says."""

import asyncio
import json
import re
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from subprocess import Popen
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

Launch = Callable[..., tuple[Popen[str], str]]
Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.parametrize("backend", ["backend_v2"], scope="session")


async def _get(url: str, **headers: str) -> tuple[str, Any]:
    """Return the request id and the JSON of a GET."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with ClientSession() as session, session.get(url, headers=names) as response:
        return response.headers["X-Request-Id"], await response.json()


def _stop(process: Popen[str], how: signal.Signals = signal.SIGTERM) -> list[dict[str, Any]]:
    """Stop the process, which must exit with 0 and say nothing on stderr; return its log."""
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    ("name", "value", "shown", "right"),
    [
        ("{}_PORT", "abc", "'abc'", "a whole number from 0"),
        ("{}_PORT", "65536", "'65536'", "to 65535"),
        ("{}_PORT", "", "''", "a whole number"),
        ("{}_PORT", "tcp://10.0.0.1:80", "'tcp://10.0.0.1:80'", "write enableServiceLinks: false"),
        ("{}_HOST", "", "''", "an address or a host name"),
        ("{}_GRACE", "0", "'0'", "a number of seconds greater than 0"),
        ("{}_GRACE", "nan", "'nan'", "a number of seconds"),
        ("PERSON_LAST_NAME", b"\xff", r"'\udcff'", "text in UTF-8"),
    ],
)
def test_a_bad_setting_is_named(
    backend: str, refused: Run, name: str, value: str | bytes, shown: str, right: str
) -> None:
    variable = name.format(backend.upper())
    status, out, err = refused({variable: value})
    assert (status, out) == (2, "")
    assert err.startswith(f"{backend}: {variable}={shown}: must be ")
    assert right in err
    assert err.count("\n") == 1


def test_a_taken_port_is_named(backend: str, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = run({f"{backend.upper()}_PORT": str(port)})
    assert (status, out) == (1, "")
    assert err.startswith(f"{backend}: cannot listen on 127.0.0.1:{port}: ")
    assert "address already in use" in err
    assert err.count("\n") == 1


def test_a_host_that_cannot_be_one_is_named(backend: str, run: Run) -> None:
    status, _, err = run({f"{backend.upper()}_HOST": "a..b"})
    assert status == 1
    assert err.startswith(f"{backend}: cannot listen on a..b:0: ")
    assert err.count("\n") == 1


def test_a_misspelt_setting_is_reported(backend: str, run: Run) -> None:
    program = backend.upper()
    misspelt = {f"{program}_PROT": "hush", "PERSON_FIRSTNAME": "hush"}
    others = {f"{program}_SERVICE_PORT": "80", f"{program}_API_PORT": "tcp://h", "PERSON_V1": ""}
    _, out, _ = run({f"{program}_HOST": "a..b", **misspelt, **others})
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["level"], line["event"], line["variable"]) for line in lines] == [
        ("warning", "variable_unknown", name) for name in misspelt
    ]
    assert f"did you mean {program}_PORT?" in lines[0]["reason"]
    assert "did you mean PERSON_FIRST_NAME?" in lines[1]["reason"]
    assert "hush" not in out


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_whatever_clients_hold_open(launch: Launch, how: Any) -> None:
    process, url = launch({})
    address = urlsplit(url).hostname, urlsplit(url).port
    idle, half = [await asyncio.open_connection(*address) for _ in range(2)]
    idle[1].write(b"GET /person HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await idle[0].readline() == b"HTTP/1.1 200 OK\r\n"
    half[1].write(b"GET /person HTTP/1.1\r\nHost")
    log = await asyncio.to_thread(_stop, process, how)
    assert [entry["event"] for entry in log] == ["request", "stopping", "stopped"]
    for reader, writer in (idle, half):
        await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await writer.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


async def test_a_body_that_never_ends_is_cut_off_after_the_grace(
    backend: str, launch: Launch
) -> None:
    process, url = launch({f"{backend.upper()}_GRACE": "0.2"})
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    writer.write(b"POST /person HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 405 ")
    start = asyncio.get_running_loop().time()
    await asyncio.to_thread(_stop, process)
    assert asyncio.get_running_loop().time() - start < 9  # the server lingers 10 s for a body
    writer.close()
    await writer.wait_closed()


async def test_every_request_but_health_is_one_json_line(backend: str, launch: Launch) -> None:
    process, url = launch({})
    given, _ = await _get(f"{url}/person?a=b", X_Request_Id="Trace/1:a+b=@c~d._-")
    made, _ = await _get(f"{url}/nothing", X_Request_Id="not sane")
    other, _ = await _get(f"{url}/person", X_Request_Id="x" * 129)
    await _get(f"{url}/healthz")
    await _get(f"{url}/readyz")
    assert given == "Trace/1:a+b=@c~d._-"
    assert re.fullmatch("[0-9a-f]{32}", made)
    assert re.fullmatch("[0-9a-f]{32}", other)
    log = _stop(process)
    requests = [entry for entry in log if entry["event"] == "request"]
    assert [(entry["request_id"], entry["path"], entry["status"]) for entry in requests] == [
        (given, "/person", 200),
        (made, "/nothing", 404),
        (other, "/person", 200),
    ]
    for entry in log:
        assert (entry["program"], entry["level"]) == (backend, "info")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])
        age = datetime.now(UTC) - datetime.fromisoformat(entry["time"])
        assert timedelta(seconds=-1) < age < timedelta(minutes=1)
    assert all(entry["method"] == "GET" and entry["duration_ms"] >= 0 for entry in requests)


async def test_what_is_not_http_is_logged_as_the_clients_mistake(launch: Launch) -> None:
    process, url = launch({})
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    writer.write(b"GET /person HTTP/1.1\r\nno colon\r\n\r\n")
    await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    bad, *_ = _stop(process)
    assert (bad["event"], bad["level"], bad["status"]) == ("bad_http", "info", 400)
    assert "Invalid header token" in bad["error"]
    assert "traceback" not in bad


async def test_a_body_that_cannot_be_decoded_is_skipped(launch: Launch) -> None:
    process, url = launch({})
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    head = (
        b"POST /person HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n"
    )
    writer.write(head)
    assert (await reader.readline()).startswith(b"HTTP/1.1 405 ")
    writer.write(b"not gzipped!GET /person HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"HTTP/1.1 200 OK" in await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    log = _stop(process)
    assert [entry["level"] for entry in log] == ["info"] * 4  # two requests, stopping, stopped
