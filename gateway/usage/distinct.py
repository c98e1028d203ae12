"""Distinct: how many different names were seen, in bounded memory, mergeable in any order.

It keeps the smallest hashes of the names (Bar-Yossef et al., "Counting distinct elements in a data
stream", 2002). While there are fewer names than it keeps, the count is exact. Beyond that, the
standard error is 1/sqrt(kept - 2): 6 % of 256. Two of these are merged by keeping the smallest of
both, and whoever was seen in both counts once.
"""

import sys
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable
from hashlib import blake2b

_HASHES = 2**64


def name_hash(name: str) -> int:
    """Return the hash of a name, the same in every process: 64 bits."""
    return int.from_bytes(blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest())


class Distinct:
    """The smallest hashes of the names that were seen.

    Args:
        kept: the number of hashes to keep, 3 or more.
        content: what the attribute `content` of another one has.
    """

    __slots__ = ("_content", "_hashes", "_kept")

    def __init__(self, kept: int, content: bytes = b"") -> None:
        self._kept = kept
        # Of many, nobody asks for more than the number.
        self._content = content[: 8 * kept]
        self._hashes: array[int] | None = None

    def add(self, hashes: Iterable[int]) -> None:
        """Add names by their hashes; see `name_hash`."""
        found = self._hashes
        if found is None:
            found = self._hashes = unpacked(self._content)
        for one in hashes:
            if len(found) >= self._kept and one >= found[-1]:
                continue
            place = bisect_left(found, one)
            if place < len(found) and found[place] == one:
                continue
            insort(found, one)
            del found[self._kept :]

    def merge(self, other: "Distinct") -> None:
        """Add the names that another one has seen."""
        self.add(unpacked(other.content))

    @property
    def count(self) -> int:
        """The number of names; an estimate if there are as many as are kept, or more."""
        content = self.content
        if len(content) < 8 * self._kept:
            return len(content) // 8
        return round((self._kept - 1) * _HASHES / (int.from_bytes(content[-8:], "little") + 1))

    @property
    def content(self) -> bytes:
        """The hashes as bytes; see `packed`."""
        return self._content if self._hashes is None else packed(self._hashes)


def packed(numbers: "array[int]") -> bytes:
    """Return numbers as bytes, 8 each, the lowest first."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def unpacked(content: bytes) -> "array[int]":
    """Return the numbers of `packed`."""
    numbers = array("Q", content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
