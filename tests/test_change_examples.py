"""The examples in docs/change-examples.md cover every change and show its actual results."""

import json
import re
from pathlib import Path

import pytest

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import BodyConversion
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.registry import CHANGES, ChangeConfig
from gateway.conversion.changes.rename import rename
from gateway.conversion.formats import json_body
from gateway.conversion.message import Message, QueryWalk
from gateway.conversion.parameter_change import ParameterLine, parse_query
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rules.document import read
from gateway.versions.version import Version

PAGE = (Path(__file__).parents[1] / "docs" / "change-examples.md").read_text()
ROWS = re.findall(
    r"^\| `((?:\{ )?\w+: \{.*\})` \| `(\{.*?\})` \| `(\{.*?\})` \|$", PAGE, re.MULTILINE
)
GROUPS = {"item": (rename((), ("name",), ("title",)),)}


BESIDE = re.findall(
    r"^\| `(\w+: \{.*\})` \| `(\{.*?\})`(?: with `(.*?)`)? \| `(\{.*?\})`(?: with `(.*?)`)? \|$",
    PAGE.partition("`GET /v2/orders?cursor=a&size=2`")[2],
    re.MULTILINE,
)


def compact(text: str) -> str:
    return re.sub(r'("[^"]*")|\s', r"\1", text)


def test_every_change_has_an_example() -> None:
    written = [row[0].removeprefix("{ ") for row in (*ROWS, *BESIDE)]
    assert {one.partition(":")[0] for one in written} == CHANGES.keys()
    assert len(written) == len(re.findall(r"^\| `(?:\{ )?\w+: ", PAGE, re.MULTILINE))


@pytest.mark.parametrize(("written", "newer", "by_newer", "older", "by_older"), BESIDE)
def test_a_field_moves_between_a_body_and_a_header_or_query_as_in_the_example(
    written: str, newer: str, by_newer: str, older: str, by_older: str
) -> None:
    data = read(written.encode(), "example", {}).data
    ((_, section),) = ChangeConfig.model_validate_json(json.dumps(data)).named().items()
    mistakes = Mistakes()
    change = section.body_change(BuildContext(mistakes, between=(Version(1, "1"), Version(2, "2"))))
    assert change is not None
    assert not mistakes.found
    link = VersionLink(
        Version(1, "1"), Version(2, "2"), (change,), needs_message=section.needs_message
    )
    for direction, given, beside, wanted, then in (
        (Direction.DOWN, newer, by_newer, older, by_older),
        (Direction.UP, older, by_older, newer, by_newer),
    ):
        message = surrounded(beside, is_request="?" in f"{by_newer}{by_older}"[:1])
        body = compact(given).encode()
        found = json_body.convert(body, BodyConversion((link,), direction), message)
        assert found.decode() == compact(wanted)
        texts = [f"?{line.name}={line.value}" for line in message.query if message.status is None]
        texts += [f"{line.name}: {line.value}" for line in message.headers]
        assert texts == ([then] if then else [])


def surrounded(beside: str, *, is_request: bool) -> Message:
    if is_request:
        lines = parse_query(beside.removeprefix("?"))
        return Message("POST", "/v2/orders", query=lines, way=QueryWalk(lines, ()))
    name, _, value = beside.partition(": ")
    fields = [ParameterLine(name.lower(), name, value)] if beside else []
    way = QueryWalk(parse_query("cursor=a&size=2"), ())
    return Message("GET", "/v2/orders", target="/v2/orders", status=200, headers=fields, way=way)


@pytest.mark.parametrize(("written", "newer", "older"), ROWS)
def test_a_change_converts_the_body_as_in_the_example(written: str, newer: str, older: str) -> None:
    data = read(written.encode(), "example", {}).data
    mistakes = Mistakes()
    change = ChangeConfig.model_validate_json(json.dumps(data)).compile(
        BuildContext(mistakes, GROUPS)
    )
    assert change is not None
    assert not mistakes.found
    link = VersionLink(Version(1, "1"), Version(2, "2"), (change,))
    for direction, given, wanted in ((Direction.DOWN, newer, older), (Direction.UP, older, newer)):
        found = json_body.convert(compact(given).encode(), BodyConversion((link,), direction))
        assert found.decode() == compact(wanted)
