"""The version for an OPTIONS request that names no version, such as a preflight."""

import re
from functools import partial

import pytest

from gateway.base.errors import FaultCode
from gateway.base.request import RequestContext
from gateway.conversion.chain import compose
from gateway.conversion.operation import MappedOperation, Substitute, parse_operation
from gateway.conversion.version_step import VersionLink
from gateway.http.upstream.service import Service
from gateway.routing.options import client_methods, methods_elsewhere
from gateway.routing.plan import Decision, Plan, Refusal, plan
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load
from tests.gateway.calls import calls
from tests.gateway.world import V1, V2, head

RULES = b"""\
services: { new: { targets: ["http://new:1"] } }
apis:
  bank:
    default_version: "1"
    versions:
      "0": { lifecycle: { sunset: 2020-01-01, successor: "1" } }
      "1":
        via: "2"
        lifecycle: { sunset: 2027-01-01, successor: "2" }
        brownout: { windows: [ { to: 2026-02-01 } ] }
      "2": { via: "3" }
      "3": { service: new }
    endpoints: [ { path: "/{rest*}", version: { in: header, name: V } } ]
    conversions:
      - between: ["1", "2"]
        operations:
          - { older: "POST /pay/{id}", newer: "POST /payments/{id}" }
          - { older: POST /fax, refuse: {} }
      - between: ["2", "3"]
        operations: [ { older: "POST /payments/{id}", newer: "POST /orders/{id}" } ]
"""


class TestPreflight:
    """A preflight cannot name a version in a header field, so the gateway selects one."""

    SNAPSHOT = load(RULES, "browsed.yaml", {})
    BROWNED_OUT, BEFORE, AFTER = 1_768_000_000.0, 1_780_272_000.0, 1_830_000_000.0

    def answered(self, now: float, target: str, *fields: tuple[str, str]) -> tuple[str, str, str]:
        found = plan(
            self.SNAPSHOT, head(target, *fields, method="OPTIONS"), RequestContext(now=now)
        )
        assert isinstance(found, Plan)
        return str(found.version), str(found.chosen_by), found.target

    @pytest.mark.parametrize(
        ("now", "target", "answer"),
        [
            (BEFORE, "/pay/7", ("1", "default", "/orders/7")),
            (BEFORE, "/payments/7", ("1", "default", "/orders/7")),
            (BEFORE, "/other", ("1", "default", "/other")),
            (BEFORE, "/fax", ("3", "newest", "/fax")),
            (AFTER, "/payments/7", ("2", "newest", "/orders/7")),
            (AFTER, "/orders/7", ("3", "newest", "/orders/7")),
            (AFTER, "/other", ("3", "newest", "/other")),
            (BROWNED_OUT, "/payments/7", ("2", "newest", "/orders/7")),
            (BROWNED_OUT, "/other", ("3", "newest", "/other")),
        ],
    )
    def test_a_version_that_has_the_operation_is_selected(
        self, now: float, target: str, answer: tuple[str, str, str]
    ) -> None:
        assert self.answered(now, target, ("Access-Control-Request-Method", "POST")) == answer

    @pytest.mark.parametrize(
        ("now", "answer"),
        [
            (BEFORE, ("1", "default", "/orders/7")),
            (AFTER, ("3", "newest", "/payments/7")),
            (BROWNED_OUT, ("3", "newest", "/payments/7")),
        ],
    )
    def test_any_served_version_is_selected_without_a_requested_method(
        self, now: float, answer: tuple[str, str, str]
    ) -> None:
        assert self.answered(now, "/payments/7") == answer

    def test_a_named_version_is_selected_even_if_it_has_ended(self) -> None:
        over = head("/payments/7", ("V", "1"), method="OPTIONS")
        found = plan(self.SNAPSHOT, over, RequestContext(now=self.AFTER))
        assert isinstance(found, Refusal)
        assert found.fault.code is FaultCode.VERSION_RETIRED


def chain(count: int, default: str = "") -> str:
    """Return gateway.yaml with this number of versions.

    Each version is served via the next one, and the last version has a service.
    """
    versions = "".join(f'      "{each}": {{ via: "{each + 1}" }}\n' for each in range(1, count))
    hops = "".join(
        f"""\
      - between: ["{each}", "{each + 1}"]
        operations:
          - {{ older: "POST /pay{each}/{{id}}", newer: "POST /pay{each + 1}/{{id}}" }}
          - {{ older: POST /fax{each}, refuse: {{}} }}
"""
        for each in range(1, count)
    )
    return f"""\
services: {{ new: {{ targets: ["http://new:1"] }} }}
apis:
  bank:
    {default}
    versions:
{versions}
      "{count}": {{ service: new }}
    endpoints: [ {{ path: "/{{rest*}}", version: {{ in: header, name: V }} }} ]
    conversions:
{hops}"""


