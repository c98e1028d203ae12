"""docs/reference.md has every key of gateway.yaml, with its description and its default."""

import re
from collections.abc import Iterator

import pytest

from gateway.config.changes.change_list import CHANGES
from gateway.config.mechanisms.registry import mechanism_names
from tests.gateway.config.keys import KEYS, Key
from tests.gateway.kit import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text()


def rows() -> Iterator[tuple[str, str]]:
    """Yield the path of each key in the tables, and its row."""
    section = ""
    for line in REFERENCE.splitlines():
        if match := re.match(r"###? (?:`(.+)`)?", line):
            section = f"{match[1]}." if match[1] else ""
        if match := re.match(r"\| `([^`]+)` \|.*\|.*\|$", line):
            yield f"{section}{match[1]}", line


ROWS = dict(rows())


def row(key: Key, name: str) -> str:
    """Return the row of a key; the column of the default stands for the sentence about it."""
    default = f"`{key.default}`" if key.default else "required" if key.required else ""
    text = key.description
    if key.default:
        text = re.sub(r" The default is .+\.$", "", text)
    return f"| `{name}` | {text} | {default} |"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_it_has_every_key_with_its_default(key: Key) -> None:
    """If not: the row that is missing is what this compares with."""
    found = ROWS.get(key.path, "")
    name = re.match(r"\| `([^`]+)`", found)
    assert found == row(key, name[1] if name else key.path)


@pytest.mark.parametrize("name", mechanism_names())
def test_it_has_every_mechanism(name: str) -> None:
    assert f"in: {name}" in REFERENCE


@pytest.mark.parametrize("name", CHANGES)
def test_it_has_every_change(name: str) -> None:
    assert re.search(rf"^\| `{name}[`:]", REFERENCE, re.MULTILINE)
