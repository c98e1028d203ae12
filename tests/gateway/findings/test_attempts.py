"""A webhook that is slow to answer holds up neither others, nor what is looked for, nor itself."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.base.mistakes import Issue
from gateway.findings import attempts
from gateway.findings.notification import DOCUMENT, NotifyDocument, read_document
from gateway.findings.notifier import Notifier
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import RefusedRules
from gateway.findings.webhook_client import WebhookClient
from tests.gateway.operating import MakeOperator


def refuse_rules(operator: Operator, times: int) -> None:
    """Have another mistake in the rules on disk."""
    issue = Issue(1, 1, "servces", "wrong")
    operator.reloader.refused = RefusedRules(b"servces:" + b" " * times, (issue,), 5.0)


async def document(operator: Operator) -> NotifyDocument:
    return read_document((await operator.state.read_document(DOCUMENT))[0])


async def test_a_slow_receiver(operating: MakeOperator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_PATIENCE", 0.5)
    answers, asked, taken = asyncio.Event(), 0, 0

    async def slow(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        await answers.wait()
        return web.Response()

    async def quick(_: web.Request) -> web.Response:
        nonlocal taken
        taken += 1
        return web.Response()

    app = web.Application()
    app.router.add_post("/slow", slow)
    app.router.add_post("/quick", quick)
    async with TestServer(app) as server:
        hooks = ", ".join(
            f"{name}: {{ url: '{server.make_url(f'/{name}')}', events: [rules.refused] }}"
            for name in ("slow", "quick")
        )
        operator = operating(f"notify: {{ webhooks: {{ {hooks} }} }}\n")
        rules, notifier = operator.rules.notify, Notifier(operator)

        async def turn(client: WebhookClient) -> None:
            await notifier.look(rules)
            async with asyncio.timeout(10):
                await notifier.deliver(rules, client)

        async with WebhookClient() as client:
            for times in range(3):
                refuse_rules(operator, times)
                await turn(client)
            assert (asked, taken) == (1, 3)  # the first shows whether it takes any
            answers.set()
            await turn(client)
            answers.clear()
            await turn(client)
            assert asked == 2
            refuse_rules(operator, 3)
            answers.set()
            await turn(client)
            await turn(client)
            assert (asked, taken) == (4, 4)
        items = (await document(operator)).items
        assert {each.deliveries["slow"].state for each in items} == {"sent"}


async def test_the_end_of_the_gateway_ends_attempts(operating: MakeOperator) -> None:
    asked = asyncio.Event()

    async def never(_: web.Request) -> web.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.router.add_post("/", never)
    async with TestServer(app) as server:
        url = server.make_url("/")
        operator = operating(
            f"notify: {{ webhooks: {{ ops: {{ url: '{url}', events: [rules.refused] }} }} }}\n"
        )
        refuse_rules(operator, 0)
        before = asyncio.all_tasks()
        task = asyncio.create_task(Notifier(operator).run())
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0.1)
        left = [each for each in asyncio.all_tasks() - before if "Attempts" in repr(each)]
        assert left == []
    assert [*operator.totals.counted("notifications")] == []
