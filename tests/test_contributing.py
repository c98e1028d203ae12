"""The files and functions named in CONTRIBUTING.md and the pages about the code exist."""

import re

import pytest

import gateway
from tests.gateway.kit import ROOT

PAGES = ("CONTRIBUTING.md", "docs/architecture.md", "docs/walks.md")
TEXTS = {page: (ROOT / page).read_text() for page in PAGES}
RECIPES = {
    title: [line.partition(" ")[0] for line in block.splitlines()]
    for title, block in re.findall(
        r"^### ([^\n]+)\n(?:(?!^#).)*?^```files\n(.*?)^```$",
        TEXTS["CONTRIBUTING.md"],
        re.DOTALL | re.MULTILINE,
    )
}
PATHS = re.compile(r"`((?:gateway|tests|docs|stack|requirements)/[\w./*-]*)`")
# For example: `Pipeline.answer` in `gateway/proxy/pipeline.py`.
FUNCTIONS = re.compile(r"`([\w.]+)`\s+in\s+`(gateway/[\w/]+\.py)`")


def test_the_expected_recipes_are_found() -> None:
    assert list(RECIPES) == [
        *("A mechanism", "A change", "A command", "A key of gateway.yaml", "A metric", "A fault"),
    ]
    assert len(re.findall("^```files$", TEXTS["CONTRIBUTING.md"], re.MULTILINE)) == len(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_files_of_a_recipe_exist(recipe: str) -> None:
    assert [path for path in RECIPES[recipe] if not any(ROOT.glob(path))] == []


@pytest.mark.parametrize("page", TEXTS)
def test_the_named_files_exist(page: str) -> None:
    named = PATHS.findall(TEXTS[page])
    assert named
    assert [path for path in named if not any(ROOT.glob(path))] == []


def test_the_functions_of_the_walks_exist() -> None:
    walks = FUNCTIONS.findall(TEXTS["docs/architecture.md"] + TEXTS["docs/walks.md"])
    assert len(walks) > 20
    missing = [
        f"{name} in {path}"
        for name, path in walks
        if not re.search(
            rf"^ *(?:async )?(?:def|class) {name.rpartition('.')[2]}\b",
            (ROOT / path).read_text(),
            re.MULTILINE,
        )
    ]
    assert missing == []


def test_the_terms_of_the_package_docstring_are_in_the_glossary() -> None:
    section = TEXTS["docs/architecture.md"].split("## Glossary")[1].split("\n## ")[0]
    first = re.findall(r"^\| ([A-Z][^|]*) \|", section, re.MULTILINE)
    words = re.findall(r"^([A-Z]\w+) {2,}", gateway.__doc__ or "", re.MULTILINE)
    assert len(words) > 10
    assert set(words) <= {word for cell in first for word in cell.split(", ")}
