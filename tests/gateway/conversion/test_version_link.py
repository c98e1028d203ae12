"""Links: to which messages they apply, and the order of their changes of parameters."""

from typing import Any

import pytest

from gateway.conversion.changes.default import Added
from gateway.conversion.changes.rename import Renamed
from gateway.conversion.parameter_change import (
    QUERY,
    ParameterChange,
    parse_query,
    rewrite_lines,
    write_query,
)
from gateway.conversion.version_step import (
    BOTH,
    Direction,
    MessageKind,
    VersionLink,
    event_names,
    rewrites,
)
from gateway.versions.version import Version

REQUESTS = frozenset({MessageKind.REQUEST})


@pytest.mark.parametrize(
    ("on", "statuses", "applied"),
    [
        (BOTH, frozenset(), [None, 200, 299]),
        (REQUESTS, frozenset(), [None]),
        (frozenset({MessageKind.ERROR}), frozenset({404}), [404]),
        (BOTH, frozenset({300, 404}), [None, 200, 299, 300, 404]),
    ],
)
def test_messages(
    on: frozenset[MessageKind], statuses: frozenset[int], applied: list[int | None]
) -> None:
    link = VersionLink(Version(1), Version(2), (), statuses, on, frozenset({"GET"}))
    every = (None, 200, 299, 300, 404)
    assert [status for status in every if link.applies("GET", status)] == applied
    assert not any(link.applies("PUT", status) for status in every)


def test_the_order_of_changes_of_parameters() -> None:
    changes: list[tuple[ParameterChange, ...]] = [
        (Renamed("b", "a"), Renamed("c", "b")),
        (Added("d", "1"),),
    ]
    up = rewrite_lines(parse_query("a=1"), rewrites(changes, Direction.UP), QUERY)
    assert write_query(up) == "c=1&d=1"
    down = rewrite_lines(up, rewrites(changes[::-1], Direction.DOWN), QUERY)
    assert write_query(down) == "a=1"


def test_names_of_events() -> None:
    first = VersionLink(Version(1), Version(2), (), events={"b": "a", "c": "a"})
    second = VersionLink(Version(2), Version(3), (), events={"d": "b"})
    assert first.changes_bodies
    down = event_names([second, first], Direction.DOWN)
    up = event_names([first, second], Direction.UP)
    assert down is not None
    assert up is not None
    assert [down(name) for name in "dcx"] == ["a", "a", "x"]
    assert [up(name) for name in "acx"] == ["d", "c", "x"]
    assert event_names([VersionLink(Version(1), Version(2), ())], Direction.UP) is None


@pytest.mark.parametrize(
    ("more", "beyond"),
    [
        ({}, False),
        ({"query": (Renamed("b", "a"),)}, False),
        ({"headers": (Renamed("b", "a"),)}, True),
        ({"status": {201: 200}}, True),
        ({"needs_message": True}, True),
        ({"maps_links": True}, True),
    ],
)
def test_what_goes_beyond_bodies(more: dict[str, Any], beyond: bool) -> None:
    assert VersionLink(Version(1), Version(2), (), **more).goes_beyond_bodies is beyond
