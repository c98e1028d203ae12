"""Notifier: the task that looks for what happened, and sends word of it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from uuid import uuid4

import msgspec

from gateway.base.mistakes import suggest
from gateway.base.notify_rules import MessageForm, NotifyRules, Webhook
from gateway.base.overrides import VersionKey
from gateway.findings import observation
from gateway.findings.attempts import Attempts
from gateway.findings.catalog import catalog
from gateway.findings.failing_webhooks import failing_webhooks
from gateway.findings.notification import (
    DOCUMENT,
    Happening,
    Notification,
    NotifyDocument,
    add,
    brief,
    forget_webhooks,
    merge,
    note,
    read_document,
)
from gateway.findings.notify_report import WebhookTest
from gateway.findings.operator import Operator
from gateway.findings.retirable_versions import retirable
from gateway.findings.standing import Standings
from gateway.findings.webhook_client import WebhookClient
from gateway.observe import log
from gateway.store.state import StateError
from gateway.usage.history import Interval, whole_history

# Between two looks, in seconds; what takes all rows of usage is looked at less often.
_INTERVAL = 5.0
_RARELY = 600.0

Observe = Callable[[NotifyDocument, float], list[Happening]]


class Notifier:
    """Adds what happened to the document, and sends it where this gateway judges."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._standings = Standings(operator)
        self._looked = -_RARELY
        self._unstored = NotifyDocument()
        self._attempts = Attempts(operator)

    async def run(self) -> None:
        """Go on while the rules have webhooks."""
        async with WebhookClient() as client:
            try:
                await self._go_on(client)
            finally:
                self._attempts.stop()
        self._operator.webhooks.clear()

    async def _go_on(self, client: WebhookClient) -> None:
        late = False
        while (rules := self._operator.rules.notify).webhooks:
            try:
                await self.look(rules)
                await self.deliver(rules, client)
                late = False
            except StateError as error:
                if not late:  # once an outage
                    log.event("notify_late", "warning", reason=str(error))
                late = True
                await self.deliver_unstored(rules, client)
            await asyncio.sleep(_INTERVAL)

    async def look(self, rules: NotifyRules) -> None:
        """Add what happened to the document; raises StateError."""
        state = self._operator.state
        stored, now = await state.read_document(DOCUMENT)
        observers: list[Observe] = [self._own]
        if self._operator.state.judges:
            observers += [await self._shared(stored, now)]
        dropped = 0

        def change(former: object) -> object:
            nonlocal dropped
            document = read_document(former)
            merge(document, self._unstored)
            happenings = [one for observe in observers for one in observe(document, now)]
            dropped = len(add(document, happenings, rules, now))
            forget_webhooks(document, [webhook.name for webhook in rules.webhooks])
            return msgspec.to_builtins(document)

        # Most looks change nothing, and need no lock.
        if brief(change(stored)) != brief(stored):
            await state.change_document(DOCUMENT, change)
            for _ in range(dropped):
                self._operator.count("notifications", "dropped")
        self._unstored = NotifyDocument()

    async def deliver_unstored(self, rules: NotifyRules, client: WebhookClient) -> None:
        """Send word that the store is away: at once if this gateway judged, or later.

        Neither the judge nor its deputy, it leaves chats to them: those show what comes twice. The
        next look that reaches the store adds it there, and what is not taken yet goes on.
        """
        state, document = self._operator.state, self._unstored
        now = state.now
        found = observation.state_stale(state.replica, state.stale_since, now, state.failover)
        if state.failover.rank > 1:
            known = tuple(each for each in rules.webhooks if each.form is MessageForm.STANDARD)
            rules = NotifyRules(known, rules.page)
        add(document, found, rules, now)
        ended = await self._attempts.make(document, rules, client, now)
        for name, attempts in ended.items():
            note(document, name, attempts, now)
        self._attempts.noted(ended)

    async def deliver(self, rules: NotifyRules, client: WebhookClient) -> None:
        """Send what is due, if this gateway judges; raises StateError."""
        webhooks = self._operator.webhooks
        webhooks.clear()
        if not self._operator.state.judges:
            return
        state = self._operator.state
        stored, now = await state.read_document(DOCUMENT)
        document = read_document(stored)
        names = [webhook.name for webhook in rules.webhooks]
        failing = {each.webhook for each in failing_webhooks(document, names)}
        webhooks.update({name: name in failing for name in names})
        ended = await self._attempts.make(document, rules, client, now)
        if not ended:
            return

        def change(former: object) -> object:
            document = read_document(former)
            for name, attempts in ended.items():
                note(document, name, attempts, now)
            return msgspec.to_builtins(document)

        await state.change_document(DOCUMENT, change)
        self._attempts.noted(ended)

    def _own(self, _: NotifyDocument, now: float) -> list[Happening]:
        state = self._operator.state
        replica = state.replica
        happenings = [*observation.tasks_failed(replica, self._operator.failing_tasks(), now)]
        if not state.failover.rank:
            happenings += observation.state_stale(replica, state.stale_since, now, state.failover)
        happenings += observation.rules_refused(replica, self._operator.reloader.refused)
        return happenings

    async def _shared(self, stored: object, now: float) -> Observe:
        """Return what looks at that which all replicas share."""
        operator = self._operator
        rules, overrides = operator.rules, operator.state.in_force
        states = {key: operator.state.cutover(key).state for key in rules.cutovers}
        versions, fleet = catalog(rules), await operator.state.fleet()
        rare: list[Happening] = []
        if monotonic() - self._looked >= _RARELY:
            view, standings = await self._standings.latest()
            rare += observation.sunsets_near(versions, standings, now)
            keys = await retirable(operator, versions, view, standings)
            rare += observation.versions_retirable(keys, standings)
            self._looked = monotonic()
        ended = [
            observation.brownout_ended(key, window, await self._minutes(key))
            for key, window in observation.brownouts_over(read_document(stored), now).items()
        ]

        def observe(document: NotifyDocument, now: float) -> list[Happening]:
            observation.brownouts_over(document, now)
            return [
                *observation.cutovers_moved(document, states, now),
                *observation.replicas_lost(fleet),
                *ended,
                *observation.brownouts_begun(document, versions, overrides, now),
                *rare,
            ]

        return observe

    async def _minutes(self, key: VersionKey) -> Mapping[int, Interval]:
        _, by_minute = whole_history(key)
        view = await self._operator.state.history(by_minute)
        return view.series.get(key, {})


