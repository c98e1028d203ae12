"""Certificate authorities of the system apply to all HTTPS requests of the gateway.

The environment variable with their path is read at import, so the test uses a separate process.
"""

import asyncio
import os
import ssl
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.kit import ROOT

PROGRAM = """
import asyncio
import sys
from pathlib import Path

from gateway.findings.notifications import Notification
from gateway.findings.webhook_client import post, webhook_session
from gateway.base.notify import Webhook
from gateway.verify.openapi.document_source import DocumentError, fetch


async def run(url: str) -> None:
    one = Notification("evt_1", "replica.lost", 5.0, "b", "It is lost.", "", "", "")
    async with webhook_session() as session:
        print(repr((await post(session, one, "ops", Webhook(url=url), 7.0)).error))
    try:
        print(len(await fetch([url], Path())))
    except DocumentError:
        print(0)


asyncio.run(run(sys.argv[1]))
"""
DOCUMENT = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}


@pytest.mark.parametrize(
    ("named", "expected"),
    [("tls.crt", ["''", "1"]), ("other.crt", ["'cannot be reached: ", "0"])],
    ids=["known", "unknown"],
)
async def test_requests_trust_the_authorities_of_the_system(
    tmp_path: Path, named: str, expected: list[str]
) -> None:
    files = write_certificate(tmp_path)
    write_certificate(tmp_path, "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(DOCUMENT)

    app = web.Application()
    app.router.add_route("*", "/", answer)
    server = TestServer(app)
    await server.start_server(ssl=context)
    try:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, str(server.make_url("/"))),
            cwd=ROOT,
            env=os.environ | {"SSL_CERT_FILE": str(tmp_path / named), "SSL_CERT_DIR": "/none"},
            stdout=asyncio.subprocess.PIPE,
        )
        lines = (await program.communicate())[0].decode().splitlines()
    finally:
        await server.close()
    assert program.returncode == 0
    assert [line.startswith(start) for line, start in zip(lines, expected, strict=True)] == [
        True
    ] * 2
