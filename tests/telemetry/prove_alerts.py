"""monitoring/alerts.yml, checked and evaluated by Prometheus' own tool (Debian: prometheus)."""

import subprocess
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT

ALERTS = ROOT / "monitoring" / "alerts.yml"
PLAYS = [path.stem for path in sorted(Path(__file__).parent.glob("*.play.yaml"))]


def promtool(*words: str) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alerts_are_valid_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(ALERTS))


@pytest.mark.parametrize("play", PLAYS)
def test_the_alerts_fire_as_expected_for_recorded_series(play: str, tmp_path: Path) -> None:
    text = (Path(__file__).parent / f"{play}.yaml").read_text()
    (tmp_path / "play.yaml").write_text(text.replace("alerts.yml", str(ALERTS)))
    promtool("test", "rules", str(tmp_path / "play.yaml"))
