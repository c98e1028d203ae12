"""What no request can cause, and is handled all the same."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient

import backend_v1.log
from backend_v1.app import handler

Client = Callable[[web.Server], Awaitable[TestClient[web.BaseRequest, None]]]


class Broken(Mapping[str, bytes]):
    """Bodies that cannot be had."""

    def __getitem__(self, path: str) -> bytes:
        raise RuntimeError(path)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, path: object) -> bool:
        return True


async def test_a_fault_of_ours_is_a_500_problem_and_a_logged_traceback(
    aiohttp_raw_server: Callable[..., Awaitable[web.Server]],
    aiohttp_client: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = await aiohttp_client(await aiohttp_raw_server(handler(Broken())))
    async with client.get("/person", headers={"X-Request-Id": "r1"}) as response:
        assert response.status == 500
        assert response.headers["X-Request-Id"] == "r1"
        assert response.content_type == "application/problem+json"
        text = await response.text()
    assert json.loads(text)["code"] == "internal_server_error"
    assert "RuntimeError" not in text
    record = next(record for record in caplog.records if record.msg == "failed")
    line = backend_v1.log.JsonLines().format(record)
    assert "\n" not in line
    entry = json.loads(line)
    assert (entry["level"], entry["request_id"]) == ("error", "r1")
    assert "RuntimeError: /person" in entry["traceback"]
