"""The methods of a client's version, for those that a service allows."""

import pytest

from gateway.core.answers.allowed_methods import client_methods
from gateway.core.conversion.chain import compose
from gateway.core.conversion.operations.operation import (
    MappedOperation,
    Substitute,
    parse_operation,
)
from gateway.core.conversion.version_link import VersionLink
from gateway.core.service import Service
from tests.gateway.core.world import V1, V2


def operation(newer: str | None, older: str, service: Service | None = None) -> MappedOperation:
    """Declare an operation; one that the newer version lacks is refused, or has a service."""
    new = None if newer is None else parse_operation(newer)
    substitute = Substitute(service) if newer is None else None
    return MappedOperation(new, parse_operation(older), {}, substitute)


LINKS = {
    V1: [
        VersionLink(
            V1,
            V2,
            (),
            operations=(
                operation("PATCH /a/{id}", "PUT /a/{id}"),
                operation("POST /b", "DELETE /a/{id}"),
                operation(None, "POST /a/{id}"),
                operation("GET /c/{id}", "GET /gone?id={id}"),
                operation(None, "POST /s", Service("s", ())),
                operation("GET /{id}", "GET /dots?id={id}"),
            ),
        )
    ]
}
BOTH = compose((V1, V2), LINKS, V1, V2), compose((V1, V2), LINKS, V2, V1)


@pytest.mark.parametrize(
    ("path", "query", "asked", "allowed", "methods"),
    [
        ("/a/7", None, "/a/7", ["GET", "HEAD", "PATCH"], ["GET", "HEAD", "PUT", "DELETE"]),
        ("/a/7", None, "/a/7", ["DELETE"], ["DELETE"]),
        ("/a/7", None, "/b", ["POST"], ["PUT", "DELETE"]),
        ("/s", None, "/s", ["GET"], ["GET", "POST"]),
        ("/dots", "id=..", "/dots", ["PUT"], ["PUT"]),
    ],
)
def test_methods(
    path: str, query: str | None, asked: str, allowed: list[str], methods: list[str]
) -> None:
    assert client_methods(BOTH, lambda _: path, query, asked, allowed) == methods
