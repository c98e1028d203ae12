"""The task that finds events and sends their notifications, while webhooks are configured.

Messages are signed as Standard Webhooks asks, or written for a chat.
"""

import asyncio
import errno
import os
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from hmac import new as hmac
from math import inf
from time import monotonic
from typing import Any, TypedDict, cast
from uuid import uuid4

import msgspec
from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientError,
    ClientHttpProxyError,
    ClientProxyConnectionError,
    ClientResponseError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler

from gateway import __version__
from gateway.base.mistakes import suggest
from gateway.base.notify import Notify, Webhook
from gateway.findings import notifications as events
from gateway.findings.formatting import format_time
from gateway.findings.notifications import (
    DOCUMENT,
    Attempt,
    Event,
    Notification,
    NotifyDocument,
    read_document,
)
from gateway.findings.operator import Operator
from gateway.findings.summaries import UsageSummaries, retirable, version_summaries
from gateway.observe import log
from gateway.store.state import State, StateError
from gateway.usage.history import whole_history

# Seconds between two rounds; versions, whose usage takes long to read, are examined less often.
_INTERVAL = 5.0
_VERSIONS_INTERVAL = 600.0
# Messages sent to a webhook at a time: the first one, and the others once it is taken.
_AT_ONCE = 10
# How long a round waits for responses; the next one takes those that come later.
_PATIENCE = 2.0
# From the connection to the head of the response; Standard Webhooks suggests 15 to 30 seconds.
_SECONDS = 15.0
# Maximum bytes up to the end of the response head.
_BYTES = 64 * 1024
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

Observe = Callable[[NotifyDocument, float], list[Event]]


class SentTest(TypedDict):
    webhook: str
    error: str


async def notify(operator: Operator) -> None:
    async with webhook_session() as session:
        await Notifier(operator, session).run()


async def _change(state: State, change: Callable[[NotifyDocument], None]) -> None:
    def changed(former: object) -> object:
        document = read_document(former)
        change(document)
        return msgspec.to_builtins(document)

    await state.change_document(DOCUMENT, changed)


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

        def add(document: NotifyDocument) -> None:
            nonlocal dropped
            document.merge(self._unstored)
            found = [event for observe in observers for event in observe(document, now)]
            dropped = document.add(found, notify, now)
            document.forget_webhooks(notify.webhooks)

        # Most rounds change nothing, so they take no lock.
        document = read_document(stored)
        add(document)
        if msgspec.json.encode(document) != msgspec.json.encode(stored):
            await _change(state, add)
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
        if outcomes:
            await _change(state, partial(_record, outcomes, now))
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
        _record(outcomes, now, document)
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
            _, by_minute = whole_history(key)
            history = await operator.state.history(by_minute)
            found.append(events.brownout_ended(key, opening, history.series.get(key, {})))

        def observe(document: NotifyDocument, now: float) -> list[Event]:
            events.pop_ended_brownouts(document, now)
            return [
                *events.cutovers_moved(document, states, now),
                *events.replicas_lost(fleet),
                *events.brownouts_begun(document, versions, overrides, now),
                *found,
            ]

        return observe


def _record(
    outcomes: Mapping[str, Mapping[str, Attempt]], now: float, document: NotifyDocument
) -> None:
    for name, attempts in outcomes.items():
        document.record(name, attempts, now)


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
    """Send a test message to webhooks; `page` is the URL of the admin port, `who` an operator."""
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

    def record(document: NotifyDocument) -> None:
        for each in results:
            if not each["error"]:
                document.record_taken(each["webhook"], now)

    await _change(operator.state, record)


class _TooLongError(ClientError):
    """A receiver has sent too much before its response."""


class _BoundedHandler(ResponseHandler):
    """aiohttp bounds the response head, but not the number of interim responses (1xx) before it."""

    _left = _BYTES

    def set_response_params(self, **params: Any) -> None:
        self._left = _BYTES
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        taken, self._left = data[: max(self._left, 0)], self._left - len(data)
        if taken:
            super().data_received(taken)
        if self._left < 0 and self.transport is not None:
            self.set_exception(_TooLongError())  # a head that was complete is returned before it
            self.transport.abort()


