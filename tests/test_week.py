"""The commands of docs/week.md, from Monday to Friday, in real processes."""

from pathlib import Path

import pytest

from tests.gateway.kit import ROOT
from tests.transcript import beginner

pytestmark = pytest.mark.slow

WEEK = (ROOT / "docs" / "week.md").read_text()


def test_the_commands_of_the_week_print_the_shown_output(tmp_path: Path) -> None:
    with beginner(tmp_path) as reader:
        reader.follow(WEEK)
