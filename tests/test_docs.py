"""The pages: every command prints what is shown, links lead somewhere, lists are complete."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.admin.admin_app import admin_app
from gateway.admin.admin_guard import AdminGuard
from gateway.admin.metrics import exposition
from gateway.admin.operator import Operator
from gateway.config.load import load_file
from gateway.core.snapshot import Snapshot
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from tests.gateway.kit import ROOT, start_program
from tests.transcript import Reader, steps

PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
}
# The walk starts its programs itself, in tests/test_retire_v1.py.
RUN = [page for page, text in PAGES.items() if "```console" in text and "retire-v1" not in page]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Start the four programs in a folder like a clone's, for somebody who reads there."""
    programs = {"PERSON_V1": "backend_v1", "PERSON_V2": "backend_v2", "USERS": "users_service"}
    (tmp_path / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        targets = {
            variable: f"127.0.0.1:{start_program(stack, tmp_path, program).port}"
            for variable, program in programs.items()
        }
        gateway = start_program(stack, tmp_path, "gateway", **targets)
        shown = [f"127.0.0.1:{port}" for port in (8001, 8002, 8003)]
        addresses = dict(zip(shown, targets.values(), strict=True))
        addresses["127.0.0.1:8080"] = f"127.0.0.1:{gateway.port}"
        addresses["127.0.0.1:8090"] = f"127.0.0.1:{gateway.admin}"
        yield Reader(tmp_path, {"GATEWAY_ADMIN_PORT": str(gateway.admin), **targets}, addresses)


def test_there_are_commands() -> None:
    """What the pages show is still found; only `sh` blocks are not run, and set things up."""
    assert {"README.md", "docs/start.md", "docs/conversions.md", "docs/operate.md"} <= set(RUN)
    for page in RUN:
        assert len(list(steps(PAGES[page]))) >= PAGES[page].count("\n$ ") >= 1


@pytest.mark.parametrize("page", RUN)
def test_commands(page: str, reader: Reader) -> None:
    """The commands of a page are one story, so they are run in their order."""
    reader.follow(PAGES[page])


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    """A link within the repository names a file that is there, and a heading of it."""
    here = ROOT / page
    for path, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", here.read_text()):
        there = here.parent / path if path else here
        assert there.exists(), path
        titles = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE) if heading else []
        anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not heading or heading in anchors, heading


def table(page: str, heading: str) -> set[str]:
    """Return the names in the first column of the table under a heading."""
    section = PAGES[page].split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall("`([^`]*)`", cell)}


@dataclass
class Rules:
    """The rules of a gateway that has just been started."""

    latest: Snapshot
    loaded: int = 0
    rejected: int = 0


@pytest.fixture
def operator() -> Operator:
    """Return the operator of a gateway that has just been started."""
    rules = Rules(load_file(ROOT / "gateway.yaml", {}))
    writer = StateWriter(None)
    overrides = ActiveOverrides(writer)
    cutovers = CutoverController(writer, overrides, lambda: rules.latest)
    return Operator(writer, overrides, cutovers, rules, lambda: 1, lambda: None)


def test_every_path_of_the_admin_port_is_listed(operator: Operator) -> None:
    app = admin_app(operator, AdminGuard())
    paths = {resource.canonical for resource in app.router.resources()}
    shown = {path.replace("{api}", "API").replace("{version}", "VERSION") for path in paths}
    assert table("docs/operate.md", "The admin port") == shown


def test_every_metric_is_listed(operator: Operator) -> None:
    exposed = re.findall(r"^# TYPE (\S+)", exposition(operator).decode(), re.MULTILINE)
    assert table("docs/operate.md", "Metrics") == set(exposed)


def test_every_event_of_the_log_is_listed() -> None:
    logged = {"log", "target_up", "target_down"}  # by a variable, or by a condition
    for path in (ROOT / "gateway").rglob("*.py"):
        logged |= set(re.findall(r'log\.event\(\s*"(\w+)"', path.read_text()))
    assert table("docs/operate.md", "Logs") == logged
