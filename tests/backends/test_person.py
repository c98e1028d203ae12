"""The two person services: their responses, and how they start and stop."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from jsonschema import Draft202012Validator

from tests.fork_server import fork_server

StartClient = Callable[[web.Application], Awaitable[TestClient[web.Request, web.Application]]]
BACKENDS = ["backend_v1", "backend_v2"]
PERSON: dict[str, Any] = {
    "backend_v1": {"name": "Bob Charlie"},
    "backend_v2": {"name": {"firstName": "Bob", "lastName": "Charlie"}},
}
PATHS = ["/person", "/healthz", "/readyz", "/openapi.json"]

pytestmark = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture
async def client(
    backend: str, aiohttp_client: StartClient
) -> TestClient[web.Request, web.Application]:
    return await aiohttp_client(import_module(f"{backend}.app").application("Bob", "Charlie"))


@pytest.mark.parametrize(
    ("path", "body"),
    [("/person", None), ("/healthz", {"status": "ok"}), ("/readyz", {"status": "ready"})],
)
async def test_get_sends_json(
    backend: str, client: TestClient[web.Request, web.Application], path: str, body: object
) -> None:
    response = await client.get(f"{path}?version=1")

    assert (response.status, response.content_type) == (200, "application/json")
    assert await response.json() == (body or PERSON[backend])


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_get_without_the_body_and_options_lists_the_methods(
    client: TestClient[web.Request, web.Application], path: str
) -> None:
    get, head = await client.get(path), await client.head(path)
    options = await client.options(path)

    assert (head.status, await head.read()) == (200, b"")
    assert head.headers["Content-Length"] == get.headers["Content-Length"]
    assert (options.status, options.headers["Allow"]) == (204, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/person", 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("GET", "/", 404, "not_found"),
        ("POST", "/v1/person", 404, "not_found"),
    ],
)
async def test_a_refusal_is_a_problem_detail(
    client: TestClient[web.Request, web.Application], method: str, path: str, status: int, code: str
) -> None:
    response = await client.request(method, path, headers={"X-Request-Id": "r1"})

    assert (response.status, response.content_type) == (status, "application/problem+json")
    assert ("Allow" in response.headers) == (status == 405)
    assert response.headers["X-Request-Id"] == "r1"
    problem = await response.json()
    assert problem.pop("title")
    assert problem.pop("detail")
    assert problem == {"type": "about:blank", "status": status, "instance": path, "code": code}


async def test_the_openapi_document_describes_only_the_person_of_its_version(
    backend: str, client: TestClient[web.Request, web.Application]
) -> None:
    document = await (await client.get("/openapi.json")).json()

    assert document["info"] == {"title": backend, "version": backend[-1]}
    content = document["paths"]["/person"]["get"]["responses"]["200"]["content"]
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    validator = Draft202012Validator(schema)
    assert [name for name in BACKENDS if validator.is_valid(PERSON[name])] == [backend]


@pytest.mark.parametrize(
    ("first", "last", "joined"),
    [
        ("Ada", "Lovelace", "Ada Lovelace"),
        ("Ada", "", "Ada"),
        ("", "Lovelace", "Lovelace"),
        ("Žofie", "木村 🦊", "Žofie 木村 🦊"),
    ],
)
def test_a_person_has_a_first_and_a_last_name(
    backend: str, first: str, last: str, joined: str
) -> None:
    found = import_module(f"{backend}.app").person(first, last).model_dump()
    apart = {"firstName": first, "lastName": last}
    assert found == {"name": joined if backend == "backend_v1" else apart}


async def test_a_request_with_a_path_and_id_that_are_not_utf_8_gets_a_response(
    client: TestClient[web.Request, web.Application],
) -> None:
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(
        b"GET /\xff HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\xff\r\nConnection: close\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.0 400 "))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_program_listens_until_a_signal_and_exits_with_0(
    backend: str, how: signal.Signals
) -> None:
    environment = os.environ | {f"{backend.upper()}_PORT": "0", "PERSON_FIRST_NAME": "Ada"}
    command = [fork_server().python, "-m", backend]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        listening = json.loads(process.stdout.readline())
        assert listening["event"] == "listening"
        assert listening["url"].startswith("http://127.0.0.1:")
        process.send_signal(how)
        assert json.loads(process.stdout.readline())["event"] == "stopped"
        assert process.wait(60) == 0


@pytest.mark.parametrize(("name", "value"), [("PORT", "x"), ("PORT", "99999"), ("GRACE", "soon")])
def test_an_invalid_setting_is_reported_in_one_line(backend: str, name: str, value: str) -> None:
    setting = {f"{backend.upper()}_PORT": "0", f"{backend.upper()}_{name}": value}
    program = subprocess.run(
        [fork_server().python, "-m", backend],
        env=os.environ | setting,
        capture_output=True,
        text=True,
    )
    assert program.returncode == 1
    assert program.stderr.startswith(f"{backend}: ")
    assert program.stderr.count("\n") == 1
    assert value in program.stderr
