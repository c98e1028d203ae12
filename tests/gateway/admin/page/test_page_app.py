"""The page over real sockets: its views, forms, content security policy, and hostile names."""

import asyncio
import csv
import html
import io
import re
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from aiohttp import ClientResponse, ClientSession, TCPConnector, web
from aiohttp.test_utils import TestClient, TestServer

from gateway import __version__
from gateway.admin.admin_app import admin_app
from gateway.admin.explanation import facts, parse_request
from gateway.admin.page.charts import line
from gateway.admin.page.live_updates import MOST_STREAMS
from gateway.admin.page.page_app import Page
from gateway.admin.page.rules_view import Asked, edit, example
from gateway.admin.page.version_view import HEIGHT, cutover_part, marked
from gateway.base.mistakes import Issue
from gateway.findings.gate_curves import GatePoint
from gateway.findings.notifications import DOCUMENT, Delivery, Notification, NotifyDocument
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import RefusedRules
from gateway.findings.suggested_fix import DifferenceSample
from gateway.findings.summaries import DAYS, UsageSummaries
from gateway.observe.failing_targets import FailingTarget
from gateway.process.reloader import Reloader
from gateway.rollout.cutovers import CurrentCutover, CutoverState, DecidedBy
from gateway.rollout.decisions import ChangeRequest
from gateway.rollout.gates import GateEvidence, GateOutcome, GateResult
from gateway.store.local import LocalState
from gateway.store.state import DataGap, Membership, StateUnreachableError, StateView
from gateway.usage.delta import Delta, TrafficDelta, UpstreamDelta, UsageDelta
from gateway.verify.live.documented_operations import DocumentedOperations
from tests.gateway.admin.totals import KEY, NOTHING
from tests.gateway.documents import LocalDocuments
from tests.gateway.operating import PARTS, admin_of
from tests.gateway.rules.rules import RULES, edited, loaded
from tests.gateway.rules.test_draft import versions_at_endpoints

Client = TestClient[web.Request, web.Application]
NAMES = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "=1+1", "{{ 7 * 7 }}", ""]
ENDING = "{ service: old, lifecycle: { deprecated: 2026-01-01, sunset: 2099-01-01 },"
ENDING += (
    " brownout: { percent: 5, windows: [{ at: '0 9 * * *', minutes: 30, from: 2098-01-01 }] } }"
)
LINK = 'class="name" href="/page/versions/'
VIEWS = {
    "/": "Next",
    "/page/versions": "Versions",
    "/page/versions/person/1": "person <b>1</b>",
    "/page/versions/users": "users <b></b>",
    "/page/services": "Services",
    "/page/rules": "Rules",
    "/page/audit": "Audit",
}


ADMIN = "admin: { tokens: { ann: { right: operate, token: 0123456789abcdef } } }\n"
ANN = {"Authorization": "Bearer 0123456789abcdef"}
ACTING = ENDING.replace("service: old,", 'service: old, cutover: { via: "2", percent: 10 },')


def made(folder: Path, rules: str) -> Operator:
    path = folder / "gateway.yaml"
    path.write_text(rules)
    reloader = Reloader(path, {})
    state = LocalState(Membership("a", lambda: reloader.latest, lambda: "hash"))
    documented = DocumentedOperations(LocalDocuments(folder))
    return Operator(state, reloader, lambda: 1, lambda: None, documented)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """Return the operator of a gateway that has served clients with hostile names."""
    operator = made(tmp_path, edited("{ service: old }", ENDING))
    state = operator.state
    usage = [UsageDelta(*KEY, "/v{version}/person", name, 3, 1, 0, 2) for name in NAMES]
    traffic = [
        TrafficDelta(*KEY, "/v{version}/person", "GET", status, "", [count, *NOTHING[1:]], 1.0, 0)
        for status, count in ((200, 9), (502, 1))
    ]
    state.totals.absorb(Delta(state.totals.since + 1, usage, traffic, [], [], []))
    return operator


@pytest.fixture
async def page(operator: Operator) -> AsyncIterator[Client]:
    async with TestClient(TestServer(admin_of(operator))) as client:
        yield client


async def test_an_api_without_versions_has_no_verdict(page: Client) -> None:
    text = await (await page.get("/page/versions/users")).text()
    for advice in ("Verdict", "lifecycle", "out of the rules", "No end is announced", "sunset"):
        assert advice not in text
    assert "Verdict" in await (await page.get("/page/versions/person/1")).text()


@pytest.mark.parametrize("path", VIEWS)
async def test_each_view_is_html_with_a_strict_content_security_policy(
    page: Client, path: str
) -> None:
    answer = await page.get(path)
    text = await answer.text()
    assert (answer.status, answer.content_type) == (200, "text/html")
    assert f"<h1>{VIEWS[path]}" in text
    assert "Server" not in answer.headers  # it would show the versions of Python and aiohttp
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not any(name in text for name in NAMES if name[:1] in ('"', "<"))
    for inline in (
        *("<style", " style=", "<script>", " onclick="),
        *("javascript:", 'src="http', '="//'),
    ):
        assert inline not in text, inline


@pytest.mark.parametrize("path", ["/nope", "/page", "/page/nope", "/history/person/9"])
async def test_a_browser_gets_a_page_for_an_unknown_path(page: Client, path: str) -> None:
    answer = await page.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status, answer.content_type) == (404, "text/html")
    assert "<h1>Not found</h1>" in await answer.text()
    plain = await page.get(path, headers={"Accept": "application/json"})
    page_of_its_own = path.startswith("/page/")
    assert (plain.content_type == "text/html") == page_of_its_own


