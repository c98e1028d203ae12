"""The page in a browser: layout, accessibility (axe), live updates, no scripts, lost connections.

Screenshots of all views are written to .page/ for review.
"""

import re
import signal
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gateway.admin.page.live_updates import MOST_STREAMS
from tests.gateway.kit import ROOT, Program, start_program, wait_for
from tests.page.conftest import (
    HOSTILE,
    SHOTS,
    VERSION,
    VIEWS,
    WIDTHS,
    Tabs,
    act,
    examine,
    token,
    use,
)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_and_is_accessible(tabs: Tabs, view: str, theme: str) -> None:
    tab = tabs(color_scheme=theme)
    for width in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": 800})
        page = tab.open(VIEWS[view])
        expect(page.locator("#live")).to_have_class("live on")
        examine(page, width, f"{view}-{width}-{theme}")


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_the_same_text_without_scripts(tabs: Tabs, view: str) -> None:
    plain, full = tabs(java_script_enabled=False), tabs()
    words = [
        tab.open(VIEWS[view]).locator("h1, h2, thead th, tbody th").all_text_contents()
        for tab in (plain, full)
    ]
    assert words[0] == words[1]
    assert words[0]


def test_forms_work_without_scripts(tabs: Tabs) -> None:
    page = tabs(java_script_enabled=False).open("/page/versions")
    page.get_by_label("Find").fill("orders")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody th")).to_have_count(3)
    page.get_by_role("link", name="Requests").click()
    expect(page).to_have_url(re.compile("find=orders.*sort=requests"))
    page.get_by_role("link", name="orders 2025-03-01").click()
    page.get_by_role("link", name="Rules", exact=True).click()
    page.get_by_role("textbox", name="Request").fill("GET /v9/person")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".steps .answer")).to_contain_text("404 version_unknown")
    page.get_by_label("Draft of gateway.yaml").fill("apis: {}\nservices: 1\n")
    alert = page.get_by_role("alert")
    page.get_by_role("button", name="Check").click()
    while "takes more than 10 s" in alert.inner_text():  # on a busy machine, no process starts
        page.get_by_role("button", name="Check").click()
    expect(alert).to_contain_text("prevents its use")
    expect(page.locator("#draft .issues li").first).to_contain_text("Line")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_line_with_a_mistake_fits(tabs: Tabs, width: int) -> None:
    page = tabs(viewport={"width": width, "height": 800}).open("/page/rules")
    page.get_by_label("Draft of gateway.yaml").fill(
        f"services: {{}}\n{'long' * 99}: 1\napis: {{}}\n"
    )
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#draft .issues li").first).to_be_visible()
    examine(page, width, f"draft-{width}-light")


def test_hostile_names_are_shown_as_text(tabs: Tabs) -> None:
    for name in HOSTILE:
        tab = tabs()
        page = tab.open("/page/versions/person/1")
        page.locator("#callers").get_by_label("Find").fill(name)
        page.locator("#callers").get_by_role("button", name="Show").click()
        expect(page.locator("#callers tbody th").first).to_have_text(name)


def test_callers_are_downloaded_as_csv(tabs: Tabs) -> None:
    page = tabs().open("/page/versions/person/1")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    path = download.value.path()
    assert download.value.suggested_filename == "callers-person-1.csv"
    assert Path(path).read_text().startswith("client,api,version,operation,count")


def test_callers_are_shown_in_pages(tabs: Tabs) -> None:
    page = tabs().open("/page/versions/person/1?sort=client")
    first = page.locator("#callers tbody th").first.inner_text()
    page.locator("#callers").get_by_role("link", name="Next").click()
    expect(page.locator("#callers .pages")).to_contain_text("Page 2 of")
    assert page.locator("#callers tbody th").first.inner_text() != first


def test_a_view_follows_the_counts(tabs: Tabs, gateway: Program) -> None:
    page = tabs().open("/page/versions/plain")
    before = page.locator("#callers-table tbody").inner_text()
    use(gateway, 60, seed=7)
    expect(page.locator("#callers-table tbody")).not_to_have_text(before, timeout=60_000)


def test_a_view_follows_the_rules_and_keeps_typed_text(tabs: Tabs, gateway: Program) -> None:
    assert gateway.config is not None
    right = gateway.config.read_text()
    page = tabs().open("/page/rules")
    page.get_by_label("Draft of gateway.yaml").fill("half a draft")
    gateway.rewrite(right.replace("{ service: new }", "{ service: gone }"))
    expect(page.locator("#mistakes")).to_contain_text("no service is called 'gone'")
    gateway.rewrite(f"{right}\n# changed\n")
    expect(page.locator("#mistakes")).to_have_count(0)
    expect(page.locator("#changes .added").last).to_contain_text("# changed")
    expect(page.get_by_label("Draft of gateway.yaml")).to_have_value("half a draft")
    gateway.rewrite(right)


