"""The configurations of these tests are explicit about lost data and values that do not fit."""

from argparse import Namespace
from pathlib import Path

import pytest

from gateway.cli import check


@pytest.mark.parametrize(
    "name", ["autoscaling.yaml", "elasticsearch.yaml", "github.yaml", "stripe.yaml"]
)
def test_a_strict_check_lists_only_intended_losses(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE", "http://127.0.0.1:8080")
    path = Path(__file__).with_name(name)
    assert check.run(Namespace(file=path, strict=True, env=None, json=False)) == 0
    *losses, _ = capsys.readouterr().out.splitlines()
    assert losses
    assert all(" allowed: " in line for line in losses)