def decide(snapshot: Snapshot, path: str) -> Decision:
    asked = head(path, ("Access-Control-Request-Method", "POST"), method="OPTIONS")
    return plan(snapshot, asked, RequestContext(now=0.0))


def answer(snapshot: Snapshot, path: str) -> str:
    found = decide(snapshot, path)
    assert isinstance(found, Plan)
    return str(found.version)


class TestWork:
    @pytest.mark.parametrize(
        ("default", "each"),
        [
            # path, selected version, maximum number of calls; an earlier algorithm needed 20,000 to
            # 55,000
            ("", [("/other", "50", 2_000), ("/fax25", "50", 2_000), ("/pay1/7", "1", 8_000)]),
            (
                'default_version: "1"',
                [("/other", "1", 6_000), ("/fax25", "50", 4_000), ("/pay1/7", "1", 8_000)],
            ),
        ],
    )
    def test_a_preflight_takes_a_bounded_number_of_calls(
        self, default: str, each: list[tuple[str, str, int]]
    ) -> None:
        snapshot = load(chain(50, default).encode(), "long.yaml", {})
        for path, version, most in each:
            assert answer(snapshot, path) == version
            assert calls(partial(decide, snapshot, path)) < most

    # The newest version is in a brownout, so it is not selected.
    SHUT = '"12": { service: new, brownout: { windows: [ { to: 2026-02-01 } ] } }'

    def test_versions_that_lead_to_the_same_refusal_are_tried_once(self) -> None:
        text = chain(12).replace('"12": { service: new }', self.SHUT)
        text = text.replace('"1": { via: "2" }', '"1": { service: new }')
        text = text.replace("POST /fax11", "POST /fax")
        assert answer(load(text.encode(), "one.yaml", {}), "/fax") == "1"

    def test_at_most_eight_versions_are_tried(self) -> None:
        text = chain(12).replace('"12": { service: new }', self.SHUT)
        text = text.replace('"1": { via: "2" }', '"1": { service: new }')
        text = re.sub(r"POST /fax\d+", "POST /fax", text)
        found = decide(load(text.encode(), "many.yaml", {}), "/fax")
        assert isinstance(found, Refusal)
        assert (str(found.version), found.fault.code) == ("12", FaultCode.VERSION_BROWNOUT)


METHODS = """\
services: { s: { targets: ["http://s:1"] } }
clients: { by: [ { header: X-Client } ] }
CORS
apis:
  a:
    endpoints: [ { path: "/v{version}/o", version: { in: path }, methods: [GET] } ]
    versions:
      "1": { service: s, lifecycle: { sunset: 2020-01-01 } }
      "2":
        service: s
        lifecycle: { sunset: 2020-01-01, exempt: [ { client: vip, until: 2099-01-01 } ] }
        brownout: { percent: 100, exempt: [ { client: vip } ] }
      "3": { service: s, brownout: { percent: 100 } }
      "4": { service: s, brownout: { percent: 50 } }
      "5": { lifecycle: { sunset: 2020-01-01 } }
      "6": { service: s }
"""
ORIGIN = ("Origin", "https://app.example")
GET = ("Access-Control-Request-Method", "GET")
CORS = "cors: { origins: [https://app.example] }"


