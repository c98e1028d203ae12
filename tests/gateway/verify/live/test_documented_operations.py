"""The operations in a version's document, with the endpoints that route to them."""

import asyncio
import json
from pathlib import Path

from gateway.rules.load import load
from gateway.verify.live.document_jobs import Reread
from gateway.verify.live.document_process import DocumentProcess
from gateway.verify.live.documented_operations import DocumentedOperations
from tests.gateway.documents import LocalDocuments, ignore, running
from tests.gateway.verify.loans import document, written

KEY = ("loans", "1")


async def test_documented_operations_are_returned_with_their_endpoints(tmp_path: Path) -> None:
    older = document(lendings="get post", lendings_ID="get put delete", elsewhere="get")
    path, rules = written(tmp_path, older, document())
    documents = LocalDocuments(tmp_path)
    operations = DocumentedOperations(documents)
    found = await operations.find(rules, KEY)
    assert found is not None
    assert {each[::2] for each in found} == {
        ("GET", "/v{version}/loans"),
        ("POST", "/v{version}/loans"),
        ("GET", "/v{version}/loans/{id}"),
        ("PUT", "/v{version}/loans/{id}"),  # the endpoint does not accept DELETE
    }
    (tmp_path / "v1.json").unlink()
    assert await operations.find(rules, KEY) == found
    documents.ask(Reread())
    # A new configuration may name other documents.
    other = load(path.read_bytes(), str(path), {})
    assert await operations.find(other, KEY) is None
    assert await operations.find(rules, ("loans", "3")) is None
    assert await operations.find(rules, ("books", "1")) is None


async def test_a_hanging_document_server_delays_each_call_only_briefly(tmp_path: Path) -> None:
    """The document is requested once, and is available as soon as it has arrived."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await go_on.wait()
        body = json.dumps(document(lendings="get")).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    path, _ = written(tmp_path, document(), document())
    text = path.read_text().replace("v1.json", f'"http://127.0.0.1:{port}/"')
    rules = load(text.encode(), "gateway.yaml", {})
    async with running(DocumentProcess(tmp_path, ignore)) as documents:
        operations = DocumentedOperations(documents, patience=0.01)
        assert await operations.find(rules, KEY) is None
        await asked.wait()
        assert await operations.find(rules, KEY) is None
        go_on.set()
        operations.patience = 60
        (found,) = await operations.find(rules, KEY) or [None]
        assert found is not None
        assert (found.method, found.endpoint) == ("GET", "/v{version}/loans")
    server.close()
