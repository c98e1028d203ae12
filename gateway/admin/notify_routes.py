"""The paths of the admin port about word of what happens."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

from gateway.admin.access.problems import AdminProblemError, json_answer
from gateway.admin.access.rights import order
from gateway.findings.operator import Operator
from gateway.observe import log
from gateway.store.state import StateError

if TYPE_CHECKING:
    from gateway.findings.notify_report import WebhookTest


def notify_routes(operator: Operator) -> list[web.RouteDef]:
    """Return the routes of /notifications."""

    async def show(_: web.Request) -> web.Response:
        # Imported when they are asked for, as other reports are.
        from gateway.findings.notification import DOCUMENT, read_document
        from gateway.findings.notify_report import notify_report

        found, _now = await operator.state.read_document(DOCUMENT)
        return json_answer(notify_report(read_document(found)))

    async def test(request: web.Request) -> web.Response:
        from gateway.findings.notifier import chosen, send_test

        act, name = await order(request), request.query.get("webhook")
        try:
            webhooks = chosen(operator.rules.notify, name)
        except LookupError as error:
            raise AdminProblemError(404, "not_found", str(error)) from None
        await operator.state.record(act, "notification test", name or "")
        results = await send_test(operator.rules.notify, webhooks, act.who, time.time())
        with suppress(StateError):  # the messages are sent all the same
            await _note(operator, results)
        log.event("notify_tested", who=act.who, webhook=name)
        return json_answer(results)

    return [web.get("/notifications", show), web.post("/notifications/test", test)]


async def _note(operator: Operator, results: "Sequence[WebhookTest]") -> None:
    """Note which webhooks took a test message, so that they fail no more."""
    import msgspec

    from gateway.findings.notification import DOCUMENT, note_taken, read_document

    _, now = await operator.state.read_document(DOCUMENT)

    def change(former: object) -> object:
        document = read_document(former)
        for each in results:
            if not each.error:
                note_taken(document, each.webhook, now)
        return msgspec.to_builtins(document)

    await operator.state.change_document(DOCUMENT, change)
