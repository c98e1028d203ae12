"""Fixtures of the page's tests: a gateway with requests, and a browser that records errors."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.gateway.kit import ROOT, Program, start_program, wait_for
from tests.page.past import write_past

# Long enough for a busy machine; waits end as soon as the expected state is reached.
expect.set_options(timeout=30_000)

SHOTS = ROOT / ".page"
WIDTHS = (320, 380, 1280)
VIEWS = {
    "next": "/",
    "versions": "/page/versions",
    "version": "/page/versions/person/1",
    "ended": "/page/versions/orders/2024-01-31",
    "unversioned": "/page/versions/plain",
    "services": "/page/services",
    "rules": "/page/rules",
    "explained": "/page/rules?request=GET+/v1/person&client=acme",
    "audit": "/page/audit",
    "missing": "/page/versions/person/9",
}
VERSION = "/page/versions/person/1"
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "=1+1", "{{ 7 * 7 }}"]
CLIENTS = ["acme", "globex", "initech", *HOSTILE, *(f"client-{number}" for number in range(24)), ""]
TARGETS = [
    *["/v1/person"] * 6,
    *["/v2/person"] * 3,
    "/person/param?version=1",
    "/orders/v2025-03-01",
    "/orders/v2024-01-31",
    "/orders/v2026-05-01",
    "/plain",
]
# Targets of at least 24 pixels (WCAG 2.2, 2.5.8) are no default of axe.
AXE = {"rules": {"target-size": {"enabled": True}}}
# Without these flags, Chromium sends requests to Google.
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Persons", "version": "1"},
    "paths": {
        "/person": {
            "get": {
                "responses": {
                    "200": {
                        "description": "A person.",
                        "content": {"application/json": {"schema": {"required": ["name"]}}},
                    }
                }
            }
        }
    },
}


class Service(BaseHTTPRequestHandler):
    """Responds to each GET with a person, except to requests for its OpenAPI document."""

    protocol_version = "HTTP/1.1"
    person: object = {"name": "Bob Charlie"}

    def do_GET(self) -> None:
        body = json.dumps(DOCUMENT if self.path == "/openapi.json" else self.person).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


class NewService(Service):
    """A service with one differing response in ten."""

    count = 0

    def do_GET(self) -> None:
        NewService.count += 1
        last = "Marley" if NewService.count % 10 == 0 else "Charlie"
        self.person = {"name": {"firstName": "Bob", "lastName": last}}
        super().do_GET()


def serve(stack: ExitStack, handler: type[Service]) -> int:
    server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    stack.callback(server.shutdown)
    return server.server_port


def rules(old: int, new: int, state: Path) -> str:
    text = Path(__file__).with_name("rules.yaml").read_text()
    text = text.replace("<old>", str(old)).replace("<new>", str(new))
    text = text.replace("<state>", str(state))
    # No brownout is active while the tests run.
    text = text.replace("<hour>", str((time.gmtime().tm_hour + 3) % 24))
    for days in (-200, -60, -30, -1, 20):
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * 86_400))
        text = text.replace(f"<{days:+d}>", day)
    return text


def use(gateway: Program, requests: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    for _ in range(requests):
        name = chance.choice(CLIENTS)
        connection.request(
            "GET", chance.choice(TARGETS), headers={"X-Client": name} if name else {}
        )
        connection.getresponse().read()
    connection.close()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("page")
    with ExitStack() as stack:
        config = folder / "gateway.yaml"
        state = folder / "state.db"
        write_past(state)
        config.write_text(rules(serve(stack, Service), serve(stack, NewService), state))
        program = start_program(stack, folder, "gateway")
        program.config = config
        use(program, 500)
        wait_for(lambda: get(program, "/usage").count(b'"client"') > 20)
        yield program


def token(name: str) -> str:
    return f"{name}-0123456789abcdef"


def get(gateway: Program, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", gateway.admin, timeout=60)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token('ann')}"})
    body = connection.getresponse().read()
    connection.close()
    return body


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=QUIET)
        yield started
        started.close()


@dataclass
class Tab:
    """A tab of a browser: a page and its errors.

    Attributes:
        faults: errors of the console, the scripts and the content security policy, and requests to
            other addresses.
    """

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.base}{path}")
        return self.page

    def watch(self) -> None:
        self.page.on("console", lambda message: self._said(message.type, message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.on("request", lambda request: self._asked(request.url))

    def _said(self, kind: str, text: str) -> None:
        # Statuses from 400 on and an unreachable gateway are on the console too.
        if kind in ("error", "warning") and "Failed to load resource" not in text:
            self.faults.append(text)

    def _asked(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.base).netloc:
            self.faults.append(f"asked {url}")


class Tabs:
    """Opens tabs, each in a separate browser context; fails at the end if one had an error."""

    def __init__(self, browser: Browser, base: str) -> None:
        self._browser = browser
        self._base = base
        self._opened: list[tuple[BrowserContext, Tab]] = []

    def __call__(self, who: str = "ann", **context: Any) -> Tab:
        """Return a new tab, logged in; `context` is that of Browser.new_context."""
        made = self._browser.new_context(**context)
        tab = Tab(made.new_page(), self._base)
        tab.watch()
        self._opened.append((made, tab))
        if who:
            page = tab.open("/login")
            page.get_by_label("Token").fill(token(who))
            page.get_by_role("button", name="Log in").click()
        return tab

    def close(self) -> None:
        faults = [fault for _, tab in self._opened for fault in tab.faults]
        for context, _ in self._opened:
            context.close()
        assert faults == []


def examine(page: Page, width: int, name: str) -> None:
    """Fail if a view does not fit or violates a rule of axe; take a screenshot."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("scrollTo({ behavior: 'instant', top: 0 })")  # the bar would cover targets
    found = Axe().run(page, options=AXE).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def act(page: Page, part: str, label: str, why: str, **fields: str) -> None:
    section = page.locator(part)
    section.locator("summary", has_text=f"{label}…").click()
    form = section.locator("details[open] form")
    for name, value in fields.items():
        form.get_by_label(name.capitalize()).fill(value)
    form.get_by_label("Why").fill(why)
    form.get_by_role("button", name=label).click()


@pytest.fixture
def tabs(browser: Browser, gateway: Program) -> Iterator[Tabs]:
    made = Tabs(browser, gateway.admin_url)
    yield made
    made.close()