class TestMethods:
    NOW = 1_800_000_000.0

    def decided(
        self, version: int, *fields: tuple[str, str], method: str = "OPTIONS", cors: str = ""
    ) -> str:
        snapshot = load(METHODS.replace("CORS", cors).encode(), "gateway.yaml", {})
        asked = head(f"/v{version}/o", *fields, method=method)
        found = plan(snapshot, asked, RequestContext(now=self.NOW, brownout_draw=0.0))
        return str(found.fault.code) if isinstance(found, Refusal) else type(found).__name__

    @pytest.mark.parametrize(
        ("version", "decision"),
        [
            (1, "version_retired"),
            (2, "Plan"),  # a client that the preflight does not name is exempt
            (3, "version_brownout"),
            (4, "Plan"),  # another draw decides on the request
            (5, "version_retired"),
            (6, "Plan"),
        ],
    )
    def test_a_preflight_is_refused_if_every_request_would_be_refused(
        self, version: int, decision: str
    ) -> None:
        assert self.decided(version, ORIGIN, GET) == decision

    @pytest.mark.parametrize("fields", [(), (ORIGIN,), (GET,)])
    def test_the_gateway_responds_to_other_options_requests(
        self, fields: tuple[tuple[str, str], ...]
    ) -> None:
        assert self.decided(6, *fields) == "Options"

    def test_a_preflight_for_another_method_is_not_forwarded(self) -> None:
        assert self.decided(6, ORIGIN, (GET[0], "PUT")) == "Options"
        assert self.decided(6, ORIGIN, GET, method="PUT") == "method_not_allowed"

    def test_the_gateway_responds_to_preflights_from_origins_in_cors(self) -> None:
        assert self.decided(6, ORIGIN, GET, cors=CORS) == "Options"
        assert self.decided(6, ("Origin", "https://other.example"), GET, cors=CORS) == "Plan"


def operation(newer: str | None, older: str, service: Service | None = None) -> MappedOperation:
    """Return a declared operation.

    An operation that the newer version lacks is refused, or another service provides it.
    """
    new = None if newer is None else parse_operation(newer)
    substitute = Substitute(service) if newer is None else None
    return MappedOperation(new, parse_operation(older), {}, substitute)


LINKS = {
    V1: [
        VersionLink(
            V1,
            V2,
            (),
            operations=(
                operation("PATCH /a/{id}", "PUT /a/{id}"),
                operation("POST /b", "DELETE /a/{id}"),
                operation(None, "POST /a/{id}"),
                operation("GET /c/{id}", "GET /gone?id={id}"),
                operation(None, "POST /s", Service("s", ())),
                operation("GET /{id}", "GET /dots?id={id}"),
            ),
        )
    ]
}
BOTH = compose((V1, V2), LINKS, V1, V2), compose((V1, V2), LINKS, V2, V1)


@pytest.mark.parametrize(
    ("path", "query", "asked", "allowed", "methods"),
    [
        ("/a/7", None, "/a/7", ["GET", "HEAD", "PATCH"], ["GET", "HEAD", "PUT", "DELETE"]),
        ("/a/7", None, "/a/7", ["OPTIONS", "PATCH", "GET"], ["OPTIONS", "PUT", "GET", "DELETE"]),
        ("/a/7", None, "/a/7", ["DELETE"], ["DELETE"]),
        ("/a/7", None, "/b", ["POST"], ["DELETE", "PUT"]),
        ("/s", None, "/s", ["GET"], ["GET", "POST"]),
        ("/dots", "id=..", "/dots", ["PUT"], ["PUT"]),
    ],
)
def test_allowed_methods_are_converted_to_the_methods_of_the_client(
    path: str, query: str | None, asked: str, allowed: list[str], methods: list[str]
) -> None:
    assert client_methods(BOTH, lambda _: path, query, asked, allowed) == methods


MOVED = {
    V1: [
        VersionLink(
            V1,
            V2,
            (),
            operations=(
                operation("POST /payments", "POST /pay"),
                operation("GET /people/{id}", "GET /users/{id}"),
                operation("PATCH /people/{id}", "PUT /users/{id}"),
                operation("PATCH /goods/{id}", "PUT /items/{id}"),
                operation("PATCH /a", "PUT /a"),
                operation("POST /b", "DELETE /a"),
                operation(None, "POST /fax"),
                operation(None, "POST /telex"),
                operation(None, "GET /telex", Service("s", ())),
            ),
        )
    ]
}
UP, DOWN = compose((V1, V2), MOVED, V1, V2), compose((V1, V2), MOVED, V2, V1)


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/pay", ["POST"]),
        ("/users/7", ["GET", "HEAD", "PUT"]),
        ("/items/7", []),  # an item may have undeclared reads
        ("/a", []),  # the version still offers an operation
        ("/fax", []),  # no method is offered
        ("/telex", ["GET", "HEAD"]),
        ("/other", []),
    ],
)
def test_the_methods_of_an_operation_that_moved_are_found(path: str, methods: list[str]) -> None:
    assert methods_elsewhere((UP, DOWN), lambda _: path, None, path) == methods
    assert methods_elsewhere((DOWN, UP), lambda _: path, None, path) == []


def test_the_methods_of_an_operation_in_a_newer_version_are_found() -> None:
    assert methods_elsewhere((DOWN, UP), lambda _: "/payments", None, "/payments") == ["POST"]
