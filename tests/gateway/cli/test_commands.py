"""The output and the exit status of commands.

Commands that need a shell, and commands that serve, run as separate processes.
"""

import errno
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.machinery import ModuleSpec
from io import StringIO
from pathlib import Path

import pytest

from gateway import __version__, cli
from tests.command_line import run_here
from tests.fork_server import fork_server
from tests.gateway.kit import DEADLINE, ROOT

HERE = Path(__file__).parent
TRANSCRIPT = (HERE / "commands.txt").read_text()
# A command that can run in this process: it does not serve, and uses the shell only for variables.
ALONE = re.compile(r"((?:\w+=\S+ )*)python -m gateway ((?:-|[a-z](?!erve))[^|$<>]+)")
COMMANDS = [block.partition("\n") for block in TRANSCRIPT.strip().split("\n\n")[1:]]


Done = tuple[int, str, str]


def typed(command: str, folder: Path) -> Done:
    ours = ("GATEWAY_", "PERSON_", "USERS", "NAME_SEPARATOR", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    alone = ALONE.fullmatch(command)
    if not alone:
        return _in_a_shell(command, folder, kept)
    variables = dict(one.split("=", 1) for one in alone[1].split())
    out, err = StringIO(), StringIO()
    status = run_here(alone[2], folder, {**kept, **variables}, out, err)
    return status, out.getvalue(), err.getvalue()


def _in_a_shell(
    command: str, folder: Path, variables: dict[str, str], python: str | None = None
) -> Done:
    path = f"{Path(python or fork_server().python).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**variables, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    for name in ("explain.yaml", "broken.yaml", "lacking.yaml", "lacking.env", "broken.env"):
        shutil.copy(HERE / name, folder)
    return folder


@pytest.mark.parametrize(
    ("command", "printed"),
    [pytest.param(command.removeprefix("$ "), text, id=command) for command, _, text in COMMANDS],
)
def test_a_command_prints_the_output_in_commands_txt(
    command: str, printed: str, folder: Path
) -> None:
    status, out, err = typed(command, folder)
    shown = f"[{status}]\n" if status else ""
    assert f"{out}{err}{shown}" == (f"{printed}\n" if printed else "")
    # Results go to the standard output, errors to the standard error.
    assert not out if status else not err


def test_a_command_run_as_a_process_has_the_same_status_and_output(folder: Path) -> None:
    status, out, err = _in_a_shell(
        "python -m gateway check broken.yaml", folder, dict(os.environ), sys.executable
    )
    assert (status, out) == (1, "")
    assert "no service is called 'user'" in err


@pytest.mark.parametrize("variable", ["GATEWAY_PORT", "GATEWAY_ADMIN_PORT"])
def test_serve_fails_with_one_line_if_a_port_is_taken(variable: str, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ports = {"GATEWAY_PORT": 0, "GATEWAY_ADMIN_PORT": 0, variable: port}
        settings = " ".join(f"{name}={value}" for name, value in ports.items())
        status, out, err = typed(
            f"GATEWAY_CONFIG=explain.yaml {settings} python -m gateway", folder
        )
    assert (status, out) == (1, "")
    remedy = f"stop the program that listens there, or set {variable} to another port"
    assert err == f"cannot listen on 127.0.0.1:{port}: address already in use; {remedy}\n"


@pytest.mark.parametrize(
    ("host", "reason"),
    [("192.0.2.1", "cannot assign requested address"), ("a..b", "no host has this name")],
)
def test_serve_fails_with_one_line_for_an_invalid_host(
    host: str, reason: str, folder: Path
) -> None:
    settings = (
        f"GATEWAY_CONFIG=explain.yaml GATEWAY_PORT=0 GATEWAY_ADMIN_PORT=0 GATEWAY_HOST={host}"
    )
    status, out, err = typed(f"{settings} python -m gateway", folder)
    assert (status, out) == (1, "")
    assert err == f"cannot listen on {host}:0: {reason}\n"


def test_an_os_error_that_does_not_concern_the_output_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    monkeypatch.setattr("gateway.cli.schema.run", run)
    with pytest.raises(OSError, match="Too many open files"):
        cli.parse(["schema"])()


@pytest.mark.parametrize("arguments", ["--port 80", "launch", "check --strictly", "explain"])
def test_wrong_usage_prints_the_usage_and_exits_with_2(arguments: str) -> None:
    """The messages come from argparse and differ between versions of Python."""
    status, out, err = typed(f"python -m gateway {arguments}", ROOT)
    assert (status, out) == (2, "")
    assert err.startswith("usage: python -m gateway ")
    assert "error: " in err.splitlines()[-1]


def test_help_names_every_command_and_variable() -> None:
    status, out, err = typed("python -m gateway --help", ROOT)
    assert (status, err) == (0, "")
    commands = ["serve", "check", "explain", "verify", "schema"]
    commands += ["usage", "brownout", "cutover", "shadow", "notify", "fleet"]
    names = ["HOST", "PORT", "ADMIN_HOST", "ADMIN_PORT", "CONFIG", "GRACE"]
    for word in [*commands, *(f"GATEWAY_{name}" for name in names)]:
        assert word in out


def test_the_version_option_shows_that_modules_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = ModuleSpec(
        "gateway.routing.plan", None, origin="plan.cpython-311-x86_64-linux-gnu.so"
    )
    monkeypatch.setattr(cli, "find_spec", {"gateway.routing.plan": compiled}.get)
    with pytest.raises(SystemExit):
        cli.parse(["--version"])
    assert capsys.readouterr().out == f"version-gateway {__version__} (compiled)\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("cut", ["cutover"]),
        ("cutover s", ["set", "show"]),
        ("usage --ret", ["--retire"]),
        ("check ./gateway.y", ["./gateway.yaml"]),
    ],
)
def test_bash_completes_commands_actions_options_and_files(
    words: str, completed: list[str]
) -> None:
    script = f"""source /dev/stdin
        COMP_WORDS=(version-gateway {words})
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _shtab_version_gateway && printf '%s\n' "${{COMPREPLY[@]}}" """
    _, completion, _ = typed("python -m gateway --print-completion bash", ROOT)
    shell = ["bash", "--norc", "-c", script]
    found = subprocess.run(shell, input=completion, cwd=ROOT, capture_output=True, text=True)
    assert (sorted(found.stdout.split()), found.returncode) == (completed, 0), found.stderr


def test_every_module_of_the_package_is_a_command_with_a_line_of_help() -> None:
    assert sorted(path.stem for path in (ROOT / "gateway/cli").glob("[a-z]*.py")) == cli.COMMANDS
    shown = cli.parsers().format_help()
    assert all(cli.command_named(name).HELP.split(" ")[0] in shown for name in cli.COMMANDS)