FIELDS = "#shadow .fields-differ"


@pytest.mark.parametrize("scripts", [True, False])
def test_each_command_on_a_cutover_takes_effect_and_is_audited(
    tabs: Tabs, *, scripts: bool
) -> None:
    page = tabs(java_script_enabled=scripts).open(VERSION)
    percent, chip = page.locator("#cutover .percent"), page.locator("#cutover h2 .chip")
    expect(percent).to_have_text("10%")
    for label, why, shown, decided, fields in [
        ("Pause", "wait for acme", "10%", "by an operator", {}),
        ("Set", "half of them", "50%", "by an operator", {"percent": "50"}),
        ("Abort", "<b>it hurts</b>", "0%", "by an operator", {}),
        ("Clear", "mended", "10%", "by the configuration", {}),
    ]:
        act(page, "#cutover", label, why, **fields)
        expect(page.locator("#done")).to_contain_text("Done:")
        expect(percent).to_have_text(shown)
        expect(chip).to_have_text(decided)
        expect(page.locator("#cutover .latest")).to_contain_text("by ann")
        expect(page.locator("#cutover .latest")).to_contain_text(why)
    page.get_by_role("link", name="Audit", exact=True).click()
    expect(page.locator("#audit tbody tr").first).to_contain_text("mended")
    page.set_viewport_size({"width": 320, "height": 800})  # a reason may have many lines
    expect(page.locator("#audit .why").first).to_have_css("text-align", "left")


@pytest.mark.parametrize("scripts", [True, False])
def test_brownouts_are_paused_and_resumed(tabs: Tabs, *, scripts: bool) -> None:
    page = tabs(java_script_enabled=scripts).open(VERSION)
    act(page, "#brownouts", "Pause", "a holiday")
    expect(page.locator("#brownouts h2")).to_contain_text("paused")
    act(page, "#brownouts", "Resume", "it is over")
    expect(page.locator("#brownouts h2")).not_to_contain_text("paused")


def test_a_shadow_shows_its_differences_and_is_reset(tabs: Tabs, gateway: Program) -> None:
    page = tabs(permissions=["clipboard-read", "clipboard-write"]).open(VERSION)
    expect(page.locator(f"{FIELDS} summary code")).to_have_text("/name")
    expect(page.locator(f"{FIELDS} .samples")).to_contain_text('"Bob Marley"')
    change = 'map: { field: name, values: { "Bob Marley": "Bob Charlie" } }'
    expect(page.locator("#change-1")).to_have_text(change)
    page.locator("#change-1 + button").click()
    assert page.evaluate("navigator.clipboard.readText()") == change
    expect(page.locator("#ignore-1")).to_have_text('ignore: ["/name"]')
    act(page, "#shadow", "Reset", "the service was mended")
    expect(page.locator("#shadow")).to_contain_text("0 responses compared, 0 differ")
    use(gateway, 400, seed=3)
    expect(page.locator(f"{FIELDS} summary code")).to_have_text("/name", timeout=60_000)


def test_two_tabs_show_the_commands_of_each_other(tabs: Tabs) -> None:
    first, second, stale = (tabs().open(VERSION) for _ in range(3))
    section = stale.locator("#cutover")
    section.locator("summary", has_text="Set…").click()
    form = section.locator("details[open] form")
    form.get_by_label("Why").fill("what I thought before")  # a filled-in form is not replaced
    form.get_by_label("Percent").fill("70")
    act(first, "#cutover", "Set", "from the first tab", percent="30")
    expect(second.locator("#cutover .percent")).to_have_text("30%")
    with stale.expect_response(lambda answer: answer.request.method == "POST") as sent:
        form.get_by_role("button", name="Set").click()
    assert sent.value.status == 409
    expect(stale.get_by_role("alert")).to_contain_text("Nothing was done.")
    expect(stale.get_by_role("alert")).to_contain_text("is now at 30%")
    expect(stale.locator("#cutover .percent")).to_have_text("30%")
    act(first, "#cutover", "Set", "and once more", percent="60")
    expect(stale.locator("#cutover .percent")).to_have_text("60%")  # it is still updated
    act(stale, "#cutover", "Clear", "seen it now")
    expect(first.locator("#cutover .percent")).to_have_text("10%")


