"""TLS with the database: a server other than the one in the URL is refused, in one line."""

from pathlib import Path

import pytest

from gateway.store.fleet import FleetState
from gateway.store.state import StateError
from tests.fleet.cluster import Cluster
from tests.fleet.prove_state import ANN, KEY, membership
from tests.gateway.admin.access.certificates import write_certificate


async def test_a_database_server_with_another_name_is_refused(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    tls = write_certificate(tmp_path)
    own_cluster.serve_tls(tls.certificate, tls.key)
    database = own_cluster.create("tls")
    other = write_certificate(tmp_path, "other").certificate
    verified = f"sslmode=verify-full&sslrootcert={tls.certificate}"
    for url, reason in (
        (f"{database}?sslmode=verify-full&sslrootcert={other}", "name the authority of its"),
        (
            f"{database.replace('127.0.0.1', 'localhost')}?{verified}",
            "use the host name of the cert",
        ),
    ):
        with pytest.raises(StateError, match=f"TLS with the server failed: .*; {reason}") as caught:
            await FleetState.open(*membership(url, "a", tmp_path))
        assert "\n" not in str(caught.value)
    state = await FleetState.open(*membership(f"{database}?{verified}", "a", tmp_path))
    await state.set_percent(KEY, 50.0, ANN)
    await state.close()
