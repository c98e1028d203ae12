"""Word is sent once by whichever gateway judges, and again until it is taken."""

import json
import time
from collections.abc import AsyncIterator
from time import monotonic

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.base.mistakes import Issue
from gateway.findings import attempts
from gateway.findings.notification import DOCUMENT, NotifyDocument, read_document
from gateway.findings.notifier import Notifier, chosen, send_test
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import RefusedRules
from gateway.findings.webhook_client import WebhookClient
from gateway.observe import log
from gateway.store.local import LocalState
from gateway.store.state import FailoverRank, StateError
from tests.gateway.kit import rules
from tests.gateway.operating import MakeOperator
from tests.gateway.rules.rules import loaded


class Receiver:
    """Takes messages, or answers otherwise."""

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
    """Do what a notifier does every five seconds."""
    async with WebhookClient() as client:
        notifier = Notifier(operator)
        await notifier.look(operator.rules.notify)
        await notifier.deliver(operator.rules.notify, client)


async def document(operator: Operator) -> NotifyDocument:
    return read_document((await operator.state.read_document(DOCUMENT))[0])


def outcomes(operator: Operator) -> dict[str, int]:
    return {outcome: each.count for (outcome,), each in operator.totals.counted("notifications")}


def refuse_rules(operator: Operator) -> None:
    """Have a mistake in the rules on disk."""
    operator.reloader.refused = RefusedRules(b"servces:", (Issue(1, 1, "servces", "wrong"),), 5.0)


async def test_it_is_sent_once(operating: MakeOperator, receiver: Receiver) -> None:
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


async def test_it_is_tried_again_under_the_same_id(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules(", events: [rules.refused]"))
    refuse_rules(operator)
    receiver.status = 500
    await look(operator)
    await look(operator)  # it is not due yet
    assert len(receiver.got) == 1
    (one,) = (await document(operator)).items
    assert one.deliveries["ops"].error == "it answered 500"
    receiver.status = 200
    later = one.deliveries["ops"].due
    monkeypatch.setattr("time.time", lambda: later)
    await look(operator)
    assert len({*receiver.got}) == 1
    assert len(receiver.got) == 2
    assert outcomes(operator) == {"failed": 1, "sent": 1}


