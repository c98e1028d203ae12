"""The lease of the leader: one replica at a time holds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.leader import LEASE_SECONDS, NO_LEASE, Lease

NOW = 1_000.0


@pytest.mark.parametrize(
    ("lease", "asks", "expected"),
    [
        pytest.param(NO_LEASE, "a", Lease("a", 1, NOW), id="the first"),
        pytest.param(Lease("a", 1, NOW - 1), "a", Lease("a", 1, NOW), id="renewed"),
        pytest.param(Lease("a", 1, NOW - 1), "b", None, id="of another"),
        pytest.param(Lease("a", 1, NOW - LEASE_SECONDS), "b", None, id="of another, to the end"),
        pytest.param(Lease("a", 1, NOW - 3), "b", Lease("b", 2, NOW), id="of one that is gone"),
        pytest.param(
            Lease("a", 1, NOW - 3), "a", Lease("a", 2, NOW), id="of one that was suspended"
        ),
        pytest.param(Lease("a", 7, 0.0), "b", Lease("b", 8, NOW), id="given up"),
        pytest.param(Lease("a", 7, NOW + 9), "b", Lease("b", 8, NOW), id="the clock was set back"),
    ],
)
def test_one_replica_leads_until_its_lease_expires(
    lease: Lease, asks: str, expected: Lease | None
) -> None:
    assert lease.acquired(asks, NOW) == expected
    assert (expected is None) <= (not lease.is_free(NOW))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5)), max_size=40))
def test_tokens_of_leases_only_rise(asked: list[tuple[str, float]]) -> None:
    """A leader that is suspended and asks again has another token than before, or none."""
    lease, now, leads = NO_LEASE, NOW, dict[int, str]()
    for start, pause in asked:
        now += pause
        found = lease.acquired(start, now)
        if found is None:
            assert now - lease.renewed <= LEASE_SECONDS
            continue
        assert found.token >= lease.token
        assert leads.setdefault(found.token, start) == start
        lease = found
