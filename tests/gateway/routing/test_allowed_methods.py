"""The methods of a client's version, for those that a service allows."""

import pytest

from gateway.conversion.chain import compose
from gateway.conversion.operation import (
    MappedOperation,
    Substitute,
    parse_operation,
)
from gateway.conversion.version_step import VersionLink
from gateway.http.upstream.service import Service
from gateway.routing.options import client_methods, methods_elsewhere
from tests.gateway.world import V1, V2


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
        ("/a/7", None, "/a/7", ["OPTIONS", "PATCH", "GET"], ["OPTIONS", "PUT", "GET", "DELETE"]),
        ("/a/7", None, "/a/7", ["DELETE"], ["DELETE"]),
        ("/a/7", None, "/b", ["POST"], ["DELETE", "PUT"]),
        ("/s", None, "/s", ["GET"], ["GET", "POST"]),
        ("/dots", "id=..", "/dots", ["PUT"], ["PUT"]),
    ],
)
def test_methods(
    path: str, query: str | None, asked: str, allowed: list[str], methods: list[str]
) -> None:
    assert client_methods(BOTH, lambda _: path, query, asked, allowed) == methods


MOVED = {
    V1: [
        VersionLink(
            V1,
            V2,
            (),
            operations=(
                operation("POST /payments", "POST /pay"),
                operation("GET /people/{id}", "GET /users/{id}"),
                operation("PATCH /people/{id}", "PUT /users/{id}"),
                operation("PATCH /goods/{id}", "PUT /items/{id}"),
                operation("PATCH /a", "PUT /a"),
                operation("POST /b", "DELETE /a"),
                operation(None, "POST /fax"),
                operation(None, "POST /telex"),
                operation(None, "GET /telex", Service("s", ())),
            ),
        )
    ]
}
UP, DOWN = compose((V1, V2), MOVED, V1, V2), compose((V1, V2), MOVED, V2, V1)


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/pay", ["POST"]),
        ("/users/7", ["GET", "HEAD", "PUT"]),
        ("/items/7", []),  # an item may be read where nothing is declared
        ("/a", []),  # an operation has stayed
        ("/fax", []),  # no method is offered
        ("/telex", ["GET", "HEAD"]),
        ("/other", []),
    ],
)
def test_methods_elsewhere(path: str, methods: list[str]) -> None:
    assert methods_elsewhere((UP, DOWN), lambda _: path, None, path) == methods
    assert methods_elsewhere((DOWN, UP), lambda _: path, None, path) == []


def test_methods_of_a_newer_version() -> None:
    assert methods_elsewhere((DOWN, UP), lambda _: "/payments", None, "/payments") == ["POST"]
