"""The alerts for a version depend on its configuration. tests/telemetry checks when they fire."""

import pytest

from gateway.cli.manifests.kubernetes import Manifest
from gateway.cli.manifests.monitoring import alerts
from tests.gateway.rules.rules import loaded

PLAIN = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
state: s.db
apis:
  person:
    endpoints: [ { path: "/v{version}/person", version: { in: path } } ]
    versions:
      "1": { VERSION }
      "2": { service: s }
    conversions: [ { between: ["1", "2"], changes: [ { rename: { field: a, to: b } } ] } ]
"""
OLD = "lifecycle: { deprecated: 2025-01-01, sunset: 2098-12-31 }"


def named(version: str) -> list[str]:
    made = alerts(loaded(PLAIN.replace("VERSION", version)), 0.999)
    return [rule["alert"] for rule in made["groups"][1]["rules"]]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("service: s", []),
        (f"service: s, {OLD}", ["DeprecatedVersionCalled", "VersionCalledNearSunset"]),
        ("service: s, lifecycle: { deprecated: 2025-01-01 }", ["DeprecatedVersionCalled"]),
        (
            f"service: s, {OLD}, brownout: {{ percent: 1 }}",
            [
                *("DeprecatedVersionCalled", "VersionCalledNearSunset"),
                *("BrownoutWithoutEffect", "BrownoutPaused"),
            ],
        ),
        (
            'service: s, cutover: { via: "2", percent: 5, sticky_by: request }',
            ["GateNearLimit"] * 4 + ["GateExceeded"],
        ),
        (  # the gates validate responses, but `check` does not
            'service: s, cutover: { via: "2", percent: 5, gates: { violations: 1% } }',
            ["GateNearLimit"] * 4 + ["GateExceeded"],
        ),
    ],
)
def test_the_alerts_for_a_version_follow_from_its_configuration(
    version: str, expected: list[str]
) -> None:
    assert named(version) == ["VersionErrorBudget", "VersionErrorBudget", *expected]


def test_equal_configurations_give_equal_alerts() -> None:
    texts = {
        Manifest("alerts", (), alerts(loaded(PLAIN.replace("VERSION", "service: s")), 0.99)).text
        for _ in range(2)
    }
    assert len(texts) == 1


def test_the_limits_of_the_error_budget_follow_from_the_objective() -> None:
    made = alerts(loaded(PLAIN.replace("VERSION", "service: s")), 0.99)
    fast, slow = made["groups"][1]["rules"]
    assert fast["expr"].endswith("> 0.144")
    assert slow["expr"].endswith("> 0.06")
