"""The README and the reference: commands answer what is shown, links lead somewhere."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, start_program
from tests.transcript import Reader, steps

README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
PAGES = ["README.md", "docs/reference.md", "docs/retire-v1.md"]


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
        yield Reader(tmp_path, {"GATEWAY_ADMIN_PORT": str(gateway.admin), **targets}, addresses)


def test_there_are_commands() -> None:
    """What the README shows is still found."""
    assert len(list(steps(README))) >= README.count("\n$ ") >= 10


def test_commands(reader: Reader) -> None:
    """The commands are one story, so they are run in their order."""
    reader.follow(README)
    reader.follow(REFERENCE)


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
