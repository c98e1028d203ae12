"""The routes of /notifications."""

import time
from contextlib import suppress

from aiohttp import web

from gateway.admin.access.problems import AdminProblemError, json_answer
from gateway.admin.access.rights import order
from gateway.findings.operator import Operator
from gateway.observe import log
from gateway.store.state import StateError


def notify_routes(operator: Operator) -> list[web.RouteDef]:
    """Return the routes."""

    async def show(_: web.Request) -> web.Response:
        # Imported with the first request, as other reports are.
        from gateway.findings.notification import DOCUMENT, read_document

        document, _now = await operator.state.read_document(DOCUMENT)
        return json_answer(read_document(document).report())

    async def test(request: web.Request) -> web.Response:
        from gateway.findings.notifier import chosen, record_test, send_test

        change, name = await order(request), request.query.get("webhook")
        notify = operator.rules.notify
        try:
            webhooks = chosen(notify, name)
        except LookupError as error:
            raise AdminProblemError(404, "not_found", str(error)) from None
        await operator.state.record(change, "notification test", name or "")
        results = await send_test(webhooks, notify.page, change.who, time.time())
        with suppress(StateError):  # the messages are sent all the same
            await record_test(operator, results)
        log.event("notify_tested", who=change.who, webhook=name)
        return json_answer(results)

    return [web.get("/notifications", show), web.post("/notifications/test", test)]
