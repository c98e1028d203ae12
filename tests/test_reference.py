"""The pages of docs/: generated ones are current, and each page answers one question."""

import re

import pytest

from stack.generate import GENERATED
from tests.gateway.kit import ROOT

PAGES = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
UNRELEASED = (ROOT / "CHANGELOG.md").read_text().split("\n## [Unreleased]\n")[1]


@pytest.mark.parametrize("path", GENERATED)
def test_generated_files_are_current(path: str) -> None:
    """If not: `make generate`."""
    assert (ROOT / path).read_text() == GENERATED[path]()


def test_generated_pages_begin_with_that_word() -> None:
    generated = {path.removeprefix("docs/") for path in GENERATED if path.endswith(".md")}
    assert {name for name, text in PAGES.items() if text.startswith("Generated ")} == generated


@pytest.mark.parametrize("page", [name for name in PAGES if f"docs/{name}" not in GENERATED])
def test_a_page_fits_on_three_screens(page: str) -> None:
    assert len(PAGES[page].encode()) <= 15_000


@pytest.mark.parametrize("page", PAGES)
def test_the_readme_leads_to_every_page(page: str) -> None:
    assert f"](docs/{page})" in (ROOT / "README.md").read_text()


def test_unreleased_fits_on_a_page() -> None:
    section = re.split(r"^## ", UNRELEASED, flags=re.MULTILINE)[0]
    assert len(section.strip().splitlines()) <= 60
