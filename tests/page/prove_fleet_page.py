"""The page of a fleet in a browser: two gateways on one PostgreSQL, each showing data of both."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.fleet.cluster import Cluster
from tests.fleet.fleet import CUTOVER, Fleet, call
from tests.gateway.kit import Program, free_port
from tests.page.conftest import WIDTHS, Tabs, act, examine, token

ADMIN = f'admin: {{ tokens: {{ ann: {{ right: operate, token: "{token("ann")}" }} }} }}\n'
VERSION = "/page/versions/person/1"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with ExitStack() as stack:
        cluster = Cluster(free_port())
        stack.callback(cluster.remove)
        folder = tmp_path_factory.mktemp("fleet")
        made = Fleet(stack, folder, cluster.create("page"), cluster, CUTOVER, ADMIN)
        for name in "ab":
            made.start(name)
        yield made


class Seats:
    def __init__(self, browser: Browser, fleet: Fleet) -> None:
        self._browser = browser
        self._fleet = fleet
        self._taken: list[Tabs] = []

    def __call__(self, name: str, path: str) -> Page:
        made = Tabs(self._browser, self._fleet.replicas[name].admin_url)
        self._taken.append(made)
        page = made().open(path)
        expect(page.locator("#live")).to_have_class("live on")
        return page

    def leave(self) -> None:
        for tabs in self._taken:
            tabs.close()


@pytest.fixture
def seat(browser: Browser, fleet: Fleet) -> Iterator[Seats]:
    made = Seats(browser, fleet)
    yield made
    made.leave()


def test_a_command_on_one_replica_is_shown_on_the_other(seat: Seats) -> None:
    here, there, log = seat("a", VERSION), seat("b", VERSION), seat("b", "/page/audit")
    expect(there.locator("#cutover .percent")).to_have_text("5%")
    act(here, "#cutover", "Set", "half of them", percent="50")
    expect(there.locator("#cutover .percent")).to_have_text("50%")
    expect(there.locator("#cutover .latest")).to_contain_text("by ann, 5% by the rules → 50%")
    expect(log.locator("#audit tbody tr").first).to_contain_text("half of them")
    act(there, "#cutover", "Clear", "it was tried")
    expect(here.locator("#cutover .percent")).to_have_text("5%")


def callers(page: Page) -> Locator:
    return page.locator("#callers-table tbody").locator("th, td[data-label=Requests]")


def test_both_replicas_show_the_sums_of_all(seat: Seats, fleet: Fleet) -> None:
    pages = [seat(name, VERSION) for name in "ab"]
    call(fleet.replicas["a"], "acme", 5)
    call(fleet.replicas["b"], "globex", 2)
    for page in pages:
        expect(callers(page)).to_have_text(["acme", "5", "globex", "2"])
    call(fleet.replicas["b"], "acme", 3)
    for page in pages:
        expect(callers(page)).to_have_text(["acme", "8", "globex", "2"])
    for name in "ab":
        row = seat(name, "/page/versions?find=person").locator("tbody tr:has(th)").first
        expect(row.locator("td[data-label=Requests]")).to_have_text("10")


def test_a_replica_is_lost_and_comes_back(seat: Seats, fleet: Fleet) -> None:
    page, log = seat("a", "/"), seat("a", "/page/audit")
    lost = page.locator(".item", has_text="Replica lost")
    rows = log.locator("#replicas tbody tr")
    expect(lost).to_have_count(0)
    kill(fleet.replicas["b"])
    expect(lost).to_contain_text("b")
    expect(lost).to_contain_text("It has sent no heartbeat since")
    expect(rows.nth(1)).to_contain_text("lost")
    pictures(page, "next-lost")
    pictures(log, "audit-lost")
    fleet.start("b")
    expect(lost).to_have_count(0)
    expect(rows.nth(1)).to_contain_text("active")
    kill(fleet.start("c"))
    expect(lost).to_contain_text("c")
    act(log, "#replicas", "Forget", "its machine was returned")
    expect(rows).to_have_count(2)
    expect(lost).to_have_count(0)


def test_configuration_mistakes_of_another_replica_are_shown(seat: Seats, fleet: Fleet) -> None:
    page, log = seat("a", "/"), seat("a", "/page/audit")
    item = page.locator(".item", has_text="Rules refused")
    expect(item).to_have_count(0)
    other = fleet.replicas["b"]
    assert other.config is not None
    right = other.config.read_text()
    other.rewrite(right + "servics: {}\n")
    expect(item).to_contain_text("The file on disk of b")
    expect(item).to_contain_text("servics: unknown key; did you mean 'services'?")
    item.get_by_role("link", name="See the").click()
    expect(page.locator("#replicas tbody tr").nth(1)).to_contain_text("the file is refused")
    expect(log.locator("#replicas tbody tr").nth(0)).not_to_contain_text("refused")
    pictures(seat("a", "/"), "next-refused")
    pictures(log, "audit-refused")
    other.rewrite(right)
    expect(log.locator("#replicas")).not_to_contain_text("refused")
    expect(seat("a", "/").locator("#waiting")).not_to_contain_text("Rules refused")


def pictures(page: Page, name: str) -> None:
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            examine(page, width, f"{name}-{width}-{theme}")


def kill(program: Program) -> None:
    program.process.send_signal(signal.SIGKILL)
    program.process.wait()


@pytest.mark.parametrize("how", ["dropped", "refused"])
def test_views_report_a_lost_database_and_recover(seat: Seats, fleet: Fleet, how: str) -> None:
    paths = {"next": "/", "versions": "/page/versions", "version": VERSION, "audit": "/page/audit"}
    call(fleet.replicas["a"], f"before-{how}")
    pages = {name: seat("a", path) for name, path in paths.items()}
    expect(callers(pages["version"])).to_contain_text([f"before-{how}"])
    each = pages["version"].locator("#callers-table tbody td[data-label=Requests]")
    total = str(sum(int(count) for count in each.all_inner_texts()))
    requests = pages["versions"].locator("tbody td[data-label=Requests]").first
    expect(requests).to_have_text(total)
    fleet.relay.drop() if how == "dropped" else fleet.relay.refuse()
    try:
        stale = pages["next"].locator(".item", has_text="State is stale")
        expect(stale).to_contain_text("It has been unreachable since")
        for name in ("versions", "version", "audit"):
            expect(pages[name].locator("#stale")).to_contain_text("has been unreachable since")
        expect(pages["audit"].locator("#audit")).to_contain_text("The audit log cannot be read:")
        expect(pages["audit"].locator("#replicas")).to_contain_text("The replicas cannot be read:")
        expect(pages["version"].locator("#retire h2")).to_contain_text("It cannot be")
        expect(pages["version"].locator("#retire")).to_contain_text("has been unreachable since")
        expect(pages["version"].locator("#cutover .percent")).to_have_text("5%")
        for part in ("#callers-table", "#trend"):
            alone = pages["version"].locator(f"{part} .alone")
            expect(alone).to_contain_text("These are the counts of a since its start")
        expect(pages["versions"].locator("#versions .alone")).to_contain_text("are from before")
        expect(requests).to_have_text(total)
        for name in pages if how == "refused" else ():
            pictures(pages[name], f"{name}-stale")
        # A page that is opened after the change shows the same.
        fresh = seat("a", "/page/versions")
        expect(fresh.locator("tbody td[data-label=Requests]").first).to_have_text(total)
        act(fresh := seat("a", VERSION), "#cutover", "Set", "in vain", percent="40")
        expect(fresh.locator("h1")).to_have_text("Unavailable")
        expect(fresh.locator(".sub")).to_contain_text("nothing was changed")
    finally:
        fleet.relay.pass_on()
    expect(stale).to_have_count(0)
    for name in ("versions", "version", "audit"):
        expect(pages[name].locator("#stale")).to_have_text("")
    expect(pages["audit"].locator("#replicas tbody tr")).to_have_count(2)
    expect(pages["version"].locator("#cutover .percent")).to_have_text("5%")
    expect(callers(pages["version"])).to_contain_text([f"before-{how}"])
