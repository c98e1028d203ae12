"""The task that finds events and sends notifications. It runs while webhooks are configured."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import inf
from time import monotonic
from uuid import uuid4

import aiohttp
import msgspec

from gateway.base.mistakes import suggest
from gateway.base.notify import Notify, Webhook
from gateway.base.overrides import VersionKey
from gateway.findings import events
from gateway.findings.notifications import (
    DOCUMENT,
    Attempt,
    Notification,
    NotifyDocument,
    read_document,
)
from gateway.findings.operator import Operator
from gateway.findings.summaries import UsageSummaries, VersionSummary, retirable, version_summaries
from gateway.findings.webhook_client import post, webhook_session
from gateway.observe import log
from gateway.store.state import State, StateError
from gateway.usage.history import whole_history

# Seconds between two rounds. Versions are examined less often, since reading their usage takes a
# long time.
_INTERVAL = 5.0
_VERSIONS_INTERVAL = 600.0
# The maximum number of messages that are sent to a webhook, one after the other, before their
# outcomes are recorded.
_BATCH = 10
# The number of seconds that a round waits for responses. Later responses are processed in the next
# round.
_PATIENCE = 2.0


async def notify(operator: Operator) -> None:
    async with webhook_session() as session:
        await Notifier(operator, session).run()


async def _change(state: State, change: Callable[[NotifyDocument], object]) -> None:
    def changed(former: object) -> object:
        document = read_document(former)
        change(document)
        return msgspec.to_builtins(document)

    await state.change_document(DOCUMENT, changed)


class Notifier:
    """Adds events to the document. On the leader, it also delivers the notifications."""

    def __init__(self, operator: Operator, session: aiohttp.ClientSession) -> None:
        self._operator = operator
        self._session = session
        self._usage = UsageSummaries(operator)
        self._examined = -_VERSIONS_INTERVAL
        self._unstored = NotifyDocument()  # events while the store is unreachable
        self._sending: dict[str, asyncio.Task[dict[str, Attempt]]] = {}
        # When messages are due, by webhook and id, in monotonic seconds. The document has
        # wall-clock times. If the wall clock was set, all messages would be due at once, or none
        # for a long time.
        self._due: dict[str, dict[str, float]] = {}

    async def run(self) -> None:
        late = False
        try:
            while self._operator.rules.notify.webhooks:
                try:
                    await self.round()
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

    async def round(self) -> None:
        """Add new events; on the leader, also send due messages. Raises StateError."""
        operator, state, dropped = self._operator, self._operator.state, 0
        notify, leads = operator.rules.notify, state.leads
        stored, now = await state.read_document(DOCUMENT)
        document = read_document(stored)
        found = [*events.own_events(operator, now)]
        versions = version_summaries(operator.rules) if leads else {}
        if leads:
            found += await self._shared_events(document, versions, now)

        def update(document: NotifyDocument) -> None:
            nonlocal dropped
            document.merge(self._unstored)
            new = [*found]
            if leads:
                states = {key: state.cutover(key).state for key in operator.rules.cutovers}
                new += events.cutover_events(document, states, now)
                new += events.brownout_begins(document, versions, state.in_force, now)
            dropped = document.add(new, notify, now)
            document.forget_webhooks(notify.webhooks)

        # Most rounds do not change the document, so they do not need its lock.
        update(document)
        if msgspec.json.encode(document) != msgspec.json.encode(stored):
            await _change(state, update)
            for _ in range(dropped):
                operator.count("notifications", "dropped")
        self._unstored = NotifyDocument()
        operator.webhooks.clear()
        if leads:
            failing = {each.webhook for each in document.failing(notify.webhooks)}
            operator.webhooks.update({name: name in failing for name in notify.webhooks})
            outcomes = await self._send_due(document, notify.webhooks, now)
            if outcomes:
                await _change(state, lambda document: document.record(outcomes, now))
                self._forget_sent(outcomes)

    async def deliver_unstored(self) -> None:
        """Notify webhooks of an unreachable store, first as the leader, later as any replica.

        Only the leader and its deputy send to chats, since chats would show duplicates. When the
        store is reachable again, `round` adds the event to the store and retries failed deliveries.
        """
        state, notify, document = self._operator.state, self._operator.rules.notify, self._unstored
        now = state.now
        if state.failover.rank > 1:
            known = {name: one for name, one in notify.webhooks.items() if one.form == "standard"}
            notify = notify.model_copy(update={"webhooks": known})
        stale = events.state_stale(state.replica, state.stale_since, now, state.failover)
        document.add(stale, notify, now)
        outcomes = await self._send_due(document, notify.webhooks, now)
        document.record(outcomes, now)
        self._forget_sent(outcomes)

    async def _send_due(
        self, document: NotifyDocument, webhooks: Mapping[str, Webhook], now: float
    ) -> dict[str, dict[str, Attempt]]:
        """Send due messages; return the outcomes by webhook and event id.

        The next call returns the outcomes again, unless `_forget_sent` is called for them.
        """
        for name, webhook in webhooks.items():
            if name in self._sending:
                continue
            at, former = monotonic(), self._due.get(name, {})
            waits = document.retry_delays(name, now)
            due = self._due[name] = {one: former.get(one, at + left) for one, left in waits.items()}
            ready = [one for one in document.items if due.get(one.id, inf) <= at][:_BATCH]
            if ready:
                self._sending[name] = asyncio.create_task(self._send(ready, name, webhook))
        if self._sending:
            await asyncio.wait(self._sending.values(), timeout=_PATIENCE)
        return {name: task.result() for name, task in self._sending.items() if task.done()}

    def _forget_sent(self, outcomes: Iterable[str]) -> None:
        for name in outcomes:
            del self._sending[name]

    async def _send(
        self, ready: list[Notification], name: str, webhook: Webhook
    ) -> dict[str, Attempt]:
        outcomes: dict[str, Attempt] = {}
        for one in ready:
            del self._due[name][one.id]
            attempt = await post(self._session, one, name, webhook, self._operator.state.now)
            outcomes[one.id] = attempt
            self._operator.count("notifications", "failed" if attempt.error else "sent")
            if attempt.error:
                details = {"webhook": name, "notification": one.id, "reason": attempt.error}
                log.event("notify_failed", "warning", **details)
                break
        return outcomes

    async def _shared_events(
        self, document: NotifyDocument, versions: Mapping[VersionKey, VersionSummary], now: float
    ) -> list[Notification]:
        operator = self._operator
        found = [*events.replicas_lost(await operator.state.fleet())]
        if monotonic() - self._examined >= _VERSIONS_INTERVAL:
            view, summaries = await self._usage.latest()
            keys = await retirable(operator, versions, view, summaries)
            found += events.version_events(versions, summaries, keys, now)
            self._examined = monotonic()
        for key, (begins, ends, _) in document.brownouts:
            if ends <= now:
                history = await operator.state.history(whole_history(key)[1])
                minutes = history.series.get(key, {})
                found.append(events.brownout_ended(key, begins, ends, minutes))
        return found


def chosen(notify: Notify, name: str | None) -> dict[str, Webhook]:
    """Return the webhook with this name, or all for None; raises LookupError for unknown names."""
    if name is not None and name not in notify.webhooks:
        raise LookupError(f"no webhook is called '{name}'; {suggest(name, notify.webhooks)}")
    if not notify.webhooks:
        raise LookupError("no webhook is configured; add one to 'notify'")
    return {each: webhook for each, webhook in notify.webhooks.items() if name in (None, each)}


async def send_test(
    operator: Operator, webhooks: Mapping[str, Webhook], who: str
) -> dict[str, str]:
    """Send a test message to webhooks; return the error for each webhook, empty after a success.

    A webhook that accepts the test message no longer counts as failing.
    """
    state, text = operator.state, f"This is a test message, requested by {who}."
    link, identity = operator.rules.notify.page.rstrip("/"), f"evt_{uuid4().hex}"
    one = Notification(identity, "test", state.now, "a test", text, "", "", link)
    async with webhook_session() as session:
        posts = (post(session, one, name, each, state.now) for name, each in webhooks.items())
        attempts = await asyncio.gather(*posts)
    errors = {name: one.error for name, one in zip(webhooks, attempts, strict=True)}

    def record(document: NotifyDocument) -> None:
        for name in (name for name, error in errors.items() if not error):
            document.record_taken(name, state.now)

    with suppress(StateError):  # the messages were sent nevertheless
        await _change(state, record)
    return errors
