"""`make`: the virtual environment that it sets up, and `make run`."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Make = Callable[..., subprocess.CompletedProcess[str]]

FAKE_PYTHON = """\
#!/bin/sh
# As Python it makes an environment of itself; as the environment's Python it installs if it may.
echo "$@" >> {folder}/log
case "$1 $2" in
  "-m venv") mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
  "-m pip") test -e {folder}/online ;;
esac
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if "MAKE" not in name}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    return tmp_path / "venv"


@pytest.fixture
def make(venv: Path) -> Make:
    def make(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["make", f"VENV={venv}", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
        )

    return make


def test_make_refuses_a_python_that_is_too_old(make: Make, tmp_path: Path, venv: Path) -> None:
    old = script(tmp_path / "old", "#!/bin/sh\nexit 1\n")

    refused = make("run", f"PYTHON={old}")

    assert refused.returncode != 0
    assert "is older than Python 3.11; name a later one with PYTHON=" in refused.stderr
    assert str(old) in refused.stderr
    assert not venv.exists()


def test_an_incomplete_environment_is_created_again(make: Make, tmp_path: Path, venv: Path) -> None:
    python = script(tmp_path / "python", FAKE_PYTHON.format(folder=shlex.quote(str(tmp_path))))
    log = tmp_path / "log"
    goal = (f"PYTHON={python}", f"{venv}/run.stamp")

    assert make(*goal).returncode != 0, "there is no network yet"
    log.unlink()
    (tmp_path / "online").touch()
    assert make(*goal).returncode == 0
    made = log.read_text()
    assert f"-m venv --clear {venv}\n" in made
    assert "--require-hashes" in made

    assert make("--question", *goal).returncode == 0, "nothing is left to do"
    changed = ("--what-if", "requirements/run.txt")
    assert make("--question", *changed, *goal).returncode == 1, "the lock is newer"


def test_ctrl_c_ends_make_run_without_error_output(tmp_path: Path, venv: Path) -> None:
    script(venv / "bin/python", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (venv / "run.stamp").touch()
    prefixes = ("BACKEND_V1", "BACKEND_V2", "USERS", "GATEWAY", "GATEWAY_ADMIN")
    ports = {f"{prefix}_PORT": "0" for prefix in prefixes}
    users = {"USERS_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/users.db"}
    out = tmp_path / "stdout"
    with out.open("wb") as stdout:
        run = subprocess.Popen(
            ["make", "run", f"VENV={venv}"],
            cwd=ROOT,
            env=environment() | ports | users,
            stdout=stdout,
            stderr=subprocess.PIPE,
            process_group=0,
            # Shells make background processes ignore Ctrl-C, and child processes inherit this.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        deadline = time.monotonic() + 60
        while "Ctrl-C ends all four" not in out.read_text():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline, out.read_text()
            time.sleep(0.02)
        os.killpg(run.pid, signal.SIGINT)
        _, complaints = run.communicate(timeout=20)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGTERM)
            run.communicate()
    assert run.returncode == -signal.SIGINT, "a shell shows it as 130, as after any Ctrl-C"
    assert complaints == b""