def test_a_reader_sees_commands_and_no_forms(tabs: Tabs) -> None:
    page = tabs(who="bob").open(VERSION)
    expect(page.locator(".act")).to_have_count(0)
    page.locator("#commands-cutover summary").click()
    expect(page.locator("#commands-cutover")).to_contain_text("cutover set person 1 0 --why")
    answer = page.request.post(f"{page.url}/cutover", form={"act": "roll_back", "why": "x"})
    assert answer.status == 403
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_screenshots_for_the_documentation_are_taken(tabs: Tabs, gateway: Program) -> None:
    """The images in docs/ are copies of these screenshots, made again if the page changes."""
    assert gateway.config is not None
    right = gateway.config.read_text()
    gateway.rewrite(right.replace("{ service: new }", "{ service: newer }"))
    SHOTS.mkdir(exist_ok=True)
    page = tabs(viewport={"width": 1000, "height": 900}).open("/")
    expect(page.locator(".item").first).to_contain_text("Rules refused")
    page.screenshot(path=SHOTS / "page-next.png")
    gateway.rewrite(right)
    page.goto(page.url + VERSION[1:])
    page.locator("#trend").screenshot(path=SHOTS / "page-trend.png")
    use(gateway, 400, seed=9)
    for outcome in page.locator("#cutover td[data-label='New route']").all()[1:]:
        expect(outcome).not_to_have_text("–", timeout=60_000)
    page.locator("#cutover").screenshot(path=SHOTS / "page-cutover.png")
    assert all(
        (ROOT / "docs" / f"page-{part}.png").exists() for part in ("next", "cutover", "trend")
    )


def test_a_wrong_token_is_refused(tabs: Tabs) -> None:
    page = tabs(who="").open("/page/audit")
    page.get_by_label("Token").fill("wrong-0123456789abcdef")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(token("bob"))
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("h1")).to_have_text("Audit")


def test_a_lost_gateway_is_shown_until_it_returns(browser: Browser, tmp_path: Path) -> None:
    """A suspended gateway is detected by its silence, a killed one at once."""
    with ExitStack() as stack:
        config = tmp_path / "gateway.yaml"
        config.write_text((ROOT / "gateway.yaml").read_text())
        first = start_program(stack, tmp_path, "gateway")
        tabs = Tabs(browser, first.admin_url)
        page = tabs(who="").open("/page/versions")
        status = page.locator("#live")
        expect(status).to_have_class("live on")
        first.process.send_signal(signal.SIGSTOP)
        expect(status).to_have_class("live lost", timeout=30_000)
        expect(status).to_contain_text("Lost since")
        first.process.send_signal(signal.SIGCONT)
        expect(status).to_have_class("live on", timeout=30_000)
        first.process.kill()
        first.process.wait()
        expect(status).to_have_class("live lost", timeout=30_000)
        text = config.read_text().replace("  person:\n", "  people:\n")
        config.write_text(text)
        again = start_program(stack, tmp_path, "gateway", GATEWAY_ADMIN_PORT=str(first.admin))
        wait_for(lambda: again.log("listening"))
        expect(status).to_have_class("live on", timeout=30_000)
        expect(page.locator("tbody th").first).to_have_text("people 1")
        tabs.close()


def test_long_names_do_not_displace_other_columns(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as stack:
        text = (ROOT / "gateway.yaml").read_text()
        (tmp_path / "gateway.yaml").write_text(
            text.replace("  person:\n", f"  {'person-' * 24}:\n")
        )
        tabs = Tabs(browser, start_program(stack, tmp_path, "gateway").admin_url)
        page = tabs(who="").open("/page/versions")
        page.set_viewport_size({"width": WIDTHS[-1], "height": 800})
        expect(page.get_by_role("columnheader", name="Time line")).to_be_in_viewport(ratio=1)
        page.set_viewport_size({"width": WIDTHS[0], "height": 800})
        expect(page.locator("tbody th b").first).to_be_in_viewport(ratio=1)
        tabs.close()


def test_pages_beyond_the_limit_report_that_they_are_not_updated(
    tabs: Tabs, gateway: Program
) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_STREAMS):
            connection = HTTPConnection("127.0.0.1", gateway.admin, timeout=60)
            stack.callback(connection.close)
            fields = {"Authorization": f"Bearer {token('ann')}"}
            connection.request("GET", "/page/events", headers=fields)
            # The response is kept, because deleting it would close its connection.
            stream = stack.enter_context(connection.getresponse())
            assert stream.status == 200
        tab = tabs()
        tab.page.clock.install()
        status = tab.open("/").locator("#live")
        expect(status).to_have_class("live full")
        expect(status).to_have_text("Updated each 30 s: 32 pages are open")
    for _ in range(20):
        if status.get_attribute("class") == "live on":
            break
        tab.page.clock.run_for(30_000)
        tab.page.wait_for_timeout(1000)
    expect(status).to_have_class("live on")