async def test_a_next_step_leads_to_the_edit_that_it_needs(
    page: Client, operator: Operator
) -> None:
    moved = edited("{ service: old }", '{ service: old, cutover: { via: "2", percent: 100 } }')
    operator.reloader.latest = loaded(moved)
    operator.reloader.content = moved.encode()
    text = html.unescape(await (await page.get("/")).text())
    assert "All its requests go to the service of version 2." in text
    assert 'href="/page/versions/person/1#way">See the edit' in text
    text = html.unescape(await (await page.get("/page/versions/person/1")).text())
    way = text.partition('id="way"')[2].partition("</section>")[0]
    lines = re.findall(r'<span class="(added|removed)">.?\s*(.*)', way)
    assert lines == [
        ("removed", '"1": { service: old, cutover: { via: "2", percent: 100 } }'),
        ("added", '"1": { via: "2" }'),
    ]
    assert "See docs/shadow-and-cutover.md<" in way
    known = replace(operator, docs="https://docs.test/")
    async with TestClient(TestServer(admin_of(known))) as client:
        text = await (await client.get("/page/versions/person/1")).text()
    assert 'href="https://docs.test/shadow-and-cutover.md#at-100-percent"' in text


BLOCK = """apis:
  person:
    versions:
      "1":
        service: old
        # a note
        shadow:
          via: "2"
        schema: v1.yaml
      "2": { service: new }
"""
EDITS = {
    "a new key": (BLOCK, "cutover: x", "", BLOCK.replace("v1.yaml", "v1.yaml\n        cutover: x")),
    "another key": (
        *(BLOCK, 'via: "2"', "service shadow"),
        BLOCK.replace("service: old", 'via: "2"').replace(
            '        # a note\n        shadow:\n          via: "2"\n', ""
        ),
    ),
    "in braces": ('apis: { person: { versions: { "1": { a: 1 } } } }', "b: 2", "", None),
    "an alias": ("x: &x { a: 1 }\napis: { person: *x }", "b: 2", "", ""),
    "no YAML": ("[", "b: 2", "", ""),
}


@pytest.mark.parametrize(("before", "add", "drop", "after"), EDITS.values(), ids=EDITS)
def test_an_edit_changes_only_the_lines_of_the_version(
    before: str, add: str, drop: str, after: str | None
) -> None:
    after = before.replace("a: 1", "a: 1, b: 2") if after is None else after
    lines = edit(before.encode(), KEY, add, frozenset(drop.split()))
    kept = [line for sign, line in lines if sign in " +"]
    removed = [line for sign, line in lines if sign in " -"]
    assert "\n".join(kept) in after
    assert "\n".join(removed) in before
    assert bool(lines) is bool(after)


async def test_services_show_why_a_target_fails_and_how_many_days_certificates_have(
    page: Client, operator: Operator
) -> None:
    targets = operator.rules.services["old"].targets
    name = targets[0].authority
    failing = FailingTarget("old", name, name, len(targets), "down", time.time(), "<b>refused</b>")
    shown = replace(operator, targets=lambda: [failing])
    operator.rules.derived["certificate_expiries"] = {"api.pem": time.time() + 9.5 * 86_400}
    buckets = [30, *NOTHING[1:]]
    sent = [UpstreamDelta(*KEY, name, "GET", status, "", buckets, 1.0) for status in (200, 503)]
    operator.state.totals.absorb(Delta(time.time(), [], [], [], [], [], upstream=sent))
    async with TestClient(TestServer(admin_of(shown))) as client:
        text = await (await client.get("/page/services")).text()
        assert 'href="/page/services">See the targets' in await (await client.get("/")).text()
        assert "No service matches." in await (await client.get("/page/services?find=zz")).text()
    row = text.partition(f"<code>http://{name}</code>")[2].partition("</tr>")[0]
    cells = re.findall(r'<td data-label="(\w+[^"]*)"[^>]*>(.*?)</td>', row, re.DOTALL)
    plain = {label: re.sub(r"(<[^>]+>|\s)+", " ", cell).strip() for label, cell in cells}
    assert plain["State"].startswith("down &lt;b&gt;refused&lt;/b&gt;")
    assert (plain["Load"], plain["Requests"], plain["Failed"]) == ("100%", "60", "30")
    assert re.search(r"<code>api.pem</code>.*<span class=\"chip warn\">9</span>", text)


async def test_long_paths_may_break_at_slashes(page: Client) -> None:
    text = await (await page.get("/page/versions/person/1")).text()
    assert "<code><wbr>/v{version}<wbr>/person</code>" in text


async def test_the_page_is_imported_in_a_thread(operator: Operator) -> None:
    """The event loop serves requests during the import."""
    threads = list[threading.Thread]()

    def load() -> type[Page]:
        threads.append(threading.current_thread())
        return Page

    app = admin_app(operator, {**PARTS, "page": load})
    async with TestClient(TestServer(app)) as client:
        answers = await asyncio.gather(*(client.get(path) for path in VIEWS))
    assert {answer.status for answer in answers} == {200}
    assert threads
    assert threading.main_thread() not in threads


