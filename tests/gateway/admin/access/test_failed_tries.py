"""Wrong tokens are bounded by address, and addresses in number."""

from gateway.admin.access.failed_tries import FailedTries


def test_twenty_at_once_and_one_every_three_seconds() -> None:
    tries = FailedTries()
    for _ in range(20):
        assert tries.wait("a", 100.0) == 0
        tries.add("a", 100.0)
    assert tries.wait("a", 100.0) == 3
    assert tries.wait("a", 101.5) == 2
    assert tries.wait("b", 100.0) == 0
    assert tries.wait("a", 103.0) == 0
    tries.add("a", 103.0)
    assert tries.wait("a", 103.0) == 3
    assert tries.wait("a", 200.0) == 0


def test_the_oldest_of_many_addresses_is_forgotten() -> None:
    tries = FailedTries()
    for _ in range(20):
        tries.add("first", 0.0)
        tries.add("second", 0.0)
    for number in range(1022):
        tries.add(str(number), 1.0)
    assert tries.wait("first", 1.0) > 0
    tries.add("one more", 1.0)
    assert tries.wait("first", 1.0) == 0
    assert tries.wait("second", 1.0) > 0