async def test_one_that_takes_nothing_is_counted_as_failing(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the gateway that sends; until it takes a message, or the rules have it no more."""
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
    monkeypatch.setattr(LocalState, "judges", False)
    await look(operator)
    assert operator.webhooks == {}
    operator.webhooks["ops"] = True
    operator.reloader.latest = loaded(rules(1))
    await Notifier(operator).run()
    assert operator.webhooks == {}


async def test_only_the_one_that_judges_sends(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another replica has seen is in the document all the same, for the one that does."""
    operator = operating(receiver.rules())
    monkeypatch.setattr(LocalState, "judges", False)
    refuse_rules(operator)
    await look(operator)
    assert receiver.got == []
    assert [one.kind for one in (await document(operator)).items] == ["rules.refused"]
    monkeypatch.setattr(LocalState, "judges", True)
    await look(operator)
    assert "rules.refused" in [kind for _, kind in receiver.got]


async def test_word_that_the_store_is_away(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent while nothing can be kept, tried again, and kept once the store is back."""
    operator = operating(receiver.rules(", events: [state.stale]"))
    rules, notifier = operator.rules.notify, Notifier(operator)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now)
    async with WebhookClient() as client:

        async def away() -> None:
            with monkeypatch.context() as patch:
                patch.setattr(LocalState, "stale_since", now - 60)
                await notifier.deliver_unstored(rules, client)

        with monkeypatch.context() as patch:
            patch.setattr(LocalState, "failover", FailoverRank(1, 0))
            await away()
            assert receiver.got == []
        receiver.status = 500
        await away()
        receiver.status = 200
        await away()  # it is not due yet
        assert len(receiver.got) == 1
        await notifier.look(rules)
        (one,) = (await document(operator)).items
        moment = monotonic() + 5
        monkeypatch.setattr(attempts, "monotonic", lambda: moment)
        for _ in range(2):
            await notifier.look(rules)
            await notifier.deliver(rules, client)
    assert receiver.got == [(one.id, "state.stale")] * 2
    (one,) = (await document(operator)).items
    assert (one.deliveries["ops"].state, one.deliveries["ops"].attempts) == ("sent", 2)


@pytest.mark.parametrize(
    ("form", "rank", "most"),
    [("standard", 1, 1), ("standard", 2, 1), ("slack", 1, 1), ("slack", 2, 0), ("teams", 2, 0)],
)
async def test_word_of_another_replica_that_the_store_is_away(
    form: str,
    rank: int,
    most: int,
    operating: MakeOperator,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that judged may be gone with the store; a chat gets no more than its deputy's."""
    operator = operating(receiver.rules(f", form: {form}, events: [state.stale]"))
    rules, notifier = operator.rules.notify, Notifier(operator)
    monkeypatch.setattr(LocalState, "failover", FailoverRank(rank, 7))
    async with WebhookClient() as client:
        for minutes, sent in [(4, 0), (6, most), (6, most)]:
            monkeypatch.setattr(LocalState, "stale_since", time.time() - 60 * minutes)
            await notifier.deliver_unstored(rules, client)
            assert len(receiver.got) == sent


@pytest.mark.parametrize("jump", [-90_000, 90_000])
async def test_a_clock_that_is_set(
    jump: int, operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed is tried again after as long as it should, whatever the clock says."""
    operator = operating(receiver.rules(", events: [rules.refused]"))
    rules, notifier = operator.rules.notify, Notifier(operator)
    refuse_rules(operator)
    clock, moment = time.time(), monotonic()
    monkeypatch.setattr("time.time", lambda: clock)
    monkeypatch.setattr(attempts, "monotonic", lambda: moment)
    receiver.status = 500
    async with WebhookClient() as client:

        async def turn() -> int:
            await notifier.look(rules)
            await notifier.deliver(rules, client)
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


async def test_how_long_the_store_is_away_goes_by_its_own_time(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this machine may be an hour ahead of the database's."""
    operator = operating(receiver.rules(", events: [state.stale]"))
    rules, notifier = operator.rules.notify, Notifier(operator)
    behind = time.time() - 3600
    monkeypatch.setattr(LocalState, "now", behind)
    async with WebhookClient() as client:
        for seconds, sent in [(20, 0), (40, 1)]:
            monkeypatch.setattr(LocalState, "stale_since", behind - seconds)
            await notifier.deliver_unstored(rules, client)
            assert len(receiver.got) == sent
    assert receiver.stamps == [int(behind)]  # receivers refuse one that is far from their own time


async def test_it_says_once_an_outage_that_word_is_late(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules())
    away = [True, True, False, True, True]
    events: list[str] = []

    async def look(*_: object) -> None:
        if away and away.pop(0):
            raise StateError("the database is away")

    async def sleep(_: float) -> None:
        if not away:
            operator.reloader.latest = loaded(rules(1))

    monkeypatch.setattr(log, "event", lambda name, *_, **__: events.append(name))
    monkeypatch.setattr("asyncio.sleep", sleep)
    monkeypatch.setattr(Notifier, "look", look)
    await Notifier(operator).run()
    assert events == ["notify_late"] * 2


async def test_word_that_a_file_cannot_be_written(
    operating: MakeOperator, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating(receiver.rules(", events: [state.stale]"))
    monkeypatch.setattr(LocalState, "stale_since", 5.0)
    for _ in range(2):
        await look(operator)
    assert [kind for _, kind in receiver.got] == ["state.stale"]


async def test_what_the_rules_have_is_looked_at(
    operating: MakeOperator, receiver: Receiver
) -> None:
    """The rules of the test have a brownout that has no end."""
    operator = operating(receiver.rules())
    await look(operator)
    assert [kind for _, kind in receiver.got] == ["brownout.begun"]


async def test_a_test_message(operating: MakeOperator, receiver: Receiver) -> None:
    operator = operating(receiver.rules())
    rules = operator.rules.notify
    (result,) = await send_test(rules, chosen(rules, None), "ann", 5.0)
    assert (result.webhook, result.error) == ("ops", "")
    receiver.status = 403
    (result,) = await send_test(rules, chosen(rules, "ops"), "ann", 5.0)
    assert result.error.startswith("it answered 403; correct notify.webhooks.ops in the rules,")
    assert [kind for _, kind in receiver.got] == ["test", "test"]
    with pytest.raises(LookupError, match="no webhook is called 'opps'; did you mean 'ops'"):
        chosen(rules, "opps")


async def test_there_is_nobody_to_send_a_test_to(operator: Operator) -> None:
    with pytest.raises(LookupError, match="name one in 'notify'"):
        chosen(operator.rules.notify, None)
