"""The version settings of an API: formats, matching, defaults, pins and the version header."""

import pytest

from gateway.base.errors import FaultCode
from gateway.base.request import RequestContext
from gateway.routing.plan import Plan, Refusal, plan
from gateway.routing.snapshot import Endpoint, Snapshot
from tests.gateway.rules.rules import loaded
from tests.gateway.world import head

RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}
{top}
apis:
  a:
    {api}
    versions: {{ {versions} }}
    endpoints:
      - {{ path: /query, version: {{ in: query, name: v {default} }} }}
      - {{ path: /header, version: {{ in: header, name: V }} }}
      - {{ path: "/v{{version}}/path", version: {{ in: path }} }}
  plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }}
"""
NAMED = "clients: { by: [{ header: X-Client }, { api_key: { header: K } }, { jwt: { claim: c } }] }"


def rules(
    api: str = "", *labels: str, top: str = "", default: str = "", source: str = "service: s"
) -> Snapshot:
    versions = ", ".join(f'"{label}": {{ {source} }}' for label in labels or ("1", "2"))
    return loaded(RULES.format(top=top, api=api, versions=versions, default=default))


def served(snapshot: Snapshot, target: str, client: str = "") -> tuple[str, str | None]:
    outcome = plan(snapshot, head(target), RequestContext(client))
    assert isinstance(outcome, Plan), outcome
    return str(outcome.version), outcome.chosen_by


def endpoint(snapshot: Snapshot, path: str) -> Endpoint:
    found = snapshot.router.find(path)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("api", "labels", "oldest_first"),
    [
        ("", ("10", "9"), ["9", "10"]),
        ("", ("v1", "v1beta2", "v2"), ["v1", "v1beta2", "v2"]),
        (
            "",
            ("2024-09-30.acacia", "2024-01-01", "1.0"),
            ["2024-09-30.acacia", "2024-01-01", "1.0"],
        ),
        (
            "version_format: semantic",
            ("1.9", "1.10.0-rc.1", "1.10"),
            ["1.9", "1.10.0-rc.1", "1.10"],
        ),
        ("version_format: [integer, date]", ("2", "10", "2026-01"), ["2", "10", "2026-01"]),
    ],
)
def test_versions_have_the_order_of_the_file(
    api: str, labels: tuple[str, ...], oldest_first: list[str]
) -> None:
    """If whole numbers have no configured format, they are ordered by value."""
    selector = endpoint(rules(api, *labels), "/query").selector
    assert selector is not None
    assert list(selector.supported) == oldest_first
    assert sorted(selector.supported.values()) == list(selector.supported.values())


LABELS = ("1.0", "v1", "v1beta1", "2024-09-30.acacia", "2024-01-01-preview", "2024-01", "a~B_c")


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_compared_byte_by_byte(label: str) -> None:
    snapshot = rules("", *LABELS)
    for target in (f"/query?v={label}", f"/v{label}/path"):
        assert served(snapshot, target)[0] == label
    outcome = plan(snapshot, head(f"/query?v={label.swapcase()}0"), RequestContext())
    assert isinstance(outcome, Refusal)
    assert outcome.fault.code is FaultCode.VERSION_UNKNOWN


def test_an_unquoted_label_is_its_text_in_the_file() -> None:
    """YAML parses 1.10 as the number 1.1, and 1e5 as 100000."""
    snapshot = loaded(
        """\
services: { s: { targets: ["http://127.0.0.1:1"] } }
clients: { by: [{ header: X-Client }] }
apis:
  a:
    versions: { 1.10: { service: s }, 1e5: { via: 1.10 }, 2024-01: { service: s } }
    aliases: { 1: 1.10 }
    default_version: 1e5
    pins: { 42: 2024-01 }
    conversions: [ { between: [1.10, 1e5], changes: [] } ]
    endpoints: [ { path: /query, version: { in: query, name: v } } ]
"""
    )
    assert served(snapshot, "/query?v=1.10") == ("1.10", "query")
    assert served(snapshot, "/query?v=1") == ("1.10", "query")
    assert served(snapshot, "/query") == ("1e5", "default")
    assert served(snapshot, "/query", "42") == ("2024-01", "pin")


@pytest.mark.parametrize(
    ("top", "api", "default", "label"),
    [
        ('default_version: "1"', "", "", "1"),
        ('default_version: "1"', 'default_version: "2"', "", "2"),
        ('default_version: "1"', 'default_version: "1"', ', default: "2"', "2"),
        ("", "", ', default: "1"', "1"),
    ],
)
def test_the_most_specific_default_version_applies(
    top: str, api: str, default: str, label: str
) -> None:
    assert served(rules(api, top=top, default=default), "/query") == (label, "default")


def test_a_pin_accepts_the_client_name_or_its_hash() -> None:
    hashed = NAMED.replace("] }", "], hash: pepper }")
    naming = rules(top=hashed).naming
    assert naming is not None
    shown = naming.known_as("acme")
    for client in ("acme", shown):
        snapshot = rules(f'pins: {{ {client}: "1" }}', top=hashed)
        assert served(snapshot, "/query", shown) == ("1", "pin")
        assert not isinstance(plan(snapshot, head("/query"), RequestContext("acme")), Plan)


def test_vary_names_the_client_headers_if_the_version_depends_on_the_client() -> None:
    pinned = rules('pins: { acme: "1" }', top=NAMED)
    assert endpoint(pinned, "/query").vary == ("X-Client", "K", "Authorization")
    assert endpoint(pinned, "/header").vary == ("V", "X-Client", "K", "Authorization")
    assert endpoint(pinned, "/v1/path").vary == ()
    assert endpoint(rules(top=NAMED), "/query").vary == ()
    by_address = rules('pins: { acme: "1" }', top="clients: { by: [{ address: true }] }")
    assert endpoint(by_address, "/query").vary == ("*",)


@pytest.mark.parametrize(
    ("top", "api", "name"),
    [
        ("version_header: X-Version", "", b"X-Version"),
        ("", "version_header: X-Version", b"X-Version"),
        ("version_header: X-Version", "version_header: X-Own", b"X-Own"),
    ],
)
def test_the_version_header_of_a_response_names_the_served_version(
    top: str, api: str, name: bytes
) -> None:
    snapshot = rules(api, top=top)
    outcome = plan(snapshot, head("/v2/path"))
    assert outcome.fields == ((name, b"2"),)
    assert plan(snapshot, head("/plain")).fields == ()
    assert plan(snapshot, head("/v3/path")).fields == ()


def test_the_service_receives_the_selected_version() -> None:
    api = "version_format: semantic\n    ranges: true"
    snapshot = rules(api, "1.2.0", "1.10.0")
    outcome = plan(snapshot, head("/v1.x/path"))
    assert isinstance(outcome, Plan)
    assert outcome.target == "/v1.10.0/path"


def test_an_alias_selects_its_configured_version() -> None:
    api = 'version_format: [semantic, date]\n    aliases: { latest: 2026-01-31, "1.4": 1.4.2 }'
    selector = endpoint(rules(api, "1.4.2", "2026-01-31"), "/query").selector
    assert selector is not None
    assert {raw: str(selector.matching.find(raw)) for raw in ("latest", "1.4", "1")} == {
        "latest": "2026-01-31",
        "1.4": "1.4.2",
        "1": "None",
    }
