"""The notifier: the leader sends notifications and retries them until they are accepted."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from time import monotonic

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.base.mistakes import Issue
from gateway.findings import notifier as notifier_module
from gateway.findings.notifications import DOCUMENT, NotifyDocument, read_document
from gateway.findings.notifier import Notifier, chosen, notify, send_test
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import RefusedRules
from gateway.findings.webhook_client import webhook_session
from gateway.observe import log
from gateway.store.local import LocalState
from gateway.store.state import FailoverRank, StateError
from tests.gateway.kit import rules
from tests.gateway.operating import MakeOperator
from tests.gateway.rules.rules import loaded


class Receiver:
    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []
        self.stamps: list[int] = []
        self.status = 200
        app = web.Application()
        app.router.add_post("/", self._take)
        self.server = TestServer(app)

    async def _take(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.stamps.append(int(request.headers.get("webhook-timestamp", 0)))
        self.got.append((request.headers.get("webhook-id", ""), body.get("type", "")))
        return web.Response(status=self.status)

    def rules(self, more: str = "") -> str:
        return (
            f"notify: {{ webhooks: {{ ops: {{ url: '{self.server.make_url('/')}'{more} }} }} }}\n"
        )


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    async with found.server:
        yield found


async def look(operator: Operator) -> None:
    async with webhook_session() as session:
        notifier = Notifier(operator, session)
        await notifier.round()


async def document(operator: Operator) -> NotifyDocument:
    return read_document((await operator.state.read_document(DOCUMENT))[0])


def outcomes(operator: Operator) -> dict[str, int]:
    return {outcome: each.count for (outcome,), each in operator.totals.counted("notifications")}


def refuse_rules(operator: Operator, more: bytes = b"") -> None:
    operator.reloader.refused = RefusedRules(
        b"servces:" + more, (Issue(1, 1, "servces", "wrong"),), 5.0
    )


async def test_an_event_is_sent_once(operating: MakeOperator, receiver: Receiver) -> None:
    operator = operating(receiver.rules(", events: [rules.refused]"))
    await look(operator)
    assert receiver.got == []
    refuse_rules(operator)
    for _ in range(3):
        await look(operator)
    ((identity, kind),) = receiver.got
    assert kind == "rules.refused"
    (one,) = (await document(operator)).items
    assert (one.id, one.deliveries["ops"].state) == (identity, "sent")
    assert outcomes(operator) == {"sent": 1}


async def test_a_refused_message_is_retried_under_the_same_id(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules(", events: [rules.refused]"))
    refuse_rules(operator)
    receiver.status = 500
    await look(operator)
    await look(operator)  # the retry is not due yet
    assert len(receiver.got) == 1
    (one,) = (await document(operator)).items
    assert one.deliveries["ops"].error == "it responded with status 500"
    receiver.status = 200
    later = one.deliveries["ops"].due
    monkeypatch.setattr("time.time", lambda: later)
    await look(operator)
    assert len({*receiver.got}) == 1
    assert len(receiver.got) == 2
    assert outcomes(operator) == {"failed": 1, "sent": 1}


async def test_the_leader_reports_failing_webhooks(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook stops failing if it accepts a message or is removed from the configuration."""
    operator = operating(receiver.rules(", events: [rules.refused]"))
    refuse_rules(operator)
    receiver.status = 410
    await look(operator)
    await look(operator)
    assert operator.webhooks == {"ops": True}
    receiver.status = 200
    operator.reloader.refused = RefusedRules(b"servcs:", (Issue(1, 1, "servcs", "wrong"),), 9.0)
    await look(operator)
    await look(operator)
    assert operator.webhooks == {"ops": False}
    monkeypatch.setattr(LocalState, "leads", False)
    await look(operator)
    assert operator.webhooks == {}
    operator.webhooks["ops"] = True
    operator.reloader.latest = loaded(rules(1))
    await notify(operator)
    assert operator.webhooks == {}


async def test_only_the_leader_sends_notifications(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules())
    monkeypatch.setattr(LocalState, "leads", False)
    refuse_rules(operator)
    await look(operator)
    assert receiver.got == []
    assert [one.kind for one in (await document(operator)).items] == ["rules.refused"]
    monkeypatch.setattr(LocalState, "leads", True)
    await look(operator)
    assert "rules.refused" in [kind for _, kind in receiver.got]


async def test_an_unreachable_store_is_reported_and_recorded_later(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules(", events: [state.stale]"))
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now)
    async with webhook_session() as session:
        notifier = Notifier(operator, session)

        async def away() -> None:
            with monkeypatch.context() as patch:
                patch.setattr(LocalState, "stale_since", now - 60)
                await notifier.deliver_unstored()

        with monkeypatch.context() as patch:
            patch.setattr(LocalState, "failover", FailoverRank(1, 0))
            await away()
            assert receiver.got == []
        receiver.status = 500
        await away()
        receiver.status = 200
        await away()  # the retry is not due yet
        assert len(receiver.got) == 1
        await notifier.round()
        (one,) = (await document(operator)).items
        moment = monotonic() + 5
        monkeypatch.setattr(notifier_module, "monotonic", lambda: moment)
        for _ in range(2):
            await notifier.round()
    assert receiver.got == [(one.id, "state.stale")] * 2
    (one,) = (await document(operator)).items
    assert (one.deliveries["ops"].state, one.deliveries["ops"].attempts) == ("sent", 2)


