"""The documentation: commands print the shown output, links have targets, lists are complete."""

import re
import shutil
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from multidict import CIMultiDict

from gateway.access.rate_limits import RateLimiter
from gateway.access.token_buckets import TokenBuckets, shared_memory
from gateway.base.client_names import Identity
from gateway.base.request import RequestHead
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import RefusedRules
from gateway.observe.metric_table import METRICS
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load, load_file
from gateway.store.local import LocalState
from gateway.store.state import Membership
from gateway.verify.live.documented_operations import DocumentedOperations
from tests.gateway.authority import Authority
from tests.gateway.documents import LocalDocuments
from tests.gateway.kit import ROOT, start_program
from tests.gateway.operating import admin_of
from tests.transcript import Reader, section, steps

PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
}
# These pages start their programs themselves: test_retire_v1.py, test_week.py, fleet/prove_walk.py.
WALKS = {"docs/retire-v1.md", "docs/retire-v1-end.md", "docs/fleet.md", "docs/week.md"}
RUN = [page for page, text in PAGES.items() if "```console" in text and page not in WALKS]


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start the three services; only docs/example.md creates users."""
    programs = {"PERSON_V1": "backend_v1", "PERSON_V2": "backend_v2", "USERS": "users_service"}
    folder = tmp_path_factory.mktemp("services")
    with ExitStack() as stack:
        yield {
            variable: f"127.0.0.1:{start_program(stack, folder, program).port}"
            for variable, program in programs.items()
        }


@pytest.fixture
def reader(tmp_path: Path, targets: dict[str, str]) -> Iterator[Reader]:
    (tmp_path / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    shutil.copytree(ROOT / "docs/start", tmp_path / "docs/start")
    with ExitStack() as stack:
        gateway = start_program(stack, tmp_path, "gateway", **targets)
        shown = [f"127.0.0.1:{port}" for port in (8001, 8002, 8003)]
        addresses = dict(zip(shown, targets.values(), strict=True))
        addresses["127.0.0.1:8080"] = f"127.0.0.1:{gateway.port}"
        addresses["127.0.0.1:8090"] = f"127.0.0.1:{gateway.admin}"
        yield Reader(tmp_path, {"GATEWAY_ADMIN_PORT": str(gateway.admin), **targets}, addresses)


def test_the_commands_of_the_pages_are_found() -> None:
    """Only `sh` blocks are not executed; they install things."""
    assert {
        *("README.md", "docs/start.md", "docs/example.md", "docs/convert.md", "docs/lifecycle.md"),
    } <= set(RUN)
    for page in RUN:
        assert len(list(steps(PAGES[page]))) >= PAGES[page].count("\n$ ") >= 1


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_print_the_shown_output(page: str, reader: Reader) -> None:
    """The commands of a page depend on each other, so they run in order."""
    reader.follow(PAGES[page])


def test_ten_lines_serve_version_1_from_version_2(tmp_path: Path, targets: dict[str, str]) -> None:
    first = PAGES["README.md"].partition("\n## ")[0]
    (lines,) = re.findall(r"```yaml\n(.*?)```", first, re.DOTALL)
    assert len(lines.splitlines()) == 10
    (tmp_path / "gateway.yaml").write_text(lines.replace("127.0.0.1:8002", targets["PERSON_V2"]))
    with ExitStack() as stack:
        gateway = start_program(stack, tmp_path, "gateway", GATEWAY_WORKERS="1")
        Reader(tmp_path, {}, {"127.0.0.1:8080": f"127.0.0.1:{gateway.port}"}).follow(first)


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_repository_have_targets(page: str) -> None:
    here = ROOT / page
    for path, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", here.read_text()):
        there = here.parent / path if path else here
        assert there.exists(), path
        titles = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE) if heading else []
        anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not heading or heading in anchors, heading


def table(page: str, heading: str) -> set[str]:
    cells = re.findall(r"^\| (`[^|]*) \|", section(PAGES[page], heading), re.MULTILINE)
    return {name for cell in cells for name in re.findall("`([^`]*)`", cell)}


@dataclass
class Rules:
    """The configuration of a gateway that has just been started."""

    latest: Snapshot
    content: bytes = b""
    former: bytes | None = None
    since: float = 0.0
    refused: RefusedRules | None = None
    loaded: int = 0
    rejected: int = 0
    folder: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture
def operator() -> Operator:
    rules = Rules(load_file(ROOT / "gateway.yaml", {}))
    state = LocalState(Membership("a", lambda: rules.latest, lambda: "hash"))
    documented = DocumentedOperations(LocalDocuments(ROOT))
    return Operator(state, rules, lambda: 1, lambda: None, documented)


def test_every_path_of_the_admin_port_is_listed(operator: Operator) -> None:
    app = admin_of(operator)
    paths = {each.canonical for each in app.router.resources()}
    shown = {re.sub(r"{(\w+)}", lambda found: found[1].upper(), path) for path in paths}
    assert table("docs/admin-port.md", "Paths") == shown


@cache
def logged_events() -> set[str]:
    # Events that the log itself writes:
    logged = {"access_log_unopened", "host_resolved", "host_unresolved"}
    logged |= {"log", "log_dropped", "target_up", "target_down"}
    for path in (ROOT / "gateway").rglob("*.py"):
        named = r'(?:(?:log\.event|announce|Event)\(\s*|CacheFile\(\w+, )"(\w+)"'
        logged |= set(re.findall(named, path.read_text()))
    return logged


def test_every_event_of_the_log_is_listed() -> None:
    assert table("docs/logs.md", "Events") == logged_events()


def test_every_bound_names_existing_metrics_or_events() -> None:
    """A row of the bounds may instead give the reason for which it has none."""
    exposed = {row.name for row in METRICS}
    bounds = PAGES["docs/bounds.md"] + PAGES["docs/bounds-services.md"]
    rows = [line.strip("| ").split(" | ") for line in bounds.splitlines() if "|" in line]
    rows = [row for row in rows if row[0] not in ("Resource", "---")]
    assert len(rows) > 50
    for *rest, metric in rows:
        assert len(rest) == 4, rest
        names = set(re.findall(r"`([a-z_]+)`", metric))
        if metric.startswith("none: "):
            continue
        if metric != "as above":
            assert names, metric
        metrics = {name for name in names if name.startswith(("gateway_", "http_"))}
        assert metrics <= exposed
        assert names - metrics <= logged_events() | {"request"}


def test_the_first_configuration_of_a_page_is_valid(
    tmp_path: Path, targets: dict[str, str]
) -> None:
    """docs/tls.md and docs/services.md begin with the most common configuration."""
    authority = Authority(tmp_path / "tls")
    authority.write("api", "api.example.com")
    first = {page: _first_yaml(PAGES[f"docs/{page}.md"]) for page in ("tls", "services")}
    listen = first["tls"].replace("0.0.0.0:8443", "127.0.0.1:0")
    services = first["services"].replace("http://orders:8080", f"http://{targets['PERSON_V2']}")
    apis = "apis: { orders: { service: orders, endpoints: [ { path: /person } ] } }\n"
    (tmp_path / "gateway.yaml").write_text(listen + services + apis)
    context = ssl.create_default_context(cafile=authority.file)
    with ExitStack() as stack:
        gateway = start_program(stack, tmp_path, "gateway", GATEWAY_WORKERS="1")
        with (
            socket.create_connection(("127.0.0.1", gateway.port)) as plain,
            context.wrap_socket(plain, server_hostname="api.example.com") as secure,
        ):
            secure.sendall(b"GET /person HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert secure.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_configurations_of_the_page_on_access_are_valid(tmp_path: Path) -> None:
    text = PAGES["docs/access.md"]
    Authority(tmp_path / "tls").write("api", "api.example.com")
    (keys,) = re.findall(r"```yaml keys\n(.*?)```", text, re.DOTALL)
    (tmp_path / "keys.yaml").write_text(keys)
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 5
    services = "services: { orders: { targets: [http://orders] } }\n"
    apis = "apis: { orders: { service: orders, endpoints: [ { path: /orders } ] } }\n"
    variables = {name: name for name in ("ACME_KEY", "BETA_KEY", "GAMMA_KEY")}
    for example in examples:
        rules = example + services + ("" if "apis:" in example else apis)
        loaded = load(rules.encode(), "gateway.yaml", variables, tmp_path)
        rule = {route.access for each in loaded.router for route in each.routes.values()}
        assert rule != {None}
        assert loaded.naming is not None
        asked = RequestHead("GET", "/orders", None, CIMultiDict({"X-Api-Key": "first"}))
        expected = "acme" if "keys_file" in example else ""
        assert (loaded.naming.identify(asked, "").name == expected) or "${ACME" in example


def test_the_example_of_cors_allows_its_origin() -> None:
    orders = _first_yaml(section(PAGES["docs/http.md"], "CORS"))
    served = "    service: s\n    endpoints: [ { path: /o } ]\n"
    loaded = load(
        f"{orders}{served}services: {{ s: {{ targets: [http://s] }} }}\n".encode(), "", {}
    )
    (endpoint,) = loaded.router
    assert endpoint.cors is not None
    assert endpoint.cors.preflight(CIMultiDict(PREFLIGHT)) == (
        (b"Access-Control-Allow-Origin", b"https://app.example.com"),
        (b"Access-Control-Allow-Credentials", b"true"),
        (b"Access-Control-Allow-Methods", b"GET, POST"),
        (b"Access-Control-Allow-Headers", b"Content-Type, X-API-Version"),
        (b"Access-Control-Max-Age", b"3600"),
    )


def test_the_first_lines_about_rate_limits_limit_a_client_and_an_address() -> None:
    """docs/rate-limits.md begins with what most people need."""
    first = _first_yaml(PAGES["docs/rate-limits.md"])
    served = "services: { s: { targets: [http://s] } }\n"
    served += "apis: { a: { service: s, endpoints: [ { path: /a } ] } }"
    limits = load(f"{first}{served}".encode(), "", {"ACME_KEY": "key"}).rate_limits
    assert limits is not None
    now, acme = 0.0, Identity("acme", "api_key")
    limiter = RateLimiter(TokenBuckets(shared_memory()), lambda: now, print, print)

    def violated(times: int) -> tuple[str, ...]:
        for _ in range(times):
            fault, _ = limiter.admit(limits, acme, lambda: "192.0.2.1", "a", None)
            if fault is not None:
                return fault.violated
        return ()

    assert (violated(50), violated(1)) == ((), ("site",))
    now = 10.0
    assert violated(50) == ()
    now = 12.0
    assert (violated(20), violated(1)) == ((), ("default",))


PREFLIGHT = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "GET"}


def _first_yaml(text: str) -> str:
    (lines, *_) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return str(lines)
