"""The fuzzer's targets, on seeds that hypothesis spoils and on bytes that it makes up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS

FEW = settings(derandomize=True, max_examples=150)


def spoiled(seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Return seeds in which a part is another: of any bytes, or of another seed."""

    def splice(seed: bytes, other: bytes, at: int, cut: int, put: bytes, take: int) -> bytes:
        at %= len(seed) + 1
        return seed[:at] + put + other[:take] + seed[at + cut :]

    several = st.sampled_from(seeds)
    short = st.integers(0, 12)
    return st.builds(
        splice, several, several, st.integers(0, 5000), short, st.binary(max_size=6), short
    )


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    for seed in TARGETS[name].seeds:
        TARGETS[name].run(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_a_little_fuzzing(name: str) -> None:
    target = TARGETS[name]

    @FEW
    @given(spoiled(target.seeds) | st.binary(max_size=80))
    def fuzz(data: bytes) -> None:
        target.run(data)

    fuzz()
