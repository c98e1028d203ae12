"""The distribution: the wheel contains only the gateway, declares its dependencies, and runs."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from email.parser import Parser
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

import gateway
from gateway.access.jwt import Jwt
from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Mistakes
from gateway.store.state_location import parse_state
from tests.gateway.kit import DEADLINE, ROOT, wait_for

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Modules whose name differs from their distribution.
DISTRIBUTIONS = {
    "backports": "backports-zstd",
    "jwt": "pyjwt",
    "opentelemetry": "opentelemetry-exporter-otlp-proto-http",  # and its dependency, the SDK
    "yaml": "pyyaml",
}
# Python 3.14 includes what backports.zstd provides for earlier versions.
STANDARD = {*sys.stdlib_module_names, "compression"}

RULES = """\
workers: 2
rate_limits: [ { name: all, by: address, rate: 1000/s } ]
services: { s: { targets: ["http://127.0.0.1:PORT"] } }
apis:
  person:
    endpoints: [ { path: "/v{version}/person", version: { in: path } } ]
    versions: { "1": { via: "2" }, "2": { service: s } }
    conversions: [ { between: ["1", "2"], changes: [ { rename: { field: name, to: title } } ] } ]
"""


def names(requirements: list[str]) -> set[str]:
    found = (re.split(r"[\[ ;<>=~!]", line, maxsplit=1)[0] for line in requirements)
    return {name.replace(".", "-") for name in found}  # normalized as on PyPI


def lines(file: str) -> list[str]:
    texts = (ROOT / "requirements" / file).read_text().splitlines()
    return [line for line in texts if line and line[0] not in "# -"]


def imported() -> set[str]:
    modules: set[str] = set()
    for path in (ROOT / "gateway").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
    roots = {name.partition(".")[0] for name in modules} - STANDARD - {"gateway"}
    return {DISTRIBUTIONS.get(root, root.replace("_", "-")) for root in roots}


def test_imported_distributions_are_declared() -> None:
    declared = names(PROJECT["dependencies"])
    assert imported() == declared.union(*(names(extra) for extra in EXTRAS.values()))


def test_declared_distributions_are_pinned() -> None:
    pinned = names(lines("run.txt"))
    assert names(PROJECT["dependencies"]) | names(EXTRAS["jwt"]) <= pinned
    assert sorted(lines("verify.in")) == sorted(EXTRAS["verify"])


RELEASED = re.compile(r"^## \[(\d+\.\d+\.\d+)\]", re.MULTILINE)


def test_version_changelog_image_chart_and_tag_agree() -> None:
    (released, *_) = RELEASED.findall((ROOT / "CHANGELOG.md").read_text())
    chart = yaml.safe_load((ROOT / "charts/version-gateway/Chart.yaml").read_text())
    image = re.search(r'image\.version="(.*?)"', (ROOT / "Dockerfile").read_text())
    assert image is not None
    versions = {chart["version"], chart["appVersion"], image[1], released}
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    versions |= {tag.removeprefix("v") for tag in tags.stdout.split() if tag.startswith("v")}
    assert versions == {gateway.__version__}


@pytest.mark.parametrize(
    ("state", "package", "extra"),
    [("s.db", "sqlalchemy", "state"), ("postgresql://h/d", "asyncpg", "postgresql")],
)
def test_check_names_a_missing_extra_and_the_command_that_installs_it(
    state: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    mistakes = Mistakes()
    assert parse_state(state, mistakes) == state
    (warning,) = mistakes.warnings
    assert warning.text == (
        f"warning: needs {package}, which is not installed;"
        f" run: pip install 'version-gateway[{extra}]'"
    )


def test_a_jwt_key_without_the_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    config = Jwt(claim="sub", key="secret", algorithms=("HS256",))
    with pytest.raises(ValueError, match=r"run: pip install 'version-gateway\[jwt\]'"):
        config.compile(ConfigFiles(ROOT), str)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--quiet", "--no-build-isolation", "--check-build-dependencies", "--no-deps"]
    pip(*build, "--no-index", "--wheel-dir", str(folder), str(ROOT))
    (made,) = folder.iterdir()
    return made


def pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the installed command; the pinned packages are importable but the source is not."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    here = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "pinned.pth").write_text(f"{here}\n")
    python = str(folder / "bin" / "python")
    pip("--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    return folder / "bin" / "version-gateway"


def environment(**variables: str) -> dict[str, str]:
    ours = ("GATEWAY_", "PYTHON", "PERSON_", "USERS", "NAME_SEPARATOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, **variables}


def typed(command: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )


def test_the_wheel_contains_only_the_gateway(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        (metadata,) = (name for name in held if name.endswith("METADATA"))
        about = Parser().parsestr(archive.read(metadata).decode())
    found = (path for path in (ROOT / "gateway").rglob("*") if path.is_file())
    source = {str(path.relative_to(ROOT)) for path in found if path.suffix != ".pyc"}
    assert {name for name in held if ".dist-info/" not in name} == source
    assert (about["Name"], about["Version"]) == (PROJECT["name"], gateway.__version__)
    assert set(about.get_all("Provides-Extra", [])) == set(EXTRAS)


def test_the_installed_command_prints_its_version(command: Path, tmp_path: Path) -> None:
    done = typed(command, "--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"version-gateway {gateway.__version__}\n")


def test_the_help_of_the_installed_command_has_its_name(command: Path, tmp_path: Path) -> None:
    done = typed(command, "--help", folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: version-gateway ")


def test_the_installed_command_checks_a_configuration(command: Path, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(RULES.replace("PORT", "1"))
    done = typed(command, "check", "gateway.yaml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gateway.yaml: ")


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"name":"Bob"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@pytest.fixture
def service() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


# Removes what macOS, and interpreters without a wheel of uvloop, do not have. macOS also has no
# limit on descriptors, and refuses to set an unlimited number.
ELSEWHERE = """
import fcntl, os, resource, select, sys, time

