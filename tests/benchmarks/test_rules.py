"""The configurations that are generated for the benchmark can be loaded."""

from pathlib import Path

import pytest

from benchmarks import rules
from gateway.rules.load import load_file

ENVIRONMENT = {"BACKEND": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        (rules.converted(), None),
        (rules.stateless(), None),
        (rules.house(3, 2, 5), 24),
        (rules.chain(), 1),
        (rules.PEOPLE, 2),
        (rules.BULK, 1),
    ],
    ids=["converted", "stateless", "house", "chain", "people", "bulk"],
)
def test_generated_configurations_load(text: str, endpoints: int | None, tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    snapshot = load_file(file, ENVIRONMENT)
    assert endpoints is None or f"{endpoints} endpoint" in snapshot.summary


def test_the_converted_configuration_differs_from_the_shipped_one() -> None:
    assert rules.converted() != rules.shipped()
