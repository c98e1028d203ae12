"""docs/conversions.md shows every change by an example, and each example is what happens."""

import json
import re
from pathlib import Path

import pytest

from gateway.config.changes.change_list import CHANGES, ChangeConfig
from gateway.config.changes.change_site import BodySite
from gateway.config.text.mistakes import Mistakes
from gateway.config.text.source import read
from gateway.core.conversion.chain import Conversion, Direction, VersionLink
from gateway.core.conversion.changes.rename import Rename
from gateway.core.versions.version import Version
from gateway.proxy.body import json_body

PAGE = (Path(__file__).parents[1] / "docs" / "conversions.md").read_text()
ROWS = re.findall(r"^\| `(\w+: \{.*\})` \| `(\{.*?\})` \| `(\{.*?\})` \|$", PAGE, re.MULTILINE)
GROUPS = {"item": (Rename((), ("name",), ("title",)),)}


def compact(text: str) -> str:
    """Return a JSON text without the white space that makes it readable."""
    return re.sub(r'("[^"]*")|\s', r"\1", text)


def test_every_change_has_an_example() -> None:
    assert {written.partition(":")[0] for written, _, _ in ROWS} == CHANGES.keys()
    assert len(ROWS) == len(re.findall(r"^\| `\w+: ", PAGE, re.MULTILINE))


@pytest.mark.parametrize(("written", "newer", "older"), ROWS)
def test_it_is_what_happens(written: str, newer: str, older: str) -> None:
    data = read(written.encode(), "example", {}).data
    ((_, section),) = ChangeConfig.model_validate_json(json.dumps(data)).named().items()
    mistakes = Mistakes()
    change = section.body_change(BodySite((), mistakes, GROUPS))
    assert change is not None
    assert not mistakes.found
    link = VersionLink(Version(1), Version(2), (change,))
    for direction, given, wanted in (
        (Direction.DOWN, newer, older),
        (Direction.UP, older, newer),
    ):
        found = json_body.convert(compact(given).encode(), Conversion((link,), direction))
        assert found.decode() == compact(wanted)
