"""What the tests of the admin port share: an operator of a gateway that serves nobody."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.admin.operator import Operator
from gateway.process.reloader import Reloader
from gateway.state.local_state import LocalState
from gateway.state.state_writer import StateWriter
from gateway.verify.live.documented_operations import DocumentedOperations
from tests.gateway.kit import rules

MakeOperator = Callable[[str], Operator]


@pytest.fixture
def operating(tmp_path: Path) -> MakeOperator:
    """Make an operator of rules that begin with a text."""

    def make(text: str) -> Operator:
        path = tmp_path / "gateway.yaml"
        brownout = '"2": { service: s, brownout: { percent: 100 } }'
        path.write_text(text + rules(1).replace('"2": { service: s }', brownout))
        reloader, writer = Reloader(path, {}), StateWriter(None)
        state = LocalState(writer, "a", lambda: reloader.latest, lambda: "hash")
        documented = DocumentedOperations(tmp_path)
        return Operator(state, reloader, lambda: 1, lambda: None, documented)

    return make


@pytest.fixture
def operator(operating: MakeOperator) -> Operator:
    """Make an operator."""
    return operating("")
