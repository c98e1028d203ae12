"""Every mistake that an operator can make gets its line in the report, word for word."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.gateway.rules.rules import RULES, edited, loaded, report

TABLE = Path(__file__).with_name("mistakes.txt").read_text()


def mistakes() -> Iterator[object]:
    """Read the table: the rules with a mistake in them, and what is to be reported of it."""
    chapter = ""
    for block in TABLE.strip().split("\n\n"):
        title, *lines = block.splitlines()
        if title.startswith("== "):
            chapter = title.removeprefix("== ")
        if title.startswith("# "):
            yield pytest.param(*mistake(lines), id=f"{chapter}: {title.removeprefix('# ')}")


def mistake(lines: list[str]) -> tuple[str, list[str]]:
    """Make the edits of one block; return the text and the report."""
    *edits, expected = [list(run) for _, run in groupby(lines, sign)]
    text = RULES
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        text = edited(written(old), written(new), text)
    return text, expected


def written(lines: list[str]) -> str:
    """Return lines of the table without their signs."""
    return "\n".join(line[2:] for line in lines)


def sign(line: str) -> str:
    """Tell apart what stands in the rules, what instead, and the report."""
    return line[0] if line[0] in "-+" else ""


def test_the_rules_have_none() -> None:
    assert loaded(RULES).summary == "2 services, 5 endpoints"


@pytest.mark.parametrize(("text", "expected"), list(mistakes()))
def test_report(text: str, expected: list[str]) -> None:
    assert report(text) == expected


def test_all_mistakes_are_reported_in_one_go() -> None:
    text = edited("{ service: new }", "{ via: 2 }").replace("POST", "post")
    assert report(text) == [
        "14:14: apis.person.versions.2.via: expected a text; write it in quotes",
        "22:35: apis.users.endpoints[0].methods[0]: not a method; write it in capitals, as in GET",
    ]
