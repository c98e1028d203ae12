"""The reports of the mistakes in gateway.yaml that `mistakes.txt` lists."""

from collections.abc import Iterator
from itertools import groupby, takewhile
from pathlib import Path

import pytest

from tests.gateway.rules.rules import RULES, edited, loaded, report

TABLE = Path(__file__).with_name("mistakes.txt").read_text()


def mistakes() -> Iterator[object]:
    chapter, place = "", list[str]()
    for block in TABLE.strip().split("\n\n"):
        title, *lines = block.splitlines()
        if title.startswith("== "):
            chapter = title.removeprefix("== ")
        if title.startswith("# "):
            if lines[0].startswith("+"):
                lines = [*place, *lines]
            place = [*takewhile(lambda line: line.startswith("-"), lines)]
            yield pytest.param(*mistake(lines), id=f"{chapter}: {title.removeprefix('# ')}")


def mistake(lines: list[str]) -> tuple[str, list[str]]:
    *edits, expected = [list(run) for _, run in groupby(lines, sign)]
    text = RULES
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        text = edited(written(old), written(new), text)
    return text, expected


def written(lines: list[str]) -> str:
    return "\n".join(line[2:] for line in lines)


def sign(line: str) -> str:
    return line[0] if line[0] in "-+" else ""


def test_the_unedited_configuration_has_no_mistakes() -> None:
    assert loaded(RULES).summary == "2 services, 5 endpoints"


@pytest.mark.parametrize(("text", "expected"), list(mistakes()))
def test_a_mistake_is_reported_with_its_line_and_remedy(text: str, expected: list[str]) -> None:
    assert report(text) == expected


def test_all_mistakes_are_reported_together() -> None:
    text = edited("{ service: new }", "{ via: true }").replace("POST", "post")
    assert report(text) == [
        "14:14: apis.person.versions.2.via: expected a string; write it in quotes",
        (
            "22:35: apis.users.endpoints[0].methods[0]: not an HTTP method; write it in capitals, "
            "as in GET"
        ),
    ]
