"""The Next view of a gateway with many versions."""

from pathlib import Path

from aiohttp.test_utils import make_mocked_request

from gateway.admin.page.page_app import Page
from gateway.findings.operator import Operator
from gateway.process.reloader import Reloader
from gateway.store.local import LocalState
from gateway.store.state import Membership
from gateway.verify.live.documented_operations import DocumentedOperations
from tests.gateway.documents import LocalDocuments

APIS, VERSIONS = 20, 10
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


def rules() -> str:
    versions = "".join(VERSION.format(number) for number in range(1, VERSIONS + 1))
    apis = "".join(API.format(number, number, versions) for number in range(APIS))
    return f'services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}\napis:{apis}'


async def test_the_next_view_shows_twenty_brownouts_and_collapses_the_rest(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(rules())
    reloader = Reloader(tmp_path / "gateway.yaml", {})
    state = LocalState(Membership("a", lambda: reloader.latest, lambda: "hash"))
    documented = DocumentedOperations(LocalDocuments(tmp_path))
    page = Page(Operator(state, reloader, lambda: 1, lambda: None, documented))

    answer = await page.next(make_mocked_request("GET", "/"))

    text = answer.text
    assert isinstance(text, str)
    soon = text.partition('id="h-step"')[0]
    shown, _, folded = soon.partition('<details class="rest" id="rest-soon">')
    assert (shown.count('<li class="item'), folded.count('<li class="item')) == (20, 80)
    assert "<summary>And 180 more</summary>" in folded
