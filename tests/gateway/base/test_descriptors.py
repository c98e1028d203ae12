"""The division of a process's file descriptors."""

import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.base import descriptors
from tests.gateway.kit import DEADLINE, ROOT, held_port, rules, wait_for


@pytest.mark.parametrize(
    ("soft", "clients", "admin"),
    [(1_000_000, 499_712, 256), (1024, 416, 64), (256, 80, 16), (66, 1, 4), (10, 1, 1)],
)
def test_clients_and_admin_connections_have_shares_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, soft: int, clients: int, admin: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, 4096))
    assert (descriptors.max_clients(), descriptors.max_admin_connections()) == (clients, admin)


def test_the_limit_is_raised_to_the_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    descriptors.raise_limit()
    assert limits == {resource.RLIMIT_NOFILE: (4096, 4096)}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_gateway_starts_without_standard_streams(workers: str, tmp_path: Path) -> None:
    """No socket gets the number of a standard stream, and the log is not written into a socket."""
    config = tmp_path / "gateway.yaml"
    config.write_text(rules(9))
    with ExitStack() as held:
        port = held_port(held)
        given = {
            "GATEWAY_CONFIG": str(config),
            "GATEWAY_PORT": str(port),
            "GATEWAY_ADMIN_PORT": "0",
        }
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" -m gateway 0<&- 1>&- 2>&-', sys.executable],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "GATEWAY_CONFIG": str(config),
                "GATEWAY_WORKERS": workers,
                **given,
            },
        )

        def status() -> bytes | None:
            assert process.poll() is None
            try:
                with socket.create_connection(("127.0.0.1", port), DEADLINE) as client:
                    client.sendall(b"GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    return b"".join(iter(lambda: client.recv(65536), b"")).partition(b"\r\n")[0]
            except ConnectionError:
                return None

        try:
            for _ in range(2):
                assert wait_for(status).startswith(b"HTTP/1.1 404")
            process.terminate()
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()
            process.wait()
