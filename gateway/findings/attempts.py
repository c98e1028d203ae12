"""Attempts: the messages under way to webhooks, none of which waits for another one."""

import asyncio
from collections.abc import Mapping
from math import inf
from time import monotonic

from gateway.base.notify_rules import NotifyRules, Webhook
from gateway.findings.notification import Attempt, Notification, NotifyDocument, waits
from gateway.findings.operator import Operator
from gateway.findings.webhook_client import WebhookClient
from gateway.observe import log

# So many messages go to one webhook at a time: the first one, which shows whether it takes any, and
# then the others at once.
_AT_ONCE = 10
# So long a round waits for attempts, in seconds; the next one asks for those that take longer.
_PATIENCE = 2.0


class Attempts:
    """The attempts of one gateway.

    Args:
        operator: the gateway, which counts how they end.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._under_way: dict[str, asyncio.Task[dict[str, Attempt]]] = {}
        # By webhook and id, when a message is due by the monotonic clock: the one that the document
        # goes by may be set, and all attempts would be made at once, or none for as long.
        self._due: dict[str, dict[str, float]] = {}

    async def make(
        self, document: NotifyDocument, rules: NotifyRules, client: WebhookClient, now: float
    ) -> Mapping[str, Mapping[str, Attempt]]:
        """Send what is due; return by webhook and id what has ended, until `noted` is called."""
        for webhook in rules.webhooks:
            if webhook.name not in self._under_way:
                due = self._take_due(document, webhook.name, now)
                if due:
                    send = self._send(due, webhook, client)
                    self._under_way[webhook.name] = asyncio.create_task(send)
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=_PATIENCE)
        return {name: task.result() for name, task in self._under_way.items() if task.done()}

    def noted(self, ended: Mapping[str, object]) -> None:
        """Forget the attempts at webhooks that have ended, which the document has."""
        for name in ended:
            del self._under_way[name]

    def stop(self) -> None:
        """Cancel what is under way."""
        for task in self._under_way.values():
            task.cancel()

    def _take_due(self, document: NotifyDocument, name: str, now: float) -> list[Notification]:
        at, former = monotonic(), self._due.get(name, {})
        left = waits(document, name, now)
        due = self._due[name] = {each: former.get(each, at + wait) for each, wait in left.items()}
        return [one for one in document.items if due.get(one.id, inf) <= at][:_AT_ONCE]

    async def _send(
        self, due: list[Notification], webhook: Webhook, client: WebhookClient
    ) -> dict[str, Attempt]:
        async def send(one: Notification) -> Attempt:
            del self._due[webhook.name][one.id]  # it is due again as the document will have it
            attempt = await client.send(one, webhook, self._operator.state.now)
            self._operator.count("notifications", "failed" if attempt.error else "sent")
            if attempt.error:
                log.event(
                    "notify_failed",
                    "warning",
                    webhook=webhook.name,
                    notification=one.id,
                    reason=attempt.error,
                )
            return attempt

        first, *others = due
        found = {first.id: await send(first)}
        if not found[first.id].error:
            ends = await asyncio.gather(*map(send, others))
            found.update(zip((one.id for one in others), ends, strict=True))
        return found