async def test_parts_with_the_counts_of_only_one_gateway_have_a_note(
    page: Client, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, callers = "/page/versions/person/1", "/page/callers/person/1"
    assert 'class="note alone"' not in await (await page.get(path)).text()
    whole = await operator.state.view()

    async def alone(*_: object, **__: object) -> StateView:
        return whole._replace(replica="a", gaps=(DataGap(None, whole.now),))

    monkeypatch.setattr(LocalState, "view", alone)
    text = await (await page.get(path)).text()
    for part in ("trend", "callers"):
        section = text.partition(f'<section class="card" id="{part}"')[2].partition("</section>")[0]
        assert "These are the counts of a since its start" in section
    disposition = (await page.get(callers)).headers["Content-Disposition"]
    assert disposition == 'attachment; filename="callers-person-1-a-alone.csv"'


async def test_the_verdict_has_a_form_to_change_its_period(page: Client) -> None:
    """Each form keeps the parameters that other forms have set."""
    path = "/page/versions/person/1"
    text = await (await page.get(path)).text()
    assert "or use a shorter &#39;within&#39;" not in text  # the version was called
    assert '<input name="within" required pattern="[0-9]{1,5}[smhd]"' in text
    assert 'value="30d"></label>' in text
    text = await (await page.get(f"{path}?within=5m&find=x&sort=-last")).text()
    assert 'value="5m"></label>' in text
    for hidden in (
        'name="find" value="x"',
        'name="sort" value="-last"',
        'name="within" value="5m"',
    ):
        assert f'<input type="hidden" {hidden}>' in text
    unseen = await (await page.get("/page/versions/person/2")).text()
    assert "or use a shorter &#39;within&#39;" in unseen
    assert re.search(r"Repeat this after \d+ \w+ \d{4}, \d\d:\d\d UTC, or use a", unseen)
    wrong = await (await page.get(f"{path}?within=3")).text()
    assert f'<a class="button" href="{path}">Back to person 1</a>' in wrong


async def test_callers_are_exported_as_csv(page: Client) -> None:
    answer = await page.get("/page/callers/person/1?sort=client&find=PERSON")
    rows = list(csv.DictReader(io.StringIO(await answer.text())))
    assert answer.content_type == "text/csv"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="callers-person-1.csv"'
    assert [row["client"] for row in rows] == ["(anonymous)", NAMES[1], NAMES[0], "'=1+1", NAMES[3]]
    assert rows[0]["count"] == "3"
    assert (await page.get("/page/callers/person/9")).status == 404
    assert (await page.get("/page/callers/users")).status == 200


ODD = [
    *("</script><script>alert(3)</script>", "</textarea><b>", "<!--", "&lt;b&gt;", "' OR 1=1 --"),
    *("${7*7}", "{% include '/etc/passwd' %}", "100%", "a_b", "axb"),
    *("\u0639\u0645\u064a\u0644", "\u202egnp.exe", "ac\u200bme", "-2+3", "@SUM(A1)"),
    *("\uff1d1+1", "\n=1+1", "x" * 5000),
]


@pytest.fixture
def odd(operator: Operator) -> Operator:
    """Count requests of clients with odd names, bypassing the checks of live requests."""
    usage = [UsageDelta(*KEY, "/p", name, 3, 1, 0, 2) for name in ODD]
    operator.state.totals.absorb(Delta(time.time(), usage, [], [], [], []))
    return operator


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
async def test_any_client_name_can_be_searched_and_is_shown_as_text(
    odd: Operator, page: Client, name: str
) -> None:
    for path, field in (
        ("/page/versions/person/1", "find"),
        ("/page/versions", "find"),
        ("/page/audit", "find"),
        ("/page/rules", "request"),
        ("/page/rules", "headers"),
    ):
        answer = await page.get(path, params={field: name})
        text = await answer.text()
        assert answer.status in (200, 422)
        assert text.count("<script") == 1
        assert not any(tag in text for tag in ("<b></", "<!--", "</textarea><b>"))
    shown = await (await page.get("/page/versions/person/1", params={"find": name})).text()
    section = shown[shown.index('id="callers"') :]
    assert html.escape(name).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in section
    body = await (await page.get("/page/callers/person/1", params={"find": name})).text()
    (row,) = csv.DictReader(io.StringIO(body, newline=""))
    assert row["client"] == (f"'{name}" if name[0] in "-@\uff1d\n" else name)


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/page/versions/person/9", 404, "The API person has no version &#39;9&#39;; known: 1, 2."),
        ("/page/versions/person", 404, "The address names no version of person; known: 1, 2."),
        ("/page/versions/users/1", 404, "The API users has no version &#39;1&#39;; known: none."),
        (
            "/page/versions/persons",
            404,
            "No API is called &#39;persons&#39;; did you mean &#39;person&#39;?</p>",
        ),
        ("/page/nothing", 404, "This port serves nothing at this path."),
        ("/page/static/nothing.css", 404, "There is no such file."),
        ("/page/versions/person/1?within=x", 400, "&#39;x&#39; is not a period;"),
        ("/page/versions/%3Cscript%3E", 404, "&#39;&lt;script&gt;&#39;"),
    ],
)
async def test_an_unknown_address_or_parameter_gets_an_error_page_with_details(
    page: Client, path: str, status: int, detail: str
) -> None:
    answer = await page.get(path)
    assert (answer.status, answer.content_type) == (status, "text/html")
    assert detail in await answer.text()


