"""What no request can cause, and is handled all the same."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Never

import pytest
from aiohttp import ClientSession, web
from aiohttp.typedefs import Middleware

from users_service.log import JsonLines, logger
from users_service.middleware import around
from users_service.serving import serve
from users_service.settings import Settings

Serve = Callable[[web.Application], Awaitable[str]]


async def _fail(_: web.Request) -> Never:
    raise RuntimeError("secret")


class _Listening(logging.Handler):
    """Completes a future with the URL that the server says it listens on."""

    def __init__(self) -> None:
        super().__init__()
        self.url = asyncio.get_running_loop().create_future()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == "listening":
            self.url.set_result(_fields(record)["url"])


@pytest.fixture
async def served(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Serve]:
    """Serve an application in this process; return its URL."""
    caplog.set_level(logging.INFO)
    settings = Settings.from_environment({"USERS_PORT": "0"})
    stop = asyncio.Event()
    listening = _Listening()
    logger.addHandler(listening)
    async with asyncio.TaskGroup() as tasks:

        async def _serve(app: web.Application) -> str:
            tasks.create_task(serve(app, settings, stop))
            return str(await listening.url)

        yield _serve
        stop.set()
    logger.removeHandler(listening)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    line = JsonLines().format(record)
    assert "\n" not in line
    fields: dict[str, object] = json.loads(line)
    return fields


@pytest.mark.parametrize("middlewares", [[around], []], ids=["in a handler", "around it"])
async def test_a_fault_of_ours_is_a_500_problem_and_a_logged_traceback(
    middlewares: list[Middleware], served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    app = web.Application(middlewares=middlewares)
    app.router.add_get("/", _fail)
    async with ClientSession() as session, session.get(await served(app)) as response:
        assert response.status == 500
        assert response.content_type == "application/problem+json"
        text = await response.text()
    assert json.loads(text)["code"] == "internal_error"
    assert "secret" not in text
    entry = next(_fields(record) for record in caplog.records if record.msg == "failed")
    assert entry["level"] == "error"
    assert entry["request_id"] == response.headers["X-Request-Id"]
    assert "RuntimeError: secret" in str(entry["traceback"])