def webhook_session() -> ClientSession:
    """Return a client for `post`; it uses the proxies of the environment (HTTPS_PROXY)."""
    # aiohttp's own context was made at the start, without the authorities.
    connector = TCPConnector(ssl=ssl.create_default_context())
    kind = cast(type[ResponseHandler], _BoundedHandler)
    connector._factory = partial(kind, loop=asyncio.get_running_loop())  # noqa: SLF001
    return ClientSession(connector=connector, trust_env=True, timeout=ClientTimeout(_SECONDS))


async def post(
    session: ClientSession, one: Notification, name: str, webhook: Webhook, now: float
) -> Attempt:
    """Post a message once.

    Args:
        now: the time of the attempt, in seconds since 1970.
    """
    body, fields = message(one, webhook, now)
    try:
        async with session.post(
            webhook.url, data=body, headers=fields, allow_redirects=False
        ) as response:
            status = response.status
    except TimeoutError:
        return Attempt(f"no answer within {_SECONDS:g} s")
    except _TooLongError:
        return Attempt(f"no answer within {_BYTES // 1024} KiB")
    except (ClientError, OSError, asyncio.IncompleteReadError) as error:
        reason = _reason(error, f"correct notify.webhooks.{name}.url in the rules")
        return Attempt(f"cannot be reached: {reason}")
    if 200 <= status < 300:
        return Attempt("")
    hint = f"; correct notify.webhooks.{name} in the rules, or see the log of the receiver"
    if status >= 500 or status in (408, 429):  # it can take none at the moment
        hint = ""
    # Standard Webhooks: 410 asks to send nothing more.
    return Attempt(f"it answered {status}{hint}", final=status == 410)


def _reason(error: Exception, correct: str) -> str:
    """Return why a webhook was not reached, and the remedy; the text of the error has the URL."""
    if isinstance(error, ClientProxyConnectionError | ClientHttpProxyError):
        return "the proxy of the environment lets nothing through; see HTTPS_PROXY and NO_PROXY"
    if isinstance(error, ClientConnectorDNSError):
        return f"its host has no address; {correct}, or see the DNS of this machine"
    if isinstance(error, ClientConnectorCertificateError):
        return "its certificate is not valid here; name its authority in SSL_CERT_FILE"
    if isinstance(error, ClientSSLError):
        return f"no TLS can be agreed on; is it one that begins with http:? {correct}"
    if isinstance(error, ClientResponseError):
        return f"what is there does not speak HTTP; {correct}"
    if not isinstance(error, OSError) or not error.errno:
        return "the connection ended without an answer; see the log of the receiver"
    if error.errno == errno.ECONNREFUSED:
        return f"nothing listens at its host and port; start the receiver, or {correct}"
    return f"{os.strerror(error.errno).lower()}; {correct}, or see the network of this machine"


def message(one: Notification, webhook: Webhook, now: float) -> tuple[bytes, dict[str, str]]:
    body = msgspec.json.encode(_content(one, webhook.form))
    stamp = str(int(now))
    fields = {
        "Content-Type": "application/json",
        "User-Agent": f"version-gateway/{__version__}",
        "webhook-id": one.id,
        "webhook-timestamp": stamp,
    }
    key = webhook.key()
    if key is not None:
        fields["webhook-signature"] = signature(key, one.id, stamp, body)
    return body, fields


def signature(key: bytes, identity: str, stamp: str, body: bytes) -> str:
    """Return the signature of Standard Webhooks: HMAC-SHA256 of id, time of attempt and body."""
    signed = b".".join((identity.encode(), stamp.encode(), body))
    return f"v1,{b64encode(hmac(key, signed, sha256).digest()).decode()}"


def _content(one: Notification, form: str) -> object:
    if form == "slack":
        text = one.text.translate(_SLACK)
        return {"text": f"{text} <{one.link}>" if one.link else text}
    if form == "teams":
        return _card(one)
    data = {
        "subject": one.subject,
        "text": one.text,
        **({"api": one.api, "version": one.version} if one.api else {}),
        **({"link": one.link} if one.link else {}),
    }
    return {"type": one.kind, "timestamp": format_time(one.at), "data": data}


def _card(one: Notification) -> object:
    # A TextBlock would read names as Markdown.
    text = {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": one.text}]}
    card: dict[str, object] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [text],
    }
    if one.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": one.link}]
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
