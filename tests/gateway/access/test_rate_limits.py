"""`rate_limits`: the limits of a request, whose bucket it uses, and when no token is taken."""

import pytest
from multidict import CIMultiDict

from gateway.access.rate_limits import RateLimiter
from gateway.access.token_buckets import TokenBuckets, shared_memory
from gateway.admin.explanation import facts
from gateway.base.client_names import Identity
from gateway.base.errors import Fault
from gateway.base.request import RequestContext, RequestHead
from gateway.routing.plan import Plan, Refusal, plan
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import check, load

VERIFIED = "{ by: [ api_key: { header: X-Key, keys: { acme: sesame } }, header: X-Client ] }"
CLAIMED = "{ by: [ { header: X-Client } ] }"
RULES = """
services: { s: { targets: [http://s] } }
clients: CLIENTS
rate_limits:
  - { name: default, by: client, rate: 10/min }
  - { name: api, by: api, rate: 5/s, burst: 9, apis: [a], versions: ["2"] }
  - { name: tier, by: client, rate: 1/d, clients: [acme] }
apis:
  a:
    access: ACCESS
    endpoints: [ { path: "/v{version}/a", version: { in: path } } ]
    versions:
      "1": { service: s, lifecycle: { sunset: 2020-01-01 } }
      "2": { service: s }
  b: { service: s, endpoints: [ { path: /b } ] }
"""


def loaded(clients: str = VERIFIED, access: str = "open") -> Snapshot:
    return load(RULES.replace("CLIENTS", clients).replace("ACCESS", access).encode(), "", {})


def head(path: str, **fields: str) -> RequestHead:
    lines = {name.replace("_", "-"): value for name, value in fields.items()}
    return RequestHead("GET", path, None, CIMultiDict(lines))


def explained(snapshot: Snapshot, asked: RequestHead) -> list[str]:
    found = facts(snapshot, asked, 0.0, "2001:db8::7")
    return [fact for subject, fact in found if subject == "limit"]


DEFAULT = "default: 10 requests in a minute, at most 10 at once, by client, here"


def test_explain_lists_the_limits_of_a_request_and_their_buckets() -> None:
    snapshot = loaded()
    assert explained(snapshot, head("/v2/a", X_Key="sesame")) == [
        f"{DEFAULT} acme",
        "api: 5 requests in a second, at most 9 at once, by api, here a",
        "tier: 1 requests in a day, at most 1 at once, by client, here acme",
    ]
    assert explained(snapshot, head("/b", X_Client="acme")) == [f"{DEFAULT} 2001:db8::/64"]
    assert explained(snapshot, head("/b", X_Key="guessed")) == [f"{DEFAULT} 2001:db8::/64"]
    assert explained(snapshot, head("/b")) == [f"{DEFAULT} 2001:db8::/64"]
    assert explained(snapshot, head("/nowhere")) == []


def test_a_claimed_name_is_limited_by_name_if_no_source_verifies_names() -> None:
    """`check` warns, since such a client can escape the limit by another name."""
    assert explained(loaded(CLAIMED), head("/b", X_Client="umbra")) == [f"{DEFAULT} umbra"]
    for clients, warned in ((CLAIMED, ["rate_limits[0]", "rate_limits[2]"]), (VERIFIED, [])):
        text = RULES.replace("CLIENTS", clients).replace("ACCESS", "open")
        _, warnings = check(text.encode(), "", {})
        assert [each.place for each in warnings if "escape" in each.text] == warned


@pytest.mark.parametrize(
    ("path", "access", "calls", "status"),
    [
        ("/v2/a", "open", [("a", "2")], None),
        ("/v1/a", "open", [("a", "1")], 410),  # after the limits
        ("/v9/a", "open", [], 404),
        ("/v2/a", "{ by: [api_key] }", [], 401),  # before the limits
        ("/b", "open", [("b", "None")], None),
    ],
)
def test_limits_apply_after_version_and_access(
    path: str, access: str, calls: list[tuple[str, str]], status: int | None
) -> None:
    asked: list[tuple[str, str]] = []

    def admit(api: str, version: object) -> tuple[Fault | None, tuple[tuple[bytes, bytes], ...]]:
        asked.append((api, str(version)))
        return None, ((b"RateLimit", b"x"),)

    found = plan(loaded(access=access), head(path), RequestContext(now=2e9, admit=admit))
    assert asked == calls
    assert (found.fault.status if isinstance(found, Refusal) else None) == status
    assert ((b"RateLimit", b"x") in found.fields) == bool(calls)


def test_an_admitted_request_of_a_shared_limit_is_reported() -> None:
    rules = RULES.replace("rate: 10/min", "rate: 1/min, shared: true").replace("CLIENTS", VERIFIED)
    limits = load(rules.replace("ACCESS", "open").encode(), "", {}).rate_limits
    assert limits is not None
    reported: list[str] = []
    buckets = TokenBuckets(shared_memory())
    limiter = RateLimiter(
        buckets, lambda: 1.0, lambda *_: None, lambda limit, _: reported.append(limit)
    )
    for _ in range(3):
        limiter.admit(limits, Identity("umbra", "api_key"), lambda: None, "b", None)
    assert reported == ["default"]


def test_a_plan_without_limits_has_no_rate_limit_fields() -> None:
    found = plan(loaded(), head("/v2/a"), RequestContext(now=2e9))
    assert isinstance(found, Plan)
    assert found.fields == ()
