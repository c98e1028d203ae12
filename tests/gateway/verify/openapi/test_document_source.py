"""Loading of OpenAPI documents in JSON and YAML, from files and URLs."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.verify.openapi.document_source import fetch, read
from gateway.verify.openapi.openapi import DocumentError

TAB = "found character that cannot start any token"
MANY = "v1: its aliases (*name) make more than 1,000,000 values of it; is this right?"
# Each line contains the previous line twice.
BOMB = "a0: &a0 [1, 2]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))
MERGES = "a0: &a0 { k: 1 }\n" + "".join(
    f"a{n}: &a{n} {{ <<: [*a{n - 1}, *a{n - 1}] }}\n" for n in range(1, 30)
)
LARGE = "more than 1,000,000 values; is this the right location?"
DEEP = "v1: nested too deep; is this the right location?"

JSON = b'{"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}'
YAML = b"openapi: 3.0.3\npaths:\n  /a: { get: { description: 2026-12-31 } }\n"


@pytest.mark.parametrize("text", [JSON, YAML])
def test_json_and_yaml_give_the_same_operations(text: bytes) -> None:
    description = read(text, "v1")
    assert [operation.path for operation in description.operations] == ["/a"]


def test_booleans_of_yaml_1_1_such_as_no_and_on_are_strings() -> None:
    """OpenAPI documents are YAML 1.2, whose only booleans are true and false."""
    properties = b"{ no: { enum: [on, true] }, 1: { type: string } }"
    schema = b"{ schema: { type: object, properties: " + properties + b" } }"
    get = b"get: { responses: { 200: { content: { application/json: " + schema + b" } } } }"
    (operation,) = read(b"openapi: 3.1.0\npaths:\n  /a: { " + get + b" }\n", "v1").operations
    assert operation.response(200) == {
        "type": "object",
        "properties": {"no": {"enum": ["on", True]}, "1": {"type": "string"}},
    }


def test_a_mapping_may_override_a_merged_key() -> None:
    """An overridden key is not a repeated key."""
    inner = "x-c: { deep: { one: &b { <<: *a, k: 2 } } }\nx-d: { <<: *b, k: 3 }\n"
    document = f"openapi: 3.1.0\nx-a: &a {{ k: 1 }}\n{inner}paths: {{ /a: {{ get: {{}} }} }}\n"
    assert len(read(document.encode(), "v1").operations) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a:\n\t- b", f"v1: neither JSON nor YAML (line 2: {TAB}); is this the right location?"),
        (b"\xff", "v1: neither JSON nor YAML; is this the right location?"),
        (b"openapi: 3.1.0\nx: &x [*x]", MANY),
        (MERGES.encode(), MANY.replace("aliases (*name)", "merges (<<)")),
        (b"x: [" + b"1," * 1_000_000 + b"]", f"v1: {LARGE}"),
        (b'{"x": [' + b"[]," * 500_000 + b'1], "y": ["\\",[["]}', f"v1: {LARGE}"),
        (b"x: [" * 501, DEEP),
        # Before nesting was limited, this document crashed the whole process when a thread parsed
        # it.
        (b"- " * 100_000, DEEP),
        (b"x: " + b"[" * 100_000, DEEP),
        *(
            (b"x: !!%b" % text, "v1: neither JSON nor YAML; is this the right location?")
            for text in (b'int ""', b"bool x", b"timestamp x")
        ),
        (BOMB.encode(), MANY),
        (
            b'{"openapi": "3.1.0",\n\t"paths": {},\n "paths": {"/a": 1}}',
            "v1: the same key twice (line 3: 'paths' occurs before; remove one of them)",
        ),
        (
            b"openapi: 3.1.0\npaths:\n  /a: {}\n  /b: {}\n  '/a': {}\n",
            "v1: the same key twice (line 5: '/a' occurs before; remove one of them)",
        ),
        ('{"openapi": "3.1.0"}'.encode("utf-16"), "v1: in UTF-16; save it as UTF-8"),
        ("openapi: 3.1.0".encode("utf-16-be"), "v1: in UTF-16; save it as UTF-8"),
        (
            b"a: 1",
            "v1: not an OpenAPI document (no 'openapi'); publish one: 3.0, 3.1 or Swagger 2.0",
        ),
        (
            b"swagger: '1.2'",
            "v1: not an OpenAPI document (no 'openapi'); publish one: 3.0, 3.1 or Swagger 2.0",
        ),
        (b"openapi: 4.0.0", "v1: OpenAPI 4.0.0; versions 3.0 and 3.1 are supported"),
    ],
)
def test_an_invalid_document_is_refused_with_its_mistake(text: bytes, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(text, "v1")
    assert str(caught.value) == said


async def test_each_location_is_fetched_only_once_and_failures_are_reported(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(body=JSON, status=404 if request.path == "/none" else 200)

    app = web.Application()
    app.router.add_get("/{name}", answer)
    (tmp_path / "v1.yaml").write_bytes(YAML)
    async with TestServer(app) as server:
        url = str(server.make_url("/openapi.json"))
        found = await fetch([url, "v1.yaml", url], tmp_path)
        assert {name: one.source for name, one in found.items()} == {url: url, "v1.yaml": "v1.yaml"}
        assert asked == ["/openapi.json"]
        with pytest.raises(
            DocumentError,
            match=r"/none: responds with status 404; publish the"
            r" document"
            r" there",
        ):
            await fetch([str(server.make_url("/none"))], tmp_path)
    with pytest.raises(
        DocumentError, match=r"cannot be loaded .connection refused.; is the server running"
    ):
        await fetch([url], tmp_path)
    with pytest.raises(DocumentError, match=r"v2\.yaml: cannot be read: No such file"):
        await fetch(["v2.yaml"], tmp_path)


def test_a_json_document_that_is_nested_too_deeply_is_refused() -> None:
    text = b'{"openapi":"3.1.0","paths":' + b'{"a":' * 3000 + b"1" + b"}" * 3001
    with pytest.raises(DocumentError, match="nested too deep"):
        read(text, "deep.json")


@pytest.mark.parametrize(
    "text",
    [
        b'{"openapi": "3.1.0", "x": "' + b"[,{" * 400_000 + b'"}',
        b"openapi: 3.1.0\nx: " + b"[" * 400 + b"]" * 400,
    ],
)
def test_brackets_in_strings_do_not_count_as_nesting(text: bytes) -> None:
    assert not read(text, "v1").operations


async def test_endless_documents_are_refused(tmp_path: Path) -> None:
    """Neither a pipe without a writer nor the response of a broken service ever ends."""
    os.mkfifo(tmp_path / "pipe")

    async def endless(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity"
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(bytes(2**20))
        return response

    app = web.Application()
    app.router.add_get("/endless", endless)
    async with TestServer(app) as server:
        for location, said in (
            ("pipe", "pipe: cannot be read: not a regular file; is the path right?"),
            (str(server.make_url("/endless")), "larger than 16 MiB; is this the right location?"),
        ):
            with pytest.raises(DocumentError) as caught:
                await fetch([location], tmp_path)
            assert str(caught.value).endswith(said)
