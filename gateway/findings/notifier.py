"""The task that finds events and delivers notifications, while webhooks are configured."""

import asyncio
from collections.abc import Callable, Mapping
from math import inf
from time import monotonic
from typing import TypedDict
from uuid import uuid4

import msgspec
from aiohttp import ClientSession

from gateway.base.mistakes import suggest
from gateway.base.notify import Notify, Webhook
from gateway.base.overrides import VersionKey
from gateway.findings import events
from gateway.findings.notification import (
    DOCUMENT,
    Attempt,
    Event,
    Notification,
    NotifyDocument,
    read_document,
)
from gateway.findings.operator import Operator
from gateway.findings.retirable_versions import retirable
from gateway.findings.usage_summary import UsageSummaries
from gateway.findings.version_summary import version_summaries
from gateway.findings.webhook_client import post, webhook_session
from gateway.observe import log
from gateway.store.state import StateError
from gateway.usage.history import Interval, whole_history

# Seconds between two rounds; versions, whose usage takes long to read, are examined less often.
_INTERVAL = 5.0
_VERSIONS_INTERVAL = 600.0
# Messages sent to a webhook at a time: the first one, and the others once it is taken.
_AT_ONCE = 10
# How long a round waits for responses; the next one takes those that come later.
_PATIENCE = 2.0

Observe = Callable[[NotifyDocument, float], list[Event]]


class SentTest(TypedDict):
    """The outcome of a test message; no error for a success."""

    webhook: str
    error: str


async def notify(operator: Operator) -> None:
    """Find and deliver while webhooks are configured."""
    async with webhook_session() as session:
        await Notifier(operator, session).run()


class Notifier:
    """Finds events, and delivers their notifications if this gateway is the leader."""

    def __init__(self, operator: Operator, session: ClientSession) -> None:
        self._operator = operator
        self._session = session
        self._usage = UsageSummaries(operator)
        self._examined = -_VERSIONS_INTERVAL
        self._unstored = NotifyDocument()  # while the store is unreachable
        self._sending: dict[str, asyncio.Task[dict[str, Attempt]]] = {}
        # When messages are due, by webhook and id, on the monotonic clock: the clock of the
        # document may be set, and all would be due at once, or none for long.
        self._due: dict[str, dict[str, float]] = {}

    async def run(self) -> None:
        """Run while webhooks are configured."""
        late = False
        try:
            while self._operator.rules.notify.webhooks:
                try:
                    await self.find()
                    await self.deliver()
                    late = False
                except StateError as error:
                    if not late:  # once per outage
                        log.event("notify_late", "warning", reason=str(error))
                    late = True
                    await self.deliver_unstored()
                await asyncio.sleep(_INTERVAL)
        finally:
            for task in self._sending.values():
                task.cancel()
        self._operator.webhooks.clear()

    async def find(self) -> None:
        """Add new events to the document; raises StateError."""
        state, notify = self._operator.state, self._operator.rules.notify
        stored, now = await state.read_document(DOCUMENT)
        observers: list[Observe] = [self._own_events]
        if state.leads:
            observers.append(await self._shared_events(read_document(stored), now))
        dropped = 0

        def change(former: object) -> object:
            nonlocal dropped
            document = read_document(former)
            document.merge(self._unstored)
            found = [event for observe in observers for event in observe(document, now)]
            dropped = document.add(found, notify, now)
            document.forget_webhooks(notify.webhooks)
            return msgspec.to_builtins(document)

        # Most rounds change nothing, and need no lock.
        if msgspec.json.encode(change(stored)) != msgspec.json.encode(stored):
            await state.change_document(DOCUMENT, change)
            for _ in range(dropped):
                self._operator.count("notifications", "dropped")
        self._unstored = NotifyDocument()

    async def deliver(self) -> None:
        """Send due messages, if this gateway is the leader; raises StateError."""
        state, webhooks = self._operator.state, self._operator.rules.notify.webhooks
        self._operator.webhooks.clear()
        if not state.leads:
            return
        stored, now = await state.read_document(DOCUMENT)
        document = read_document(stored)
        failing = {each.webhook for each in document.failing(webhooks)}
        self._operator.webhooks.update({name: name in failing for name in webhooks})
        outcomes = await self._send_due(document, webhooks, now)
        if not outcomes:
            return

        def change(former: object) -> object:
            document = read_document(former)
            for name, attempts in outcomes.items():
                document.record(name, attempts, now)
            return msgspec.to_builtins(document)

        await state.change_document(DOCUMENT, change)
        self._forget_sent(outcomes)

    async def deliver_unstored(self) -> None:
        """Report that the store is unreachable: at once from the leader, later from others.

        Only the leader and its deputy send to chats, which show duplicates. `find` adds the event
        to the store once it is reachable, and `deliver` retries it.
        """
        state, notify, document = self._operator.state, self._operator.rules.notify, self._unstored
        now = state.now
        found = events.state_stale(state.replica, state.stale_since, now, state.failover)
        if state.failover.rank > 1:
            known = {name: one for name, one in notify.webhooks.items() if one.form == "standard"}
            notify = notify.model_copy(update={"webhooks": known})
        document.add(found, notify, now)
        outcomes = await self._send_due(document, notify.webhooks, now)
        for name, attempts in outcomes.items():
            document.record(name, attempts, now)
        self._forget_sent(outcomes)

    async def _send_due(
        self, document: NotifyDocument, webhooks: Mapping[str, Webhook], now: float
    ) -> dict[str, dict[str, Attempt]]:
        """Send due messages; return outcomes by webhook and id, until `_forget_sent`."""
        for name, webhook in webhooks.items():
            if name in self._sending:
                continue
            at, former = monotonic(), self._due.get(name, {})
            waits = document.waits(name, now)
            due = self._due[name] = {one: former.get(one, at + left) for one, left in waits.items()}
            ready = [one for one in document.items if due.get(one.id, inf) <= at][:_AT_ONCE]
            if ready:
                self._sending[name] = asyncio.create_task(self._send(ready, name, webhook))
        if self._sending:
            await asyncio.wait(self._sending.values(), timeout=_PATIENCE)
        return {name: task.result() for name, task in self._sending.items() if task.done()}

    def _forget_sent(self, outcomes: Mapping[str, object]) -> None:
        for name in outcomes:
            del self._sending[name]

    async def _send(
        self, ready: list[Notification], name: str, webhook: Webhook
    ) -> dict[str, Attempt]:
        async def send(one: Notification) -> Attempt:
            del self._due[name][one.id]
            attempt = await post(self._session, one, name, webhook, self._operator.state.now)
            self._operator.count("notifications", "failed" if attempt.error else "sent")
            if attempt.error:
                details = {"webhook": name, "notification": one.id, "reason": attempt.error}
                log.event("notify_failed", "warning", **details)
            return attempt

        first, *others = ready
        outcomes = {first.id: await send(first)}
        if not outcomes[first.id].error:
            ended = await asyncio.gather(*map(send, others))
            outcomes.update(zip((one.id for one in others), ended, strict=True))
        return outcomes

    def _own_events(self, _: NotifyDocument, now: float) -> list[Event]:
        state, operator = self._operator.state, self._operator
        found = [*events.tasks_failed(state.replica, operator.failing_tasks(), now)]
        if not state.failover.rank:
            found += events.state_stale(state.replica, state.stale_since, now, state.failover)
        found += events.rules_refused(state.replica, operator.reloader.refused)
        return found

    async def _shared_events(self, stored: NotifyDocument, now: float) -> Observe:
        """Return a function that finds the events of what all replicas share."""
        operator = self._operator
        rules, overrides = operator.rules, operator.state.in_force
        states = {key: operator.state.cutover(key).state for key in rules.cutovers}
        versions, fleet = version_summaries(rules), await operator.state.fleet()
        found: list[Event] = []
        if monotonic() - self._examined >= _VERSIONS_INTERVAL:
            view, summaries = await self._usage.latest()
            found += events.sunsets_near(versions, summaries, now)
            keys = await retirable(operator, versions, view, summaries)
            found += events.versions_retirable(keys, summaries)
            self._examined = monotonic()
        for key, opening in events.pop_ended_brownouts(stored, now).items():
            found.append(events.brownout_ended(key, opening, await self._minutes(key)))

        def observe(document: NotifyDocument, now: float) -> list[Event]:
            events.pop_ended_brownouts(document, now)
            return [
                *events.cutovers_moved(document, states, now),
                *events.replicas_lost(fleet),
                *events.brownouts_begun(document, versions, overrides, now),
                *found,
            ]

        return observe

    async def _minutes(self, key: VersionKey) -> Mapping[int, Interval]:
        _, by_minute = whole_history(key)
        view = await self._operator.state.history(by_minute)
        return view.series.get(key, {})