@pytest.mark.parametrize(
    ("form", "rank", "most"),
    [("standard", 1, 1), ("standard", 2, 1), ("slack", 1, 1), ("slack", 2, 0), ("teams", 2, 0)],
)
async def test_a_replica_that_is_not_the_leader_reports_an_unreachable_store_later(
    form: str,
    rank: int,
    most: int,
    operating: MakeOperator,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader may be lost together with the store.

    For chats, only the deputy sends the message.
    """
    operator = operating(receiver.rules(f", form: {form}, events: [state.stale]"))
    monkeypatch.setattr(LocalState, "failover", FailoverRank(rank, 7))
    async with webhook_session() as session:
        notifier = Notifier(operator, session)
        for minutes, sent in [(4, 0), (6, most), (6, most)]:
            monkeypatch.setattr(LocalState, "stale_since", time.time() - 60 * minutes)
            await notifier.deliver_unstored()
            assert len(receiver.got) == sent


@pytest.mark.parametrize("jump", [-90_000, 90_000])
async def test_setting_the_clock_does_not_change_the_time_of_a_retry(
    jump: int, operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules(", events: [rules.refused]"))
    refuse_rules(operator)
    clock, moment = time.time(), monotonic()
    monkeypatch.setattr("time.time", lambda: clock)
    monkeypatch.setattr(notifier_module, "monotonic", lambda: moment)
    receiver.status = 500
    async with webhook_session() as session:
        notifier = Notifier(operator, session)

        async def turn() -> int:
            await notifier.round()
            return len(receiver.got)

        assert [await turn(), await turn()] == [1, 1]
        clock += jump
        assert [await turn(), await turn()] == [1, 1]
        moment += 5
        assert [await turn(), await turn()] == [2, 2]
        moment += 299
        clock -= 2 * jump
        assert await turn() == 2
        moment += 1
        assert [await turn(), await turn()] == [3, 3]
    first, second, third = receiver.stamps
    assert (second - first, third - second) == (jump, -2 * jump)


async def test_an_unreachable_store_is_timed_by_the_clock_of_the_store(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this machine may be an hour ahead of the clock of the database."""
    operator = operating(receiver.rules(", events: [state.stale]"))
    behind = time.time() - 3600
    monkeypatch.setattr(LocalState, "now", behind)
    async with webhook_session() as session:
        notifier = Notifier(operator, session)
        for seconds, sent in [(20, 0), (40, 1)]:
            monkeypatch.setattr(LocalState, "stale_since", behind - seconds)
            await notifier.deliver_unstored()
            assert len(receiver.got) == sent
    assert receiver.stamps == [int(behind)]  # receivers refuse old timestamps


async def test_late_notifications_are_logged_once_per_outage(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules())
    away = [True, True, False, True, True]
    events: list[str] = []

    async def round_(*_: object) -> None:
        if away and away.pop(0):
            raise StateError("the database is away")

    async def sleep(_: float) -> None:
        if not away:
            operator.reloader.latest = loaded(rules(1))

    monkeypatch.setattr(log, "event", lambda name, *_, **__: events.append(name))
    monkeypatch.setattr("asyncio.sleep", sleep)
    monkeypatch.setattr(Notifier, "round", round_)
    await notify(operator)
    assert events == ["notify_late"] * 2


async def test_an_unwritable_state_file_is_reported(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules(", events: [state.stale]"))
    monkeypatch.setattr(LocalState, "stale_since", 5.0)
    for _ in range(2):
        await look(operator)
    assert [kind for _, kind in receiver.got] == ["state.stale"]


async def test_the_beginning_of_a_configured_brownout_is_reported(
    operating: MakeOperator, receiver: Receiver
) -> None:
    operator = operating(receiver.rules())
    await look(operator)
    assert [kind for _, kind in receiver.got] == ["brownout.begun"]


async def test_a_test_message_returns_its_outcome(
    operating: MakeOperator, receiver: Receiver
) -> None:
    operator = operating(receiver.rules())
    configured = operator.rules.notify
    assert await send_test(operator, chosen(configured, None), "ann") == {"ops": ""}
    receiver.status = 403
    error = (await send_test(operator, chosen(configured, "ops"), "ann"))["ops"]
    assert error.startswith(
        "it responded with status 403; correct notify.webhooks.ops in the configuration,"
    )
    assert [kind for _, kind in receiver.got] == ["test", "test"]
    with pytest.raises(LookupError, match="no webhook is called 'opps'; did you mean 'ops'"):
        chosen(configured, "opps")


async def test_a_test_message_needs_a_webhook(operator: Operator) -> None:
    with pytest.raises(LookupError, match="add one to 'notify'"):
        chosen(operator.rules.notify, None)


async def test_a_slow_receiver_does_not_delay_messages_to_others(
    operating: MakeOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier_module, "_PATIENCE", 0.5)
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

        async def turn(notifier: Notifier) -> None:
            async with asyncio.timeout(10):
                await notifier.round()

        async with webhook_session() as session:
            notifier = Notifier(operator, session)
            for times in range(3):
                refuse_rules(operator, b" " * times)
                await turn(notifier)
            assert (asked, taken) == (1, 3)  # later messages wait for the response to the first
            answers.set()
            await turn(notifier)
            answers.clear()
            await turn(notifier)
            assert asked == 2
            refuse_rules(operator, b" " * 3)
            answers.set()
            await turn(notifier)
            await turn(notifier)
            assert (asked, taken) == (4, 4)
        items = (await document(operator)).items
        assert {each.deliveries["slow"].state for each in items} == {"sent"}


async def test_a_stopped_notifier_cancels_its_attempts(operating: MakeOperator) -> None:
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
        refuse_rules(operator)
        before = asyncio.all_tasks()
        task = asyncio.create_task(notify(operator))
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0.1)
        left = [each for each in asyncio.all_tasks() - before if "Notifier" in repr(each)]
        assert left == []
    assert [*operator.totals.counted("notifications")] == []