def chosen(rules: NotifyRules, name: str | None) -> list[Webhook]:
    """Return the webhook of a name, or all for None.

    Raises:
        LookupError: there is none; the text is for the operator.
    """
    names = [webhook.name for webhook in rules.webhooks]
    if name is not None and name not in names:
        raise LookupError(f"no webhook is called '{name}'; {suggest(name, names)}")
    if not names:
        raise LookupError("the rules have no webhooks; name one in 'notify'")
    return [webhook for webhook in rules.webhooks if name in (None, webhook.name)]


async def send_test(
    rules: NotifyRules, webhooks: Sequence[Webhook], who: str, now: float
) -> list[WebhookTest]:
    """Send a test message to webhooks, and return how that ended.

    Args:
        rules: have the address of the page.
        webhooks: get the message.
        who: asked for it.
        now: the time, in seconds since 1970.
    """
    one = Notification(
        f"evt_{uuid4().hex}",
        *("test", now, "a test", f"A test message, for which {who} asked.", "", ""),
        rules.page,
    )
    async with WebhookClient() as client:
        sent = await asyncio.gather(*(client.send(one, webhook, now) for webhook in webhooks))
    tests = zip(webhooks, sent, strict=True)
    return [WebhookTest(webhook.name, attempt.error) for webhook, attempt in tests]
