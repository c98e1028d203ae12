"""Stores: what nobody has asked for is not imported."""

import subprocess
import sys

from tests.gateway.kit import ROOT


def test_a_gateway_without_state_imports_no_store() -> None:
    program = (
        "import sys, gateway.app, gateway.store.state_store;"
        " assert not {'sqlalchemy', 'alembic', 'sqlite3'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
