"""The pages of docs/: generated pages are current, and other pages are short and linked."""

import re

import pytest

from stack.generate import GENERATED
from tests.gateway.kit import ROOT

PAGES = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
UNRELEASED = (ROOT / "CHANGELOG.md").read_text().split("\n## [Unreleased]\n")[1]


@pytest.mark.parametrize("path", GENERATED)
def test_generated_files_are_current(path: str) -> None:
    """After a failure, run `make generate`."""
    assert (ROOT / path).read_text() == GENERATED[path]()


def test_only_generated_pages_begin_with_generated() -> None:
    generated = {path.removeprefix("docs/") for path in GENERATED if path.endswith(".md")}
    assert {name for name, text in PAGES.items() if text.startswith("Generated ")} == generated


def test_a_page_is_at_most_three_screens_long() -> None:
    written = [name for name in PAGES if f"docs/{name}" not in GENERATED]
    assert [name for name in written if len(PAGES[name].encode()) > 15_000] == []


def test_the_readme_links_every_page() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page for page in PAGES if f"](docs/{page})" not in readme] == []


def test_the_unreleased_changes_fit_on_a_page() -> None:
    section = re.split(r"^## ", UNRELEASED, flags=re.MULTILINE)[0]
    assert len(section.strip().splitlines()) <= 60