for module, names in (
    (os, ("sched_getaffinity", "memfd_create", "pidfd_open")),
    (select, ("POLLRDHUP", "epoll")),
    (time, ("CLOCK_BOOTTIME",)),
):
    for name in names:
        delattr(module, name)
sys.modules["uvloop"] = None
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.getrlimit = lambda _: (soft, resource.RLIM_INFINITY)
set_limit = resource.setrlimit

def refusing(what, limits):
    if limits[1] > 10_240:
        raise ValueError("current limit exceeds maximum limit")
    set_limit(what, limits)

resource.setrlimit = refusing
"""


@pytest.mark.parametrize("elsewhere", [False, True], ids=["Linux", "without Linux features"])
def test_the_installed_command_serves_requests_with_two_workers(
    command: Path, service: int, tmp_path: Path, elsewhere: bool
) -> None:
    variables = {}
    if elsewhere:
        (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
        variables["PYTHONPATH"] = str(tmp_path)
    serve(command, service, tmp_path, **variables)


def serve(command: Path, service: int, folder: Path, **variables: str) -> None:
    """Start an installed gateway with two workers, send a request, and stop the gateway."""
    (folder / "gateway.yaml").write_text(RULES.replace("PORT", str(service)))
    output = folder / "log"
    with ExitStack() as stack:
        log = stack.enter_context(output.open("wb"))
        program = subprocess.Popen(
            [command],
            cwd=folder,
            env=environment(GATEWAY_PORT="0", GATEWAY_ADMIN_PORT="0", **variables),
            stdout=log,
            stderr=log,
            process_group=0,
        )
        stack.callback(program.wait, DEADLINE)
        stack.callback(program.terminate)
        wait_for(lambda: b'"listening"' in output.read_bytes() or program.poll() is not None)
        listening = json.loads(output.read_bytes().splitlines()[0])
        assert listening["workers"] == 2
        client = HTTPConnection(listening["url"].removeprefix("http://"), timeout=DEADLINE)
        client.request("GET", "/v1/person")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"title":"Bob"}')
        client.close()
    assert program.returncode == 0
