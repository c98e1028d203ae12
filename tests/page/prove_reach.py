"""The page by keyboard only, with and without scripts, and in print."""

from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.page.conftest import SHOTS, VERSION, VIEWS, WIDTHS, Tabs


def test_every_view_is_reached_by_keyboard(tabs: Tabs) -> None:
    """The first tab stop skips the navigation; every view can be reached by Tab and Enter."""
    page = tabs().open("/")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Versions", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Versions")


# For the focused element: whether it is visible, whether its focus shows, and its accessible name.
FOCUSED = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect();
  if (one === document.body) return null;
  const bar = document.querySelector(".top"), below = bar.getBoundingClientRect().bottom;
  const first = one.className === "skip", above = first || bar.contains(one);
  let seen = box.width > 1 && box.height > 1 && (above || box.bottom > below + 1);
  for (let each = one.parentElement; each !== document.body; each = each.parentElement) {
    const around = each.getBoundingClientRect();
    const hides = getComputedStyle(each).overflow === "hidden";
    if (hides && (box.right > around.right + 1 || box.bottom > around.bottom + 1)) seen = false;
  }
  const label = one.labels?.[0]?.innerText || one.getAttribute("aria-label") || one.innerText;
  const outline = getComputedStyle(one).outlineStyle !== "none";
  return { label: label.trim(), seen, outline, first };
}"""
STOPS = "a[href], button, input:not([type=hidden]), select, textarea, summary"


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_tab_stop_is_visible(tabs: Tabs, width: int, *, scripts: bool) -> None:
    page = tabs(
        java_script_enabled=scripts,
        reduced_motion="reduce",
        viewport={"width": width, "height": 800},
    ).page
    for view in VIEWS.values():
        page.goto(urljoin(page.url, view))
        stops: list[dict[str, Any]] = []
        for _ in range(200):
            page.keyboard.press("Tab")
            stop = page.evaluate(FOCUSED)
            if stop is None or (stops and stop["first"]):
                break
            stops.append(stop)
        assert [each for each in stops if not (each["seen"] and each["outline"])] == []
        assert "" not in {each["label"] for each in stops}
        shown = [each for each in page.locator(STOPS).all() if each.is_visible()]
        assert len(stops) >= len(shown)


def test_a_command_works_by_keyboard(tabs: Tabs) -> None:
    page = tabs(java_script_enabled=False).open(f"{VERSION}#act-pause-brownouts")
    for label, why, chip in (("Pause", "a holiday", True), ("Resume", "over", False)):
        page.locator("#brownouts summary", has_text=f"{label}…").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.type(why)
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=label, exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#done")).to_contain_text("Done:")
        expect(page.locator("#brownouts h2 .chip")).to_have_count(int(chip))


@pytest.mark.parametrize("view", VIEWS)
def test_a_printed_view_is_complete(tabs: Tabs, view: str) -> None:
    page = tabs(color_scheme="dark", viewport={"width": 794, "height": 1123}).open(VIEWS[view])
    page.emulate_media(media="print", color_scheme="dark")
    cut = (
        "[...document.querySelectorAll('.scroll, pre')].filter(e => e.scrollWidth > e.clientWidth)"
    )
    assert page.evaluate(f"{cut}.map(e => e.innerText)") == []
    expect(page.locator(".act, .copy, .filter, .top").locator("visible=true")).to_have_count(0)
    expect(page.locator("body")).to_have_css("color", "rgb(26, 31, 41)")
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"{view}-paper.png", full_page=True)
