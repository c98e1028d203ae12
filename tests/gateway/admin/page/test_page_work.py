"""How much a view works: calls of functions, which its time follows, the same on every machine.

There are 200 versions, each with a year of history and the rows of 10,000 clients, as many as are
kept. A view shows a page of them. A bound that is passed shows work that grows with what is counted
and not with what is shown. A hundred thousand calls take about 20 ms. Requests have their turn in
between, so that none of them waits for a whole view.
"""

import asyncio
import sys
import time
from types import FrameType
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from gateway.admin.operator import Operator
from gateway.admin.page import standing
from gateway.admin.page.page_app import Page
from gateway.process.reloader import Reloader
from gateway.state.history.interval import Interval, Resolution
from gateway.state.local_state import LocalState
from gateway.state.state_writer import StateWriter
from gateway.state.top_clients import TopClients
from gateway.telemetry.delta import UsageDelta
from gateway.verify.live.documented_operations import DocumentedOperations

PIECE = 15_000
"""The most calls between two turns of the event loop."""
# What a turn takes in which a view waits for a thread.
IDLE = 100
APIS, VERSIONS, CLIENTS = 20, 10, 10_000
VERSION = """
      "{}":
        service: s
        lifecycle: {{ deprecated: 2026-01-01, sunset: 2099-01-01 }}
        brownout: {{ windows: [{{ at: "0 9 * * *", minutes: 30 }}] }}
"""
API = """
  api{}:
    endpoints: [ {{ path: "/api{}/v{{version}}", version: {{ in: path }} }} ]
    versions: {}
"""
VIEWS = {
    # view: its path, what it captures, the most calls
    "next": ("next", "/", {}, 36_000),
    "versions": ("versions", "/page/versions?sort=-requests", {}, 53_000),
    "version": ("version", "/page/versions/api3/4", {"api": "api3", "version": "4"}, 72_000),
    "rules": ("rules", "/page/rules?request=GET+/api3/v4", {}, 41_000),
    "audit": ("audit", "/page/audit", {}, 1_000),
}


def rules() -> str:
    """Return rules with 200 versions."""
    versions = "".join(VERSION.format(number) for number in range(1, VERSIONS + 1))
    apis = "".join(API.format(number, number, versions) for number in range(APIS))
    return f'services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}\napis:{apis}'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the page of a gateway that has counted much; versions share what they have alike."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "gateway.yaml").write_text(rules())
    reloader = Reloader(folder / "gateway.yaml", {})
    state = LocalState(StateWriter(None), "a", lambda: reloader.latest, lambda: "hash")
    clients, now = TopClients(), time.time()
    for number in range(CLIENTS):
        usage = UsageDelta("api0", "1", "/p", f"client-{number}", 1 + number % 9, 0, 0, 1)
        clients.add(usage, now - number)
    assert len(clients.rows) > 2048
    series: dict[Resolution, dict[int, Interval]] = {}
    for by in Resolution:
        start = by.start(now)
        series[by] = {start - age * by.seconds: Interval(by) for age in range(by.most)}
        for interval in series[by].values():
            interval.add_counts(1000, 3, 0)
            interval.callers.add(range(by.callers))
    for api, versions in reloader.latest.labels.items():
        for label in versions:
            state.totals.clients[api, label] = clients
            for by in Resolution:
                state.totals.history._series[api, label, by] = series[by]
    documented = DocumentedOperations(folder)
    return Page(Operator(state, reloader, lambda: 1, lambda: None, documented))


async def calls(page: Page, name: str, path: str, match: dict[str, str]) -> tuple[list[int], str]:
    """Return how many calls a view takes in each turn of the event loop, and what it shows."""
    request = make_mocked_request("GET", path, match_info=match)
    count = 0
    pieces: list[int] = []

    def profile(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        view = asyncio.ensure_future(getattr(page, name)(request))
        while not view.done():
            before = count
            await asyncio.sleep(0)
            if count - before > IDLE:
                pieces.append(count - before)
    finally:
        sys.setprofile(None)
    answer = await view
    assert answer.status == 200
    return pieces, answer.text


@pytest.mark.parametrize(("name", "path", "match", "most"), VIEWS.values(), ids=VIEWS)
async def test_work(
    page: Page,
    name: str,
    path: str,
    match: dict[str, str],
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standing, "_AGE", 1e9)  # what is counted again, is not counted here
    await calls(page, name, path, match)  # templates are compiled, and sums made
    found, text = await calls(page, name, path, match)
    print(f"{name}: {sum(found)} calls in {found}, {len(text)} characters")  # noqa: T201
    assert sum(found) <= most
    assert max(found) <= PIECE
    assert len(text) < 150_000


async def test_next_is_no_wall(page: Page) -> None:
    """Of 200 brownouts of the next day, twenty are shown, and some more are folded."""
    _, text = await calls(page, "next", "/", {})
    shown, _, folded = text.partition('<details class="rest" id="rest-soon">')
    assert (shown.count('<li class="item'), folded.count('<li class="item')) == (20, 80)
    assert "<summary>And 180 more</summary>" in folded