async def test_a_wrong_method_is_refused_with_an_allow_header(page: Client) -> None:
    answer = await page.delete("/page/audit")
    assert (answer.status, answer.content_type) == (405, "text/html")
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/page/versions", {"Host": "evil.example"}, 421),
        ("/page/versions", {"Origin": "null"}, 403),
        ("/page/versions", {"Authorization": "Bearer wrong-0123456789"}, 401),
        ("/page/nowhere", {}, 404),
    ],
)
async def test_a_refusal_does_not_reveal_the_replica_or_the_release(
    operator: Operator, path: str, fields: dict[str, str], status: int
) -> None:
    config = operator.reloader.folder / "gateway.yaml"
    config.write_text(ADMIN + config.read_text())
    guarded = replace(operator, reloader=Reloader(config, {}))
    guarded.state.replica = "a-secret-name"
    async with TestClient(TestServer(admin_of(guarded))) as client:
        answer = await client.get(path, headers=fields)
        text = await answer.text()
        assert (answer.status, "a-secret-name" in text, __version__ in text) == (
            *(status, False),
            False,
        )
        assert "processes serve" not in text
        assert "a-secret-name" in await (await client.get("/page/versions", headers=ANN)).text()


async def test_versions_are_filtered_and_sorted(page: Client) -> None:
    async def names(query: str) -> list[str]:
        text = await (await page.get(f"/page/versions?{query}")).text()
        return [part.split('"')[0] for part in text.split(LINK)[1:]]

    assert await names("") == ["person/1", "person/2", "users"]
    assert await names("sort=-requests") == ["person/1", "person/2", "users"]
    assert await names("sort=requests") == ["person/2", "users", "person/1"]
    assert await names("find=NEW") == ["person/2"]
    assert await names("phase=ending") == ["person/1"]
    assert await names("phase=ended") == []


@pytest.mark.usefixtures("forked_processes")
async def test_the_check_of_a_draft_shows_a_summary_or_its_mistakes(page: Client) -> None:
    async def check(draft: str) -> tuple[int, str]:
        answer = await page.post("/page/rules", data={"draft": draft})
        return answer.status, await answer.text()

    status, text = await check(RULES)
    assert status == 200
    assert "The draft is valid: 2 services, 5 endpoints." in text
    status, text = await check(edited("{ service: new }", "{ service: <b>new }"))
    assert status == 422
    assert "Line 14, column 14" in text
    assert "no service is called &#39;&lt;b&gt;new&#39;" in text
    assert "<b>new" not in text


