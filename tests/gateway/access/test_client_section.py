"""Clients in gateway.yaml: the sources of their names, in turn."""

import jwt
import pytest

from gateway.access.clients import digest
from gateway.rules.load import check
from tests.gateway.access.named import bearer, naming
from tests.gateway.rules.rules import RULES, edited, loaded
from tests.gateway.world import head

SECRET = "s" * 32


def test_without_clients_there_is_no_naming() -> None:
    assert loaded(RULES).naming is None


@pytest.mark.parametrize(("by", "name"), [("client", "192.0.2.7"), ("request", None)])
def test_where_a_cutover_needs_it_addresses_do(by: str, name: str | None) -> None:
    cutover = f'service: old, cutover: {{ via: "2", percent: 25, sticky_by: {by} }} }}'
    snapshot, warnings = check(edited("service: old }", cutover).encode(), "gateway.yaml", {})
    naming = snapshot.naming
    assert name == (naming and naming.name(head("/"), "192.0.2.7"))
    warned = [issue.place for issue in warnings if "clients" in issue.text]
    assert warned == (["apis.person.versions.1.cutover"] if name else [])


def test_every_source_takes_its_turn() -> None:
    names = naming(
        "{ api_key: { query: key, keys: { acme: '${ACME}' } } }, { header: X-Client },"
        " { jwt: { claim: azp } }, { address: { ipv4: 24 } }",
        ACME="s3cret",
    )
    token = jwt.encode({"azp": "app"}, SECRET, "HS256")
    assert names.name(head("/?key=s3cret", ("X-Client", "c")), "192.0.2.7") == "acme"
    assert names.name(head("/?key=other", ("X-Client", "c")), "192.0.2.7") == digest("other")
    assert names.name(head("/", ("X-Client", "c")), "192.0.2.7") == "unverified:c"
    assert bearer(names, token) == "unverified:app"
    assert bearer(names, "no token") == "192.0.2.0/24"
    assert naming("{ address: true }").name(head("/"), "192.0.2.7") == "192.0.2.7"
    assert naming("{ api_key: { header: K } }").name(head("/", ("k", "a")), "") == digest("a")


def test_a_secret_hashes_all_names() -> None:
    by = "{ api_key: { header: K, keys: { acme: s3cret } } }"
    one, other = (naming(by, f", hash: {salt}") for salt in ("pepper", "p" * 500))
    names = {each.name(head("/", ("K", "s3cret")), "") for each in (one, other, naming(by))}
    assert len(names) == 3
    assert "acme" in names
    assert one.known_as("acme") == one.name(head("/", ("K", "s3cret")), "")


def test_nothing_that_looks_like_a_name_is_passed_on() -> None:
    by = (
        "{ header: X-Client }, { api_key: { header: X-Key } }, { jwt: { claim: sub, header: X-J } }"
    )
    rules = loaded(f"clients: {{ by: [{by}] }}\n{RULES}")
    assert {b"x_client", b"x_key", b"x_j"} <= rules.withheld
    assert not {b"x-client", b"x-key", b"x-j"} & rules.withheld


@pytest.mark.parametrize(
    ("by", "places"),
    [
        ("{ header: X-Client }", []),
        ("{ api_key: { query: key } }, { header: X-Client }", []),
        ("{ api_key: { query: key, keys: { acme: s3cret } } }, { address: true }", []),
        (
            "{ api_key: { query: key, keys: { acme: s3cret } } }, { header: X-Client }",
            ["clients.by[1]"],
        ),
        ("{ jwt: { claim: sub } }", ["clients.by[0].jwt"]),
        (
            "{ api_key: { query: key, keys: { acme: s3cret } } }, { jwt: { claim: sub } }",
            ["clients.by[1]"],
        ),
    ],
)
def test_it_warns_of_names_that_anybody_can_claim(by: str, places: list[str]) -> None:
    text = f"clients: {{ by: [{by}] }}\n{RULES}"
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert [issue.place for issue in warnings if issue.place.startswith("clients")] == places
