"""A live response is validated by the schema of its operation and status."""

import json
from pathlib import Path

import pytest

from gateway.core.versions.version import Version
from gateway.verify.answer_sample import AnswerSample
from gateway.verify.contract import load
from gateway.verify.openapi.openapi import DocumentError
from tests.gateway.verify.loans import document, written

LOAN = b'{"id": 1}'


async def violations(
    folder: Path, endpoint: str, target: str, body: bytes = LOAN, *, status: int = 200
) -> list[tuple[str, str]]:
    """Return what is found in a response to a client of version 1, whose ids are texts."""
    older = document(lendings="get", lendings_ID="get", lendings_late="post")
    older["paths"]["/lendings/late"]["get"] = {"responses": {"default": {}}}
    _, snapshot = written(folder, older, document(lendings="get"))
    found = next(one for one in snapshot.apis[0].endpoints if one.template.text == endpoint)
    contract = await load("v1.json", folder)
    sample = AnswerSample(found, found.routes[Version(1)], "GET", target, status, body)
    assert contract.violations(sample) == contract.violations(sample)
    return contract.violations(sample)


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("/v{version}/loans", "/lendings"),
        # Of two operations at one endpoint, the path that was asked for decides.
        ("/v{version}/loans/{id}", "/lendings/7?full=1"),
    ],
)
async def test_violations(tmp_path: Path, endpoint: str, target: str) -> None:
    assert await violations(tmp_path, endpoint, target) == [("/id", "type")]


@pytest.mark.parametrize(
    ("endpoint", "target", "status"),
    [
        ("/v{version}/loans", "/lendings", 404),
        ("/v{version}/loans/overdue", "/lendings/late", 200),
    ],
)
async def test_what_is_not_declared_violates_nothing(
    tmp_path: Path, endpoint: str, target: str, status: int
) -> None:
    assert await violations(tmp_path, endpoint, target, status=status) == []


async def test_a_body_as_it_should_be(tmp_path: Path) -> None:
    body = json.dumps({"id": "7", "books": [{"title": "B", "weight": 3}]}).encode()
    assert await violations(tmp_path, "/v{version}/loans", "/lendings", body) == []
    half = rb'{"id": "\ud800"}'  # half of a pair of surrogates, which no parser need take
    assert await violations(tmp_path, "/v{version}/loans", "/lendings", half) == []


async def test_no_document(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"v1\.json: cannot be read"):
        await load("v1.json", tmp_path)
