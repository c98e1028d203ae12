"""The week of docs/week.md, done as it stands, from Monday to Friday, by real processes."""

from pathlib import Path

import pytest

from tests.gateway.kit import ROOT
from tests.transcript import beginner

pytestmark = pytest.mark.slow

WEEK = (ROOT / "docs" / "week.md").read_text()


def test_the_week(tmp_path: Path) -> None:
    """Each command prints what is shown."""
    with beginner(tmp_path) as reader:
        reader.follow(WEEK)
