"""The outbox: batches are sent until they are confirmed, are counted once, and are bounded."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.evidence import EvidenceRow
from gateway.store.outbox import Batch, Outbox, decode
from gateway.usage.delta import CounterDelta, CutoverDelta, Delta, SampleDelta, UsageDelta
from gateway.usage.totals import ROWS_AFTER_CUT, Occurrences, Totals

KEY = ("person", "1")


def delta(client: str = "acme", count: int = 1) -> Delta:
    usage = UsageDelta(*KEY, "/p", client, count, 0, 0, count)
    sample = SampleDelta("differences", *KEY, {"field": "/name"}, {})
    return Delta(7.0, [usage], [], [CounterDelta("compared", KEY, count)], [], [sample])


def outbox() -> Outbox:
    return Outbox(lambda: 50.0)


def test_a_batch_has_the_outcomes_of_each_client_and_operation() -> None:
    box, ends = outbox(), [7, *[0] * 9]
    row = EvidenceRow("acme", "POST /p", 7, {"overdue": 1}, 2, 0, 7, 0.5)
    counted = CutoverDelta(*KEY, "new", 7, 1, ends, 0.5, [7], 0.5, rows=[row])
    box.absorb(Delta(7.0, [], [], [], [counted], []))
    batch = box.batch()
    assert batch is not None
    assert decode(batch.content)[1] == [counted]


def test_a_batch_does_not_change_until_it_is_confirmed() -> None:
    box = outbox()
    assert box.batch() is None
    box.absorb(delta())
    first = box.batch()
    assert first is not None
    assert first.sequence == 1
    box.absorb(delta(count=5))
    assert box.batch() == first
    box.confirm(7)
    assert box.batch() == first
    box.confirm(1)
    second = box.batch()
    assert second is not None
    assert second.sequence == box.sequence == 2
    assert decode(second.content)[0].counts["compared", KEY].count == 5
    box.confirm(2)
    assert box.batch() is None


def test_counts_get_the_time_of_the_database() -> None:
    box = outbox()
    box.absorb(delta())
    batch = box.batch()
    assert batch is not None
    totals = decode(batch.content)[0]
    (row,) = totals.clients[KEY].rows.values()
    assert (row.first, row.last, row.served) == (50.0, 50.0, 50.0)
    assert list(totals.samples["differences", *KEY]) == delta().samples


def test_the_times_of_counts_are_corrected_after_a_wrong_clock() -> None:
    """Only counts that are not in a batch yet are corrected."""
    box = outbox()
    box.absorb(delta())
    assert box.batch() is not None
    refused = UsageDelta(*KEY, "/p", "zed", 1, 1, 0, 0)
    box.absorb(msgspec.structs.replace(delta(), usages=[*delta().usages, refused]))
    box.shift(86_400.0 - 30)
    box.confirm(1)
    batch = box.batch()
    assert batch is not None
    totals = decode(batch.content)[0]
    at = 50.0 + 86_400 - 30
    found = {key[1]: row for key, row in totals.clients[KEY]}
    assert (found["acme"].first, found["acme"].last, found["acme"].served) == (at, at, at)
    assert (found["zed"].last, found["zed"].served) == (at, 0)
    assert totals.counts["compared", KEY] == Occurrences(1, at, at)
    assert [row.start for row in totals.history.rows()] == [86_400, 86_400]
    assert list(totals.samples["differences", *KEY]) == delta().samples


@given(st.lists(st.one_of(st.integers(1, 9), st.sampled_from(["lost", "unanswered", "confirmed"]))))
def test_each_count_arrives_exactly_once_despite_lost_confirmations(steps: list[int | str]) -> None:
    """A commit or its confirmation may be lost.

    The database accepts each batch number only once.
    """
    box, arrived, counted = outbox(), dict[int, Batch](), 0
    for step in [*steps, "confirmed", "confirmed"]:
        if isinstance(step, int):
            box.absorb(delta(count=step))
            counted += step
            continue
        batch = box.batch()
        if batch is None or step == "lost":
            continue
        assert arrived.setdefault(batch.sequence, batch) == batch
        if step == "confirmed":
            box.confirm(batch.sequence)
    merged = Totals()
    for batch in sorted(arrived.values(), reverse=True):
        merged.merge(decode(batch.content)[0])
    assert sum(row.count for clients in merged.clients.values() for _, row in clients) == counted
    assert list(arrived) == list(range(1, len(arrived) + 1))


def test_the_outbox_takes_bounded_memory_during_an_outage() -> None:
    box = outbox()
    for number in range(6 * ROWS_AFTER_CUT):
        box.absorb(delta(f"client{number}"))
    batch = box.batch()
    assert batch is not None
    rows = decode(batch.content)[0].clients[KEY].rows
    assert len(rows) <= 3 * ROWS_AFTER_CUT + 1
    assert sum(row.count for row in rows.values()) == 6 * ROWS_AFTER_CUT
    assert len(batch.content) < 1_000_000


def test_the_latest_10000_rows_of_evidence_are_kept_during_an_outage() -> None:
    """The sums of earlier outcomes are kept without their rows."""
    box, ends = outbox(), [1000, *[0] * 9]
    for number in range(20):
        rows = [EvidenceRow(f"{number}", "GET /p", 1) for _ in range(1000)]
        counted = CutoverDelta(*KEY, "new", 1000, 0, ends, 0.5, [1000], 0.5, rows=rows)
        box.absorb(Delta(7.0, outcomes=[counted]))
    batch = box.batch()
    assert batch is not None
    outcomes = decode(batch.content)[1]
    assert [each.requests for each in outcomes] == [1000] * 20
    assert [len(each.rows) for each in outcomes] == [0] * 10 + [1000] * 10


def test_a_batch_in_the_format_of_another_release_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="array"):
        decode(b"\x80")


def test_counts_that_a_worker_lost_are_reported_once() -> None:
    box = outbox()
    box.absorb(msgspec.structs.replace(delta(), lost=True))
    box.absorb(delta())
    batch = box.batch()
    assert batch is not None
    assert decode(batch.content)[2]
    box.absorb(msgspec.structs.replace(Delta(1.0, [], [], [], [], []), lost=True))
    box.confirm(1)
    batch = box.batch()
    assert batch is not None
    assert decode(batch.content)[2]
    box.confirm(2)
    assert box.batch() is None
    # A batch of an earlier release does not have the fields `lost` and `rejected`.
    fields = msgspec.msgpack.decode(batch.content)
    assert not decode(msgspec.msgpack.encode(fields[:-2]))[2]


def test_rejected_requests_do_not_change_the_format_of_the_former_release() -> None:
    box = outbox()
    box.absorb(Delta(7.0, [UsageDelta(*KEY, "/p", "acme", 3, 0, 0, 1, 2)]))
    batch = box.batch()
    assert batch is not None
    fields = msgspec.msgpack.decode(batch.content)
    assert [len(row) for row in fields[0]] == [11]
    (row,) = decode(batch.content)[0].clients[KEY].rows.values()
    assert (row.count, row.rejected, row.rejected_at) == (3, 2, 50.0)
    (row,) = decode(msgspec.msgpack.encode(fields[:-1]))[0].clients[KEY].rows.values()
    assert (row.count, row.rejected) == (3, 0)
