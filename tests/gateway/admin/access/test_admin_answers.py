"""What is refused is a problem detail, whatever raised it."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.admin.access.admin_answers import problems
from gateway.admin.access.admin_guard import AdminProblemError
from gateway.store.state import StateBusyError, StateError, StateUnsureError, UnknownReplicaError

CASES = [
    (AdminProblemError(429, "too_many_tries", "wait"), 429, "too_many_tries", "wait"),
    (UnknownReplicaError("no replica is called 'x'"), 404, "not_found", "no replica"),
    (StateError("the disk is full"), 503, "state_unavailable", "full; nothing was changed"),
    (StateUnsureError("gone"), 503, "state_unavailable", "gone; it may have been changed: look"),
    (StateBusyError("2 read"), 503, "state_busy", "2 read; it may have been changed: look how"),
    (TimeoutError(), 504, "worker_timeout", "A worker has not confirmed the change in time"),
    (web.HTTPMethodNotAllowed("PUT", ["GET"]), 405, "method_not_allowed", "This path answers GET."),
    (web.HTTPNotFound(), 404, "not_found", "This port has nothing at this address."),
]


@pytest.mark.parametrize(("error", "status", "code", "detail"), CASES)
async def test_a_refusal(error: Exception, status: int, code: str, detail: str) -> None:
    async def fail(_: web.Request) -> web.StreamResponse:
        raise error

    answer = await problems(make_mocked_request("PUT", "/here"), fail)
    assert isinstance(answer, web.Response)
    assert (answer.status, answer.content_type) == (status, "application/problem+json")
    assert answer.text is not None
    found = json.loads(answer.text)
    assert (found["status"], found["code"], found["instance"]) == (status, code, "/here")
    assert detail in found["detail"]
    assert ("Allow" in answer.headers) == (status == 405)
    assert answer.headers.get("Retry-After") == ("10" if code == "state_busy" else None)


async def test_a_read_says_nothing_of_changes() -> None:
    async def fail(_: web.Request) -> web.StreamResponse:
        raise StateError("the database cannot be reached")

    answer = await problems(make_mocked_request("GET", "/fleet"), fail)
    assert isinstance(answer, web.Response)
    assert answer.text is not None
    assert json.loads(answer.text)["detail"] == "the database cannot be reached"