async def test_a_draft_that_takes_too_long_is_refused(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.rules.draft.SECONDS", 1)
    async with asyncio.timeout(60):
        draft = versions_at_endpoints(3000).decode()
        answer = await page.post("/page/rules", data={"draft": draft})
        assert answer.status == 422
    assert "takes more than 1 s or 512 MiB to check" in await answer.text()


async def test_the_audit_view_lists_the_latest_notifications_first(
    page: Client, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'id="notifications"' not in await (await page.get("/page/audit")).text()
    deliveries = {
        "ops": Delivery("sent", 1),
        "chat": Delivery("waiting", 2, 86_400.0, "it responded with status 500"),
    }
    items = [
        Notification(f"evt_{at}", "task.failed", at, "a", f"<b>{at}</b>", "", "", "", deliveries)
        for at in range(30)
    ]
    document = msgspec.to_builtins(NotifyDocument(items))
    await operator.state.change_document(DOCUMENT, lambda _: document)
    text = (await (await page.get("/page/audit")).text()).partition('id="notifications"')[2]
    assert text.index("&lt;b&gt;29&lt;/b&gt;") < text.index("&lt;b&gt;5&lt;/b&gt;")
    assert "&lt;b&gt;4&lt;/b&gt;" not in text
    assert "And 5 more" in text
    assert "ops: sent" in text
    assert "it responded with status 500; again 2 Jan 1970, 00:00 UTC" in text

    async def away(*_: object) -> tuple[object, float]:
        raise StateUnreachableError("gone")

    monkeypatch.setattr(operator.state, "read_document", away)
    assert (await page.get("/page/audit")).status == 200


async def test_a_failing_webhook_is_an_action_item(tmp_path: Path) -> None:
    status = 403

    async def take(_: web.Request) -> web.Response:
        return web.Response(status=status)

    receiving = web.Application()
    receiving.router.add_post("/", take)
    async with TestServer(receiving) as receiver:
        text = f"notify: {{ webhooks: {{ pager: {{ url: '{receiver.make_url('/')}' }} }} }}\n"
        operator = made(tmp_path, text + RULES)
        failed = {"pager": Delivery("failed", 8, 0.0, "it answered <b>500", 90_000.0)}
        one = Notification("evt_1", "task.failed", 60.0, "a", "It failed.", "", "", "", failed)
        document = msgspec.to_builtins(NotifyDocument([one]))
        await operator.state.change_document(DOCUMENT, lambda _: document)
        async with TestClient(TestServer(admin_of(operator))) as page:

            async def shown() -> list[bool]:
                texts = [await (await page.get(path)).text() for path in ("/", "/page/audit")]
                return [
                    "answered &lt;b&gt;500. Messages: 0 waiting, 1 given" in text for text in texts
                ]

            assert await shown() == [True, True]
            assert (await page.post("/notifications/test?why=x")).status == 200
            assert await shown() == [True, True]
            status = 200
            assert (await page.post("/notifications/test?why=x")).status == 200
            assert await shown() == [False, False]


async def test_the_rules_view_explains_a_request(page: Client) -> None:
    async def explained(**query: str) -> tuple[int, str]:
        answer = await page.get("/page/rules", params=query)
        return answer.status, await answer.text()

    status, text = await explained(request="GET /v1/person")
    assert status == 200
    assert "<span>service</span><p>old at 127.0.0.1:8001</p>" in text
    status, text = await explained(request="GET /v1/person", at="2099-01-02", peer="192.0.2.7")
    assert "410 version_retired" in text
    status, text = await explained(request="GET /header", headers="X-API-VERSION: 2\r\n\r\nA: b")
    assert "<span>version</span><p>2, by header</p>" in text
    assert (await page.put("/brownouts/person/1?why=x")).status == 200
    _, text = await explained(request="GET /v1/person")
    assert "<span>brownout</span><p>is paused</p>" in text
    for wrong in ({"request": "nothing"}, {"request": "GET /", "peer": "x"}):
        status, text = await explained(**wrong)
        assert (status, 'role="alert"' in text) == (422, True)


@pytest.mark.parametrize(
    ("endpoint", "request_line", "headers"),
    [
        ('{ path: "/lib/{version}/books/{id}", version: { in: path } }', "GET /lib/1/books/1", ""),
        ("{ path: /loans, methods: [PUT], version: { in: query, name: v } }", "PUT /loans?v=1", ""),
        ("{ path: /loans, version: { in: header, name: Lib } }", "GET /loans", "Lib: 1"),
        (
            '{ path: /loans, version: { in: accept, media_type: "a/b-v{version}+json" } }',
            *("GET /loans", "Accept: a/b-v1+json"),
        ),
        (
            '{ path: /loans, version: { in: host, name: "v{version}.lib.example" } }',
            *("GET /loans", "Host: v1.lib.example"),
        ),
    ],
)
def test_the_example_request_is_one_that_the_configuration_serves(
    endpoint: str, request_line: str, headers: str
) -> None:
    services, _, _ = RULES.partition("apis:")
    text = f"{services}apis:\n  lib:\n    endpoints: [ {endpoint} ]\n"
    rules = loaded(text + '    versions: { "1": { service: old }, "2": { service: new } }\n')
    assert example(rules) == Asked(request_line, headers)
    found = facts(rules, parse_request(request_line, headers.splitlines(), rules), time.time())
    assert [fact for name, fact in found if name == "service"] == ["old at 127.0.0.1:8001"]


def test_an_api_without_versions_also_has_an_example_request() -> None:
    services, _, people = RULES.partition("apis:")
    users = people[people.index("  users:") :]
    assert example(loaded(f"{services}apis:\n{users}")) == Asked("POST /users")
    ended = "  lib:\n    endpoints: [ { path: /loans, version: { in: query, name: v } } ]\n"
    ended += '    versions: { "1": { lifecycle: { sunset: 2020-01-01 } } }\n'
    assert example(loaded(f"{services}apis:\n{ended}")) == Asked()


def test_the_error_for_a_malformed_request_has_an_example() -> None:
    services, _, _ = RULES.partition("apis:")
    endpoint = "{ path: /loans, version: { in: header, name: Lib } }"
    text = f"{services}apis:\n  lib:\n    endpoints: [ {endpoint} ]\n"
    rules = loaded(text + '    versions: { "1": { service: old }, "2": { service: new } }\n')
    with pytest.raises(ValueError, match="'x' is not a request; write it like 'GET /loans'"):
        parse_request("x", (), rules)
    with pytest.raises(ValueError, match="'x' is not a header; write it like 'Lib: 1'"):
        parse_request("GET /loans", ["x"], rules)
    ended = text + '    versions: { "1": { lifecycle: { sunset: 2020-01-01 } } }\n'
    with pytest.raises(ValueError, match="'x' is not a request; write it like 'GET /path'"):
        parse_request("x", (), loaded(ended))
    with pytest.raises(ValueError, match="write it like 'Accept: application/json'"):
        parse_request("GET /loans", ["x"], loaded(ended))


async def test_the_form_for_requests_shows_an_example(page: Client) -> None:
    text = await (await page.get("/page/rules")).text()
    assert 'placeholder="GET /v1/person"' in text


async def test_a_malformed_line_with_many_spaces_is_refused_quickly(page: Client) -> None:
    query = {"request": "GET /v1/person", "headers": f"A:{' ' * 6000}\x01"}
    answer = await page.get("/page/rules", params=query)
    assert answer.status == 422
    assert "is not a header" in await answer.text()
    query["headers"] = " A: \t b \t "
    assert (await page.get("/page/rules", params=query)).status == 200


async def test_the_rules_view_shows_changes_and_mistakes_of_the_configuration(
    page: Client, operator: Operator
) -> None:
    rules = operator.reloader
    assert isinstance(rules, Reloader)
    rules.former = edited("{ service: new }", "{ service: old }").encode()
    rules.refused = RefusedRules(b"a: b\nc: <i>\n", (Issue(2, 4, "c", "is wrong"),), 0.0)
    text = await (await page.get("/page/rules")).text()
    assert '<span class="removed">-      &#34;2&#34;: { service: old }' in text
    assert '<span class="added">+      &#34;2&#34;: { service: new }' in text
    assert "Line 2, column 4" in text
    assert "c: &lt;i&gt;" in text
    assert "Rules refused" in await (await page.get("/")).text()


async def test_the_audit_log_lists_the_latest_change_first(
    page: Client, operator: Operator
) -> None:
    for who in ("<b>eve</b>", "bob"):
        await operator.state.pause(KEY, ChangeRequest(who, "127.0.0.1", "why not"))
    text = await (await page.get("/page/audit")).text()
    assert text.index("bob") < text.index("&lt;b&gt;eve&lt;/b&gt;")
    # The cells of a row have separate elements, so that narrow screens can wrap them.
    assert '<span>person <span class="term">1</span></span>' in text
    text = await (await page.get("/page/audit?find=BOB")).text()
    assert "1 of 2 changes" in text


async def test_static_files_are_immutable(page: Client) -> None:
    text = await (await page.get("/")).text()
    address = text.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = await page.get(address)
    assert (answer.status, answer.content_type) == (200, "text/css")
    assert "immutable" in answer.headers["Cache-Control"]


async def event(answer: ClientResponse) -> str:
    text = await answer.content.readuntil(b"\n\n")
    return text.decode().removeprefix("event: ").partition("\n")[0]


async def test_the_event_stream_has_an_event_for_each_change(
    page: Client, operator: Operator
) -> None:
    async with page.get("/page/events") as answer:
        assert answer.content_type == "text/event-stream"
        assert await event(answer) == "start"
        await operator.state.pause(KEY, ChangeRequest("bob", "", ""))
        assert await event(answer) == "changed"
        assert await event(answer) == "beat"


async def test_views_show_the_available_data_while_the_store_is_unreachable(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(self: LocalState) -> NoReturn:
        raise StateUnreachableError("the database db does not respond")

    monkeypatch.setattr(LocalState, "audit", away)
    monkeypatch.setattr(LocalState, "fleet", away)
    monkeypatch.setattr(LocalState, "stale_since", 5.0)
    for path in VIEWS:
        answer = await page.get(path)
        assert answer.status == 200
        assert "has been unreachable since 1 Jan 1970, 00:00 UTC" in await answer.text()
    text = await (await page.get("/")).text()
    assert "State is stale" in text
    text = await (await page.get("/page/audit")).text()
    assert "The replicas cannot be read: the database db does not respond." in text
    assert "The audit log cannot be read: the database db does not respond." in text
    assert "There are no changes yet." not in text


async def test_event_streams_are_bounded(page: Client) -> None:
    streams = [await page.get("/page/events") for _ in range(MOST_STREAMS)]
    assert {stream.status for stream in streams} == {200}
    async with page.get("/page/events") as one_more:
        assert await one_more.text() == "event: full\ndata:\n\n"
    for stream in streams:
        stream.close()


async def test_one_address_cannot_take_all_event_streams(page: Client) -> None:
    """The oldest stream of the address with the most streams ends when another address connects."""
    streams = [await page.get("/page/events") for _ in range(MOST_STREAMS)]
    async with ClientSession(connector=TCPConnector(local_addr=("127.0.0.2", 0))) as another:
        stream = await another.get(page.make_url("/page/events"))
        assert await stream.content.readuntil(b"\n\n") == b"event: start\ndata:\n\n"
        async with asyncio.timeout(30):
            assert (await streams[0].text()).endswith("event: full\ndata:\n\n")
        async with page.get("/page/events") as one_more:  # no other address has more streams
            assert await one_more.text() == "event: full\ndata:\n\n"
        stream.close()
    for stream in streams:
        stream.close()


@pytest.fixture
async def acting(tmp_path: Path) -> AsyncIterator[Client]:
    path = tmp_path / "acting.yaml"
    path.write_text(ADMIN + edited("{ service: old }", ACTING))
    reloader = Reloader(path, {})
    state = LocalState(Membership("a", lambda: reloader.latest, lambda: "hash"))
    documented = DocumentedOperations(LocalDocuments(tmp_path))
    operator = Operator(state, reloader, lambda: 1, lambda: None, documented)
    async with TestClient(TestServer(admin_of(operator))) as client:
        yield client


async def test_a_first_visit_gets_a_login_form_without_an_error(acting: Client) -> None:
    for headers, alerts in (({}, 0), ({"Authorization": "Bearer wrong"}, 1)):
        answer = await acting.get("/", headers={"Accept": "text/html", **headers})
        text = await answer.text()
        assert (answer.status, text.count('role="alert"')) == (401, alerts)
        assert '<input type="password" name="token"' in text


async def post(page: Client, path: str, **fields: str) -> tuple[int, str]:
    answer = await page.post(path, data=fields, headers=ANN, allow_redirects=False)
    return answer.status, answer.headers.get("Location") or await answer.text()


async def test_after_a_rollback_the_curve_ends_with_the_value_that_caused_it(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = "steps: [10], gates: { errors: 1%, window: 300s }"
    moving = ACTING.replace("percent: 10", gates)
    rule = loaded(edited("{ service: old }", moving)).cutovers[KEY]
    bad = GateResult(
        *("errors", "5xx", GateOutcome.EXCEEDED, 0.5, 0.0, 0.01, 5, 10, 0, 10, 300.0), "errors"
    )
    slow = GateResult(
        *("latency", "mean", GateOutcome.PASSED, 1.234, 0.05, 30.0, 0, 10, 0, 10, 300.0), "slow"
    )
    gone = CutoverState(0.0, DecidedBy.ROLLED_BACK, "errors", 1.0, (bad, slow))
    current = CurrentCutover(rule, gone, GateEvidence(), (bad, slow), 1.0)

    def cutover(_: object) -> CurrentCutover:
        return current

    monkeypatch.setattr(operator.state, "cutover", cutover)
    lately = {("errors", "5xx"): [GatePoint(0.0, 0.1, 0.0), GatePoint(10.0, 0.2, 0.0)]}
    monkeypatch.setattr(operator.curves, "of", lambda _: lately)
    shown = cutover_part(operator, KEY, [])
    assert shown is None  # the configuration in force has no cutover
    monkeypatch.setattr(operator.reloader, "latest", loaded(edited("{ service: old }", moving)))
    shown = cutover_part(operator, KEY, [])
    assert shown is not None
    assert shown["gates"][0]["new_path"] == line([0.1, 0.2, 0.5], HEIGHT, 0.5)
    assert (shown["gates"][1]["new"], shown["gates"][1]["old"]) == ("1.23 s of 10", "50 ms of 10")


async def test_gates_are_shown_with_the_periods_of_their_counts_and_curves(
    page: Client, operator: Operator
) -> None:
    moving = ACTING.replace("percent: 10", "percent: 10, gates: { errors: 1%, window: 300s }")
    operator.reloader.latest = loaded(edited("{ service: old }", moving))
    text = await (await page.get("/page/versions/person/1")).text()
    assert "over a moment; beyond a limit it goes back to 0%" in text
    assert "over the last 10 minutes</p>" in text


CUTOVER = "/page/versions/person/1/cutover"
BROWNOUTS = "/page/versions/person/1/brownouts"


async def test_forms_set_pause_roll_back_and_clear_a_cutover(acting: Client) -> None:
    done = (303, "/page/versions/person/1?done=cutover#cutover")
    for act, seen, percent in [
        ("set", "10-rules", "40"),
        ("pause", "40-operator", ""),
        ("roll_back", "40-operator", ""),
        ("clear", "0-operator", ""),
    ]:
        fields = {"act": act, "seen": seen, "percent": percent, "why": f"to {act}"}
        assert await post(acting, CUTOVER, **fields) == done
    for act, seen in (("pause", "running"), ("resume", "paused")):
        status, _ = await post(acting, BROWNOUTS, act=act, seen=seen, why="a day off")
        assert status == 303
        waits = "Brownouts paused" in await (await acting.get("/", headers=ANN)).text()
        assert waits is (act == "pause")
    status, _ = await post(acting, "/page/versions/person/1/shadow", why="mended")
    assert status == 303
    text = await (await acting.get("/page/audit", headers=ANN)).text()
    for row in ("to set", "to roll_back", "to clear", "a day off", "mended"):
        assert f">{row}</td>" in text


async def test_a_rollout_shows_each_step_and_can_be_promoted(tmp_path: Path) -> None:
    steps = 'service: old, cutover: { via: "2", steps: [10, 50, 100], every: 1h },'
    operator = made(
        tmp_path, ADMIN + edited("{ service: old }", ENDING.replace("service: old,", steps))
    )
    async with TestClient(TestServer(admin_of(operator))) as client:
        assert await rollout(client) == [
            "10% 0 requests on the new route, 0 failed; 0 compared, 0 differ",
            "50% later, at the earliest",
            "100% later, at the earliest",
        ]
        status, _ = await post(client, CUTOVER, act="promote", seen="10-rules", why="all is well")
        assert status == 303
        first, current, last = await rollout(client)
        assert re.fullmatch(r"10% passed .* UTC: all is well", first)
        assert current.startswith("50% 0 requests")
        assert last == "100% later, at the earliest"
        text = await (await client.get("/page/versions/person/1", headers=ANN)).text()
        assert "an operator has promoted it" in text
        status, _ = await post(client, CUTOVER, act="set", percent="100", seen="50-rules", why="go")
        assert status == 303
        assert [line.partition(" ")[0] for line in await rollout(client)] == ["10%", "50%", "100%"]
        text = await (await client.get("/page/versions/person/1", headers=ANN)).text()
        assert "act-promote" not in text


async def rollout(client: Client) -> list[str]:
    text = await (await client.get("/page/versions/person/1", headers=ANN)).text()
    part = text.partition('<ol class="rollout"')[2].partition("</ol>")[0]
    items = re.findall(r"<li.*?</li>", part, re.DOTALL)
    plain = (re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", item)).strip() for item in items)
    return [re.sub(r"in \d+ \w+ at", "later, at", line) for line in plain]


def test_differences_of_samples_are_marked() -> None:
    sample = DifferenceSample("/p", "/a", '{"b":1,"c":2}', '{"b":1,"c":3}', "r1", "GET", "/p")
    old, new = marked(sample)
    assert "".join(text for text, _ in old) == '{\n  "b": 1,\n  "c": 2\n}'
    assert [text for text, differs in new if differs] == ["3"]


async def test_a_manual_pause_is_an_action_item(acting: Client) -> None:
    why = "<b>a customer</b> {{ 7 * 7 }}"
    await post(acting, BROWNOUTS, act="pause", seen="running", why=why)
    await post(acting, CUTOVER, act="set", seen="10-rules", percent="5", why="too fast")
    text = await (await acting.get("/", headers=ANN)).text()
    assert re.search(r"They were paused by ann at [^:]+:\d\d UTC: &lt;b&gt;a customer", text)
    assert re.search(r"It was set to 5% by ann at [^:]+:\d\d UTC: too fast\.", text)
    assert "{{ 7 * 7 }}" in text
    for part in ("brownouts", "cutover"):
        assert f'href="/page/versions/person/1#{part}"' in text


@pytest.mark.parametrize(
    ("path", "fields", "status", "detail"),
    [
        (CUTOVER, {"act": "set", "seen": "10-rules"}, 400, "An action needs a reason"),
        (CUTOVER, {"act": "set", "seen": "10-rules", "percent": "101", "why": "x"}, 400, "to 100"),
        (CUTOVER, {"act": "set", "seen": "10-rules", "percent": "nan", "why": "x"}, 400, "to 100"),
        (CUTOVER, {"act": "set", "seen": "10-rules", "why": "x"}, 400, "0 to 100"),
        (CUTOVER, {"act": "jump", "seen": "10-rules", "why": "x"}, 400, "has no action"),
        (CUTOVER, {"act": "set", "seen": "9-rules", "percent": "4", "why": "x"}, 409, "at 10%"),
        (BROWNOUTS, {"act": "pause", "seen": "paused", "why": "x"}, 409, "are not paused now"),
        (BROWNOUTS, {"act": "jump", "seen": "running", "why": "x"}, 400, "has no action"),
        (CUTOVER.replace("/1/", "/2/"), {"why": "x"}, 409, "no longer has a cutover of person 2"),
        (CUTOVER.replace("/1/", "/9/"), {"why": "x"}, 404, "no version"),
        ("/page/replicas/b", {"why": "x"}, 404, "is alone"),
    ],
)  # fmt: skip
async def test_an_invalid_action_changes_nothing(
    acting: Client, path: str, fields: dict[str, str], status: int, detail: str
) -> None:
    found, text = await post(acting, path, **fields)
    assert (found, detail in text) == (status, True)
    assert (
        "There are no changes yet." in await (await acting.get("/page/audit", headers=ANN)).text()
    )


async def test_commands_replace_forms_without_the_right_to_operate(
    acting: Client, page: Client
) -> None:
    shown = await (await acting.get("/page/versions/person/1", headers=ANN)).text()
    assert 'action="/page/versions/person/1/cutover"' in shown
    # Like a request of a browser. Without tokens in the configuration, browsers may not operate.
    browser = {"Sec-Fetch-Site": "same-origin"}
    shown = await (await page.get("/page/versions/person/1", headers=browser)).text()
    assert "/page/versions/person/1/brownouts" not in shown
    assert "version-gateway brownout pause person 1 --why" in shown
    answer = await page.post(BROWNOUTS, data={"act": "pause", "why": "x"}, headers=browser)
    assert answer.status == 403


async def test_the_trend_shows_the_day_when_no_clients_remain(
    page: Client, operator: Operator
) -> None:
    day, now = 86_400.0, time.time()
    for age in range(20, 0, -1):
        usage = [UsageDelta(*KEY, "/p", f"c{number}", 1, 0, 0, 1) for number in range(age)]
        operator.state.totals.absorb(Delta(now - age * day, usage, [], [], [], []))
    text = await (await page.get("/page/versions/person/1")).text()
    nobody = time.strftime("%-d %b %Y", time.gmtime(now // day * day + day))
    assert f"it has no callers from <strong>{nobody}</strong>" in text
    assert 'class="ahead" d="M' in text
    assert "<figcaption><span>Callers a day</span><strong>5 today</strong>" in text
    text = await (await page.get("/page/versions/person/2")).text()
    assert "needs a week of counts" in text


async def test_the_latest_figures_cover_the_last_ten_whole_minutes(
    page: Client, operator: Operator
) -> None:
    now = time.time()
    for key, age, count in ((KEY, 120, 25_000), ((KEY[0], "2"), 3600, 25)):
        usage = [UsageDelta(*key, "/p", "c", count, 0, 0, 1)]
        traffic = [TrafficDelta(*key, "/p", "GET", 200, "", [count, *NOTHING[1:]], 1.0, 0)]
        operator.state.totals.absorb(Delta(now - age, usage, traffic, [], [], []))
    text = await (await page.get("/page/versions/person/1")).text()
    assert "<span>Requests a minute</span><strong>2,500 in the last 10 min</strong>" in text
    assert re.search("<span>95% answered within, ms</span><strong>[0-9.]+ ms in the last", text)
    text = await (await page.get("/page/versions/person/2")).text()
    assert "<span>Requests a minute</span><strong>0 in the last 10 min</strong>" in text
    assert "<span>95% answered within, ms</span><strong>not known</strong>" in text


async def test_a_trend_has_thirty_days(operator: Operator) -> None:
    now = time.time()
    for age in range(32, 0, -1):
        delta = Delta(now - age * 86_400, [UsageDelta(*KEY, "/p", "c", 1, 0, 0, 1)], [], [], [], [])
        operator.state.totals.absorb(delta)
    _, found = await UsageSummaries(operator).latest()
    trend = found[KEY].trend
    assert (trend[:-1], found[KEY].requests) == ((1,) * (DAYS - 1), sum(trend))
