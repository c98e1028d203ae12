"""Uses of a version: accepted requests, by documented operation and by client."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.__main__ import main
from tests.gateway.kit import Program, StartGateway, StartUpstream
from tests.gateway.live.shifting import OLD, WRONG, answer, rules, shadow, told
from tests.gateway.talk import ask, connect, soon

RULES = """
clients: {{ by: [ {{ header: X-Client }} ] }}
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/v{{version}}/{{rest*}}", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: s{first} }}
      "2": {{ service: s }}
"""
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "shop", "version": "1"},
    "servers": [{"url": "/v1"}],
    "paths": {
        "/orders/{id}": {"get": {"responses": {}}},
        "/orders/latest": {"get": {"responses": {}}},
        "/orders": {"get": {"responses": {}}, "post": {"responses": {}}},
    },
}
NEVER = "2099-01-01"
Run = Callable[..., tuple[str, int]]


def serve(request: bytes) -> bytes:
    """Accept requests for orders, and reject all others, as those of scanners."""
    known = request.split(b" ")[1].startswith(b"/v1/orders")
    return answer({}, status="200 OK" if known else "404 Not Found")


async def call(program: Program, client: str, *lines: str) -> None:
    async with connect(program) as caller:
        for line in lines:
            body = ("Content-Length: 0",) if line.startswith("POST") else ()
            caller.send(ask(line, f"X-Client: {client}", *body))
            await caller.answer()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(program: Program, *words: str) -> tuple[str, int]:
        monkeypatch.setattr("sys.argv", ["gateway", *words])
        monkeypatch.setenv("GATEWAY_ADMIN_PORT", str(program.admin))
        status = main()
        return "".join(capsys.readouterr()), status

    return run


def usage(program: Program, run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(program, "usage", "--json")[0])["usage"]
    return found


async def judged(program: Program, run: Run, *, after: int) -> str:
    """Return the verdict as soon as `after` requests are counted."""
    await soon(lambda: sum(row["count"] for row in usage(program, run)) == after)
    return run(program, "usage", "--retire", "1")[0]


async def test_requests_that_the_service_rejects_are_no_uses(
    gateway: StartGateway, upstream: StartUpstream, run: Run
) -> None:
    service = await upstream(told(serve))
    program = gateway(RULES.format(port=service.port, first=""))
    await call(program, "scanner", "GET /v1/.env", "POST /v1/wp-login.php")
    verdict = await judged(program, run, after=2)
    assert "  no  " not in verdict
    assert "unknown  it served no request since counting began" in verdict
    assert (
        "note     1 client called it in the last 30 days, and no request was accepted"
        " (401, 403, 404, 405): scanner at 20"
    ) in verdict
    assert [(row["count"], row["rejected"], row["served"]) for row in usage(program, run)] == [
        (1, 1, None),
        (1, 1, None),
    ]
    await call(program, "acme", "GET /v1/gone", "GET /v1/orders")
    verdict = await judged(program, run, after=4)
    assert "no       1 client called it in the last 30 days: acme at 20" in verdict
    assert "accepted (401, 403, 404, 405): scanner at 20" in verdict


async def test_usage_is_counted_by_documented_operation(
    gateway: StartGateway, upstream: StartUpstream, run: Run, tmp_path: Path
) -> None:
    """Requests that the document lacks are counted by the method and the endpoint."""
    service = await upstream(told(serve))
    document = tmp_path / "v1.json"
    document.write_text(json.dumps(DOCUMENT))
    program = gateway(RULES.format(port=service.port, first=f', schema: "{document}"'))
    calls = 0

    async def operations() -> dict[str, int]:
        nonlocal calls
        await call(program, "probe", "GET /v1/orders/7")
        calls += 1
        await soon(lambda: sum(row["count"] for row in usage(program, run)) == calls)
        return {row["operation"]: row["count"] for row in usage(program, run)}

    while "GET /v1/orders/{id}" not in await operations():
        pass  # the first requests may come before the document is read
    await call(
        program,
        "acme",
        *("GET /v1/orders/8?expand=1", "GET /v1/orders/9"),
        *("GET /v1/orders/latest", "POST /v1/orders", "DELETE /v1/orders/9", "GET /v1/.env"),
    )
    calls += 6
    await soon(lambda: sum(row["count"] for row in usage(program, run)) == calls)
    own = {row["operation"]: row["count"] for row in usage(program, run) if row["client"] == "acme"}
    assert own == {
        "GET /v1/orders/{id}": 2,
        "GET /v1/orders/latest": 1,
        "POST /v1/orders": 1,
        "DELETE /v{version}/{rest*}": 1,
        "GET /v{version}/{rest*}": 1,
    }


async def test_each_command_in_the_remedies_of_a_verdict_can_be_executed(
    gateway: StartGateway, upstream: StartUpstream, run: Run
) -> None:
    """The commands remove the reasons against retiring the version, except its callers."""
    old, new = await upstream(told(lambda _: OLD)), await upstream(told(lambda _: WRONG))
    moving = shadow() + ', cutover: { via: "2", percent: 0 }'
    program = gateway(rules("shop", old.port, new.port, moving))
    async with connect(program) as caller:
        caller.send(ask("GET /v1/person", "X-Client: acme"))
        await caller.answer()

    def verdict_with_differences() -> str:
        found = run(program, "usage", "--retire", "1", "--api", "shop")[0]
        return found if "differences: /name" in found else ""

    verdict = await soon(verdict_with_differences)
    placeholders = {"TEXT": "trial", "CLIENT": "acme", "DATE": NEVER}
    done = []
    for line in re.findall(r": ((?:usage|cutover|shadow) .+)$", verdict, re.MULTILINE):
        words = [placeholders.get(word, word) for word in line.split()]
        assert run(program, *words)[1] == 0
        done.append(" ".join(words[:2]))
    assert sorted(done) == ["cutover set", "shadow reset", "usage set-aside"]
    assert "  no  " not in run(program, "usage", "--retire", "1", "--api", "shop")[0]


async def test_a_client_can_be_set_aside_until_a_date(
    gateway: StartGateway, upstream: StartUpstream, run: Run
) -> None:
    service = await upstream(told(serve))
    program = gateway(RULES.format(port=service.port, first=""), GATEWAY_WORKERS="2")
    await call(program, "probe/1", "GET /v1/orders")
    await call(program, "", "GET /v1/orders")
    verdict = await judged(program, run, after=2)
    assert "2 clients called it" in verdict
    # The remedy of the verdict, with the name of each client as the verdict shows it.
    assert "if one may stay: usage set-aside CLIENT --why TEXT --until DATE" in verdict
    for client in ("probe/1", "(anonymous)"):
        set_aside = "usage", "set-aside", client, "--why", "our own check", "--until", NEVER
        said = f"{client} is set aside until 2099-01-01T00:00:00Z: our own check\n"
        assert run(program, *set_aside) == (said, 0)
    verdict = run(program, "usage", "--retire", "1")[0]
    assert "  no  " not in verdict
    assert (
        "2 clients that called it in the last 30 days are set aside: (anonymous) until" in verdict
    )
    assert (
        "probe/1 is set aside until 2099-01-01T00:00:00Z: our own check" in run(program, "usage")[0]
    )
    assert run(program, "usage", "include", "probe/1", "--why", "it moved") == (
        "probe/1 is counted again.\n",
        0,
    )
    assert (
        "1 client called it in the last 30 days: probe/1"
        in run(program, "usage", "--retire", "1")[0]
    )
    assert run(program, "usage", "include", "probe/1", "--why", "again") == (
        "probe/1 is not set aside\n",
        2,
    )
    for until, problem in (
        ("2020-01-01", "'until' is in the past"),
        ("soon", "'soon' is not a date"),
    ):
        set_aside = "usage", "set-aside", "acme", "--why", "x", "--until", until
        said, status = run(program, *set_aside)
        assert (problem in said, status) == (True, 2)
