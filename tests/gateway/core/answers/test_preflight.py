"""A preflight, which names no version, is answered by one that is on offer."""

import pytest

from gateway.config.load import load
from gateway.core.context import RequestContext
from gateway.core.errors import FaultCode
from gateway.core.plan import Plan, Refusal, plan
from tests.gateway.core.world import head

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
    """A preflight cannot name a version in a header field: some version has to answer it."""

    SNAPSHOT = load(RULES, "browsed.yaml", {})
    BROWNED_OUT, BEFORE, AFTER = 1_768_000_000.0, 1_780_272_000.0, 1_830_000_000.0

    def answered(self, now: float, target: str, *fields: tuple[str, str]) -> tuple[str, str, str]:
        """Return the version of the answer, what chose it, and what the service is asked for."""
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
    def test_one_that_has_the_operation_answers(
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
    def test_without_a_method_any_that_answers(
        self, now: float, answer: tuple[str, str, str]
    ) -> None:
        assert self.answered(now, "/payments/7") == answer

    def test_a_version_that_is_named_answers_for_itself(self) -> None:
        over = head("/payments/7", ("V", "1"), method="OPTIONS")
        found = plan(self.SNAPSHOT, over, RequestContext(now=self.AFTER))
        assert isinstance(found, Refusal)
        assert found.fault.code is FaultCode.VERSION_RETIRED
