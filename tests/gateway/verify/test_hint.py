"""Field paths in hints are spelt as gateway.yaml has them."""

import pytest

from gateway.core.conversion.field_path import parse_path
from gateway.core.versions.version import Version
from gateway.verify.claim import Claim, MessagePart
from gateway.verify.hint import hint, path_of
from gateway.verify.proof import Finding


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("/a", "a"),
        ("/items/*/price", "items[].price"),
        ("/a/*/*/b", "a[][].b"),
        ("/a~1b/c~0d", "a/b.c~d"),
    ],
)
def test_paths(pointer: str, path: str) -> None:
    assert path_of(pointer) == path
    parse_path(path)


@pytest.mark.parametrize(
    ("part", "client", "service", "expected"),
    [
        # What an older client lacks in a response is taken away on the way to it, and what a
        # newer service does not know in a request is taken away on the way to that.
        (MessagePart.RESPONSE, 1, 2, "remove: { field: a, value: ... }"),
        (MessagePart.REQUEST, 1, 2, "default: { field: a, value: ... }"),
        (MessagePart.RESPONSE, 2, 1, "default: { field: a, value: ... }"),
        (MessagePart.REQUEST, 2, 1, "remove: { field: a, value: ... }"),
        (MessagePart.QUERY, 1, 2, "default: { field: a, value: ... }"),
    ],
)
def test_a_change_reads_from_the_newer_version_to_the_older(
    part: MessagePart, client: int, service: int, expected: str
) -> None:
    claim = Claim("x", Version(client), Version(service), "GET /x", part, "", {}, {}, None)
    assert hint(claim, Finding("/a", "required", "is missing")) == expected


def test_what_no_change_mends() -> None:
    claim = Claim("x", Version(1), Version(2), "GET /x", MessagePart.RESPONSE, "200", {}, {}, None)
    assert hint(claim, Finding("/a", "pattern", "does not match")) is None
