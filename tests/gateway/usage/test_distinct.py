"""Distinct names are counted exactly while they are few, and whoever is seen twice counts once."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.usage.distinct import Distinct, name_hash, packed, unpacked
from tests.gateway.world import LAW

HASHES = st.lists(st.integers(0, 2**64 - 1))


def seen(hashes: list[int], kept: int = 8) -> Distinct:
    found = Distinct(kept)
    found.add(hashes)
    return found


@LAW
@given(HASHES, HASHES)
def test_the_order_does_not_matter(first: list[int], second: list[int]) -> None:
    merged = seen(first)
    merged.merge(seen(second))
    assert merged.content == seen(second + first).content
    assert unpacked(merged.content).tolist() == sorted({*first, *second})[:8]
    assert Distinct(8, merged.content).count == merged.count


def test_few_are_counted_and_many_estimated() -> None:
    for number in (0, 1, 255):
        assert seen([name_hash(str(n)) for n in range(number)] * 2, 256).count == number
    for number in (256, 10_000, 100_000):
        found = seen([name_hash(str(n)) for n in range(number)], 256)
        assert 0.8 * number < found.count < 1.2 * number  # three standard errors
        assert len(found.content) == 2048


def test_a_hash_is_the_same_in_every_process() -> None:
    assert name_hash("acme") == 0x3026_57B3_3C4D_A281
    assert name_hash("\udcff") != name_hash("")
    assert packed(unpacked(b"\1" + bytes(7))) == b"\1" + bytes(7)
    assert unpacked(b"\1" + bytes(7)).tolist() == [1]
