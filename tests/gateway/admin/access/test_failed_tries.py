"""Wrong tokens are bounded by address, and addresses in number."""

import pytest

from gateway.admin.access.failed_tries import OTHERS, FailedTries, FailedTry


def test_twenty_at_once_and_one_every_three_seconds() -> None:
    tries = FailedTries()
    for _ in range(20):
        assert tries.add("a", 100.0) == FailedTry("a", 0)
    assert tries.add("a", 100.0) == FailedTry("a", 3, starts=True)
    assert tries.add("a", 101.5) == FailedTry("a", 2)
    assert tries.add("b", 100.0).wait == 0
    assert tries.add("a", 103.0) == FailedTry("a", 0, unlogged=2)
    assert tries.add("a", 103.0) == FailedTry("a", 3)
    assert tries.add("a", 106.0) == FailedTry("a", 0, unlogged=1)
    assert tries.add("a", 109.0) == FailedTry("a", 0)
    for _ in range(20):
        assert tries.add("a", 200.0) == FailedTry("a", 0)
    assert tries.add("a", 200.0) == FailedTry("a", 3, starts=True)


def test_addresses_after_the_first_1024_share_one_bound() -> None:
    tries = FailedTries()
    for number in range(1024):
        assert tries.add(f"192.0.{number}", 0.0).of == f"192.0.{number}"
    for number in range(20):
        assert tries.add(f"new {number}", 1.0) == FailedTry(OTHERS, 0)
    assert tries.add("new 20", 1.0) == FailedTry(OTHERS, 3, starts=True)
    assert tries.add("new 21", 1.0) == FailedTry(OTHERS, 3)
    assert tries.add("192.0.0", 1.0) == FailedTry("192.0.0", 0)
    # All tries of the other 1,023 are available again.
    assert tries.add("new 22", 3.0) == FailedTry("new 22", 0)
    assert len(tries._rows) == 3


@pytest.mark.parametrize(
    ("address", "other", "of"),
    [
        ("2001:db8::1", "2001:db8::ffff:0:0:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::2", "fe80::/64"),
        ("192.0.2.1", "::ffff:192.0.2.1", None),
        ("", "", ""),
    ],
)
def test_addresses_of_one_ipv6_network_share_one_bound(
    address: str, other: str, of: str | None
) -> None:
    tries = FailedTries()
    assert tries.add(address, 0.0).of == (address if of is None else of)
    if of is not None:
        assert tries.add(other, 0.0).of == of
