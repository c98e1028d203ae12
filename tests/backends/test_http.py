"""What the backends answer, over a socket."""

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession
from jsonschema import Draft202012Validator

PERSON: dict[str, Any] = {
    "backend_v1": {"name": "Bob Charlie"},
    "backend_v2": {"name": {"firstName": "Bob", "lastName": "Charlie"}},
}
PATHS = ["/person", "/healthz", "/readyz", "/openapi.json"]


async def _schema(session: ClientSession, name: str) -> Draft202012Validator:
    """Return the validator of a schema of the published document, its references resolved."""
    async with session.get("/openapi.json") as response:
        document = await response.json()
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return Draft202012Validator(schema)


async def _exchange(url: str, request: bytes) -> bytes:
    """Send these bytes and return all that comes back until the backend closes."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("path", "answer"),
    [("/person", None), ("/healthz", {"status": "ok"}), ("/readyz", {"status": "ready"})],
)
async def test_get(backend: str, session: ClientSession, path: str, answer: Any) -> None:
    async with session.get(path) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "application/json"
        assert await response.json() == (answer or PERSON[backend])


async def test_a_query_changes_nothing(backend: str, session: ClientSession) -> None:
    async with session.get("/person?version=1&version=2") as response:
        assert await response.json() == PERSON[backend]


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_get_without_the_body(session: ClientSession, path: str) -> None:
    async with session.get(path) as get, session.head(path) as head:
        assert head.status == 200
        assert await head.read() == b""
        for name in ("Content-Type", "Content-Length", "ETag", "Cache-Control"):
            assert head.headers[name] == get.headers[name]


@pytest.mark.parametrize("path", PATHS)
async def test_options(session: ClientSession, path: str) -> None:
    async with session.options(path) as response:
        assert response.status == 204
        assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
        assert await response.read() == b""


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
async def test_other_methods(session: ClientSession, method: str, path: str) -> None:
    async with session.request(method, path) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
        problem = await _problem(session, response)
        assert (problem["code"], problem["instance"]) == ("method_not_allowed", path)
        assert method in problem["detail"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
@pytest.mark.parametrize("path", ["/", "/persons", "/person/", "/v1/person"])
async def test_unknown_paths(session: ClientSession, method: str, path: str) -> None:
    async with session.request(method, path) as response:
        assert response.status == 404
        assert response.content_type == "application/problem+json"
        if method != "HEAD":
            problem = await _problem(session, response)
            assert (problem["code"], problem["instance"]) == ("not_found", path)


async def _problem(session: ClientSession, response: Any) -> dict[str, Any]:
    """Return the response's problem, which must be one by the schema and agree with the status."""
    assert response.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = await response.json()
    (await _schema(session, "Problem")).validate(problem)
    assert problem["type"] == "about:blank"
    assert problem["status"] == response.status
    assert problem["title"] == response.reason
    return problem


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("pattern", ["{}", "W/{}", '"x",\t{}', "*"])
async def test_a_current_entity_tag_saves_the_body(
    session: ClientSession, method: str, pattern: str
) -> None:
    async with session.get("/person") as response:
        etag = response.headers["ETag"]
    assert re.fullmatch('"[0-9a-f]{32}"', etag)
    condition = {"If-None-Match": pattern.format(etag)}
    async with session.request(method, "/person", headers=condition) as response:
        assert response.status == 304
        assert await response.read() == b""
        assert response.headers["ETag"] == etag
        assert response.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("condition", ["", '"x"', '"*"', "garbage", '"x", W/"y"'])
async def test_another_entity_tag_gets_the_body(
    backend: str, session: ClientSession, condition: str
) -> None:
    async with session.get("/person", headers={"If-None-Match": condition}) as response:
        assert response.status == 200
        assert await response.json() == PERSON[backend]


async def test_several_if_none_match_lines_are_one_list(session: ClientSession) -> None:
    async with session.get("/person") as response:
        etag = response.headers["ETag"]
    lines = [("If-None-Match", '"x"'), ("If-None-Match", etag)]
    async with session.get("/person", headers=lines) as response:
        assert response.status == 304


async def test_openapi_describes_the_answers(backend: str, session: ClientSession) -> None:
    async with session.get("/openapi.json") as response:
        document = await response.json()
    assert document["openapi"].startswith("3.1.")
    assert document["info"] == {"title": backend, "version": backend[-1]}
    assert list(document["paths"]) == ["/person", "/healthz", "/readyz"]
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    refusal = document["components"]["responses"]["Problem"]["content"]
    assert refusal == {"application/problem+json": {"schema": _ref("Problem")}}
    for path, item in document["paths"].items():
        responses = item["get"]["responses"]
        assert responses["default"] == {"$ref": "#/components/responses/Problem"}
        schema = responses["200"]["content"]["application/json"]["schema"]
        validator = Draft202012Validator({**schema, "components": document["components"]})
        async with session.get(path) as response:
            validator.validate(await response.json())
        assert not validator.is_valid({})


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


async def test_openapi_refuses_the_other_version(backend: str, session: ClientSession) -> None:
    validator = await _schema(session, "Person")
    assert [name for name in PERSON if validator.is_valid(PERSON[name])] == [backend]


@pytest.mark.parametrize(
    "head",
    [
        "GARBAGE",
        "FROB /person HTTP/1.1\r\nHost: x",
        "GET http://[::1/ HTTP/1.1\r\nHost: x",
        "GET http://h:99999/person HTTP/1.1\r\nHost: x",
        "GET /person HTTP/1.1\r\nHost: x\r\nno colon",
        "GET /person HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2",
        f"GET /person HTTP/1.1\r\nHost: x\r\nX: {'a' * 9000}",
    ],
)
async def test_what_is_not_http_is_a_400_and_no_traceback(url: str, head: str) -> None:
    answer = await _exchange(url, f"{head}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET http://elsewhere/person HTTP/1.1", 200),
        ("GET /person HTTP/1.1\r\nExpect: the-unexpected", 200),
        ("GET /%70erson HTTP/1.1", 404),
        ("GET /../person HTTP/1.1", 404),
        ("GET //person HTTP/1.1", 404),
        ("GET //[ HTTP/1.1", 404),
        ("OPTIONS * HTTP/1.1", 404),
    ],
)
async def test_odd_requests_are_answered(url: str, head: str, status: int) -> None:
    request = f"{head}\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = await _exchange(url, request.encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
