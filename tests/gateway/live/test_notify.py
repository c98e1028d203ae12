"""Notifications from a running gateway to a webhook."""

import asyncio
import json

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.gateway.kit import StartGateway, rules, run_command
from tests.gateway.talk import soon


async def test_rejected_rules_are_notified(gateway: StartGateway) -> None:
    got: list[tuple[str, str]] = []

    async def receive(request: web.Request) -> web.Response:
        body = await request.json()
        got.append((body["type"], body["data"]["text"]))
        return web.Response()

    app = web.Application()
    app.router.add_post("/s3cret", receive)
    async with TestServer(app) as server:
        notify = 'notify: { webhooks: { ops: { url: "${HOOK}" }, gone: { url: "${GONE}" } } }\n'
        url = str(server.make_url("/s3cret"))
        program = await asyncio.to_thread(
            gateway, notify + rules(1), HOOK=url, GONE="http://127.0.0.1:1/s3cret"
        )

        async def told(words: str) -> tuple[int, str]:
            return await asyncio.to_thread(run_command, program, words)

        assert await told("notify show") == (0, "No notification has been sent yet.\n")
        assert await told("fleet audit") == (0, "There are no changes yet.\n")
        assert await told("notify test ops") == (0, "ops: sent\n")
        status, said = await told("notify test --why trial")
        assert (status, said.startswith("ops: sent\ngone: cannot be reached: ")) == (1, True)
        status, said = await told("notify test opps")
        assert (status, "did you mean 'ops'?" in said) == (2, True)
        audit = (await told("fleet audit"))[1].splitlines()
        assert [line.split()[-3:] for line in audit[1:]] == [
            ["notification", "test", "trial"],
            ["notification", "test", "ops"],
        ]

        assert program.config is not None
        program.config.write_text("servces: {}\n")
        await soon(lambda: len(got) == 3)
        assert [kind for kind, _ in got] == ["test", "test", "rules.refused"]
        assert "line 1" in got[-1][1]
        await soon(lambda: program.log("notify_failed"))
        (line,) = json.loads((await told("notify show --json"))[1])
        assert {each["webhook"]: each["attempts"] for each in line["deliveries"]} == {
            "ops": 1,
            "gone": 1,
        }
        assert "cannot be reached" in (await told("notify show"))[1]
        assert "s3cret" not in program.output.read_text()