def chosen(notify: Notify, name: str | None) -> dict[str, Webhook]:
    """Return the webhook with a name, or all for None.

    Raises:
        LookupError: there is none; the text is for the operator.
    """
    if name is not None and name not in notify.webhooks:
        raise LookupError(f"no webhook is called '{name}'; {suggest(name, notify.webhooks)}")
    if not notify.webhooks:
        raise LookupError("the rules have no webhooks; name one in 'notify'")
    return {each: webhook for each, webhook in notify.webhooks.items() if name in (None, each)}


async def send_test(
    webhooks: Mapping[str, Webhook], page: str, who: str, now: float
) -> list[SentTest]:
    """Send a test message to webhooks.

    Args:
        webhooks: the receivers, by name.
        page: the URL of the admin port.
        who: the name of the operator.
        now: the time, in seconds since 1970.
    """
    text = f"A test message, for which {who} asked."
    link = page.rstrip("/")
    one = Notification(f"evt_{uuid4().hex}", "test", now, "a test", text, "", "", link)
    async with webhook_session() as session:
        posts = (post(session, one, name, webhook, now) for name, webhook in webhooks.items())
        attempts = await asyncio.gather(*posts)
    return [
        {"webhook": name, "error": attempt.error}
        for name, attempt in zip(webhooks, attempts, strict=True)
    ]


async def record_test(operator: Operator, results: list[SentTest]) -> None:
    """Record which webhooks took a test message, so that they fail no more; raises StateError."""
    _, now = await operator.state.read_document(DOCUMENT)

    def change(former: object) -> object:
        document = read_document(former)
        for each in results:
            if not each["error"]:
                document.record_taken(each["webhook"], now)
        return msgspec.to_builtins(document)

    await operator.state.change_document(DOCUMENT, change)
