"""PostgreSQL for tests: a separate cluster in a temporary folder, on a free port.

It needs the programs of a PostgreSQL server (the Debian package postgresql). The server refuses to
run as root, so root starts it as the user `postgres`.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from tests.gateway.kit import DEADLINE

# Runs a statement and returns the lines of its output.
Execute = Callable[[str], list[str]]

_USER = "postgres"
PASSWORD = "s3cret/pass"  # noqa: S105  # of a server that lives as long as the test
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
log_min_messages = error
"""


def programs() -> Path:
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    assert folders, "no PostgreSQL server here; install the Debian package postgresql"
    return folders[0]


class Cluster:
    """A PostgreSQL server that can be stopped, suspended and started again on the same port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._programs = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="cluster-"))
        self._data = self._folder / "data"
        self._user = _USER if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self._folder, self._user)
        password = self._folder / "password"
        password.write_text(PASSWORD)
        authentication = ("--auth=scram-sha-256", f"--pwfile={password}", "--no-sync")
        self._run("initdb", f"--pgdata={self._data}", f"--username={_USER}", *authentication)
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(f"{_SETTINGS}port = {port}\n")
        self.start()

    def url(self, database: str = "postgres", port: int | None = None) -> str:
        where = f"127.0.0.1:{port or self.port}/{database}"
        return f"postgresql://{_USER}:{quote(PASSWORD, safe='')}@{where}"

    def start(self) -> None:
        log = self._folder / "log"
        self._run("pg_ctl", "start", "--wait", f"--pgdata={self._data}", f"--log={log}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` is a clean shutdown, `immediate` is like a kill."""
        self._run("pg_ctl", "stop", "--wait", f"--pgdata={self._data}", f"--mode={mode}")

    def shell(self, verb: str) -> str:
        option = {"start": f"--log={self._folder / 'log'}", "stop": "--mode=fast"}[verb]
        user = f"setpriv --reuid={self._user} --regid={self._user} --init-groups "
        command = (
            f"{self._programs / 'pg_ctl'} {verb} --wait --silent --pgdata={self._data} {option}"
        )
        return f"(cd {self._folder} && {user if self._user else ''}{command})"

    def create(self, database: str) -> str:
        self.execute(f"CREATE DATABASE {database}")
        return self.url(database)

    def execute(self, statement: str, database: str = "postgres") -> list[str]:
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(database)]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=DEADLINE
        ).stdout.splitlines()

    def serve_tls(self, certificate: str, key: str) -> None:
        for source, name in ((certificate, "server.crt"), (key, "server.key")):
            shutil.copy(source, self._data / name)
            (self._data / name).chmod(0o600)
            if self._user:
                shutil.chown(self._data / name, self._user)
        with (self._data / "postgresql.conf").open("a") as file:
            file.write("ssl = on\n")
        self.stop()
        self.start()

    def signal(self, number: signal.Signals) -> None:
        main = (self._data / "postmaster.pid").read_text().split()[0]
        tasks = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        for process in (main, *tasks):
            os.kill(int(process), number)

    def remove(self) -> None:
        self._run("pg_ctl", "stop", f"--pgdata={self._data}", "--mode=immediate", check=False)
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            user=self._user,
            timeout=60,
        )
        assert not check or not done.returncode, done.stderr
