"""A temporary PostgreSQL server for comparisons with the state in a database."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.lab import Lab
from benchmarks.scenario import SkippedError

_USER = "postgres"
_SETTINGS = """\
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
"""


def database(lab: Lab) -> str:
    """Start a server on the core of the load, until the lab is closed; return its URL.

    Raises:
        SkippedError: no server is installed.
    """
    programs, port = _programs(), lab.port()
    folder = Path(lab.resources.enter_context(TemporaryDirectory(prefix="bench-database-")))
    user = None
    if os.geteuid() == 0:  # as root, the server refuses to run
        user = _USER
        shutil.chown(folder, user)

    def run(program: str, *arguments: str) -> None:
        # The server inherits the core of this process.
        with (folder / "output").open("a") as output:
            subprocess.run(
                [programs / program, *arguments],
                cwd=folder,
                user=user,
                stdout=output,
                stderr=output,
                check=True,
            )

    data = folder / "data"
    run("initdb", f"--pgdata={data}", f"--username={_USER}", "--auth=trust", "--no-sync")
    with (data / "postgresql.conf").open("a") as file:
        file.write(f"{_SETTINGS}port = {port}\n")
    run("pg_ctl", "start", "--wait", f"--pgdata={data}", f"--log={folder / 'server.log'}")
    lab.resources.callback(run, "pg_ctl", "stop", f"--pgdata={data}", "--mode=immediate")
    return f"postgresql://{_USER}@127.0.0.1:{port}/postgres"


def _programs() -> Path:
    """Return the folder of the server's programs, which Debian does not put on the PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not folders:
        raise SkippedError("needs a PostgreSQL server (Debian: postgresql)")
    return folders[0]
