"""The exported alerts, checked and evaluated by Prometheus' own tool (Debian: prometheus)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT

HERE = Path(__file__).parent
PLAYS = [path.stem for path in sorted(HERE.glob("*.play.yaml"))]


def promtool(folder: Path, *words: str) -> None:
    done = subprocess.run(
        ["promtool", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    export = ["export", "alerts", str(HERE / "rules.yaml"), "--out", str(tmp_path / "alerts.yaml")]
    subprocess.run([sys.executable, "-m", "gateway", *export], check=True, cwd=ROOT)
    return tmp_path


def test_the_exported_alerts_are_valid_rules(exported: Path) -> None:
    promtool(exported, "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")


@pytest.mark.parametrize("play", PLAYS)
def test_the_alerts_fire_as_expected_for_recorded_series(play: str, exported: Path) -> None:
    (exported / "play.yaml").write_text((HERE / f"{play}.yaml").read_text())
    promtool(exported, "test", "rules", "play.yaml")


def test_the_shipped_configuration_has_valid_alerts(tmp_path: Path) -> None:
    out = str(tmp_path / "alerts.yaml")
    subprocess.run(
        [sys.executable, "-m", "gateway", "export", "alerts", "--out", out], check=True, cwd=ROOT
    )
    promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
