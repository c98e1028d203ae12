"""The first example in docs/convert.md and those in docs/shapes.md, in both directions."""

import json
import re
from typing import Any

import pytest
import yaml

from gateway.conversion.formats import json_body
from gateway.conversion.message import Message
from gateway.rules.load import load
from tests.gateway.kit import ROOT
from tests.transcript import section

PAGE = (ROOT / "docs" / "convert.md").read_text()
FIRST = section(PAGE, "Read a conversion")
SHAPES = (ROOT / "docs" / "shapes.md").read_text()
EXAMPLE = re.compile(r"```yaml\n([^`]+)```\n\n```json\n(.+)\n(.+)\n```")
EXAMPLES = [*EXAMPLE.findall(FIRST), *EXAMPLE.findall(SHAPES)]


def rules(changes: str) -> bytes:
    declared: Any = yaml.safe_load(changes)
    if isinstance(declared, list):
        declared = {"changes": declared}
    api = {
        "versions": {"1": {"via": "2"}, "2": {"service": "new"}},
        "groups": declared.get("groups", {}),
        "conversions": [{"between": ["1", "2"], "changes": declared["changes"]}],
        "endpoints": [{"path": "/v{version}/a", "version": {"in": "path"}}],
    }
    services = {"new": {"targets": ["http://127.0.0.1:8002"]}}
    return json.dumps({"services": services, "apis": {"a": api}}).encode()


def test_every_block_on_the_pages_is_an_example() -> None:
    for text, more_than in ((FIRST, 0), (SHAPES, 6)):
        found = len(EXAMPLE.findall(text))
        assert found == text.count("```yaml") == text.count("```json") > more_than


def test_the_first_example_is_in_the_first_section() -> None:
    assert re.findall(r"^## (.*)", PAGE, re.MULTILINE)[0] == "Read a conversion"
    assert len(re.findall("^- (?:rename|map|type):", FIRST, re.MULTILINE)) == 3


@pytest.mark.parametrize(("changes", "newer", "older"), EXAMPLES)
def test_an_example_converts_bodies_in_both_directions(
    changes: str, newer: str, older: str
) -> None:
    found = load(rules(changes), "rules.yaml", {}).router.find("/v1/a")
    assert found is not None
    (route,) = (one for one in found[0].routes.values() if one.response is not None)
    assert route.request is not None
    assert route.response is not None
    down, up = route.response.for_response("GET", 200), route.request.for_request("POST")
    assert down is not None
    assert up is not None
    assert json.loads(json_body.convert(newer.encode(), down, Message(status=200))) == json.loads(
        older
    )
    assert json.loads(json_body.convert(older.encode(), up, Message(status=200))) == json.loads(
        newer
    )
