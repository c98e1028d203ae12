"""Link: URLs in bodies are converted to the version of the receiver."""

from dataclasses import replace

import pytest

from gateway.base.mistakes import Mistakes
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.link import LinkParameter, map_link
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import FIELDS, ParameterLine
from tests.gateway.conversion.documents import down, up

LINK = map_link((), ("links", "self"))
FORM = replace(PLAIN, message=Message(link=lambda url: f"/v1{url}" if url == "/a" else url))


@pytest.mark.parametrize("change", [LINK.up.step, LINK.down.step])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"links": {"self": "/a"}}, {"links": {"self": "/v1/a"}}),
        ({"links": {"self": "/b"}}, {"links": {"self": "/b"}}),
        ({"links": {"self": None}}, {"links": {"self": None}}),
        ({"links": {}}, {"links": {}}),
        ({"links": None}, {"links": None}),
        ({}, {}),
    ],
)
def test_a_link_is_converted_in_both_directions(
    change: object, before: dict[str, object], after: dict[str, object]
) -> None:
    assert callable(change)
    change(before, FORM)
    assert before == after


def test_a_link_is_unchanged_without_a_message() -> None:
    assert up(LINK, {"links": {"self": "/a"}}) == {"links": {"self": "/a"}}
    assert down(LINK, {"links": {"self": "/a"}}) == {"links": {"self": "/a"}}


def test_a_link_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(ConversionError, match="/links/self: expected a string, found a number"):
        LINK.down.step({"links": {"self": 1}}, FORM)


def test_a_link_in_a_header_field_is_unchanged_without_a_message() -> None:
    change = LinkParameter(field="X-Next").compile_parameter(BuildContext(Mistakes(), header=True))
    lines = [ParameterLine("x-next", "X-Next", "/a")]
    assert change.down(lines, FIELDS) == lines
    assert change.down(lines, FIELDS.of(FORM.message)) == [lines[0]._replace(value="/v1/a")]
