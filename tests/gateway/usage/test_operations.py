"""Documented operations are found by the path of a request, within bounded memory."""

import asyncio

import pytest

from gateway.base.overrides import VersionKey
from gateway.base.path_templates import parse_template
from gateway.routing.snapshot import Snapshot
from gateway.usage.operations import (
    Documented,
    DocumentedOperation,
    OperationIndex,
    OperationIndexes,
)
from tests.gateway.world import PATH, person, snapshot


def documented(method: str, path: str) -> DocumentedOperation:
    public = parse_template("/v{version}" + path.replace("{id}", "{p0}"))
    return DocumentedOperation(method, path, "/v{version}/{rest*}", public)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/v1/orders/7", "GET /orders/{id}"),
        ("HEAD", "/v1/orders/7", "HEAD /orders/{id}"),
        ("GET", "/v1/orders/latest", "GET /orders/latest"),
        ("DELETE", "/v1/orders/7", None),
        ("GET", "/v1/orders/7/lines", None),
        ("GET", "/v1/.env", None),
    ],
)
def test_an_operation_is_found_by_method_and_path(
    method: str, path: str, expected: str | None
) -> None:
    operations = [documented("GET", "/orders/{id}"), documented("GET", "/orders/latest")]
    assert OperationIndex(operations).find(method, path) == expected


async def test_an_index_is_made_once_for_each_configuration_and_delays_no_request() -> None:
    asked: list[Snapshot] = []
    answers: list[Documented] = [None, frozenset({documented("GET", "/orders")})]

    async def find(rules: Snapshot, _: VersionKey) -> Documented:
        asked.append(rules)
        return answers[min(len(asked), len(answers)) - 1]

    rules, other = (snapshot([person("/v{version}/person", PATH)]) for _ in range(2))
    indexes, key = OperationIndexes(find), ("person", "1")
    for _ in range(2):  # at the first attempt, the document is not available
        assert indexes.of(rules, key) is None
        assert indexes.of(rules, key) is None
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    index = indexes.of(rules, key)
    assert index is not None
    assert index.find("GET", "/v1/orders") == "GET /orders"
    assert indexes.of(rules, key) is index
    assert indexes.of(other, key) is index  # the former one is used until the new one exists
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert indexes.of(other, key) not in (None, index)
    assert asked == [rules, rules, other]
