"""Alerting rules of Prometheus for the versions of a configuration.

Each alert on the error budget compares two windows: a long one, which is certain, and a short one,
which ends the alert soon (Google, Site Reliability Workbook, chapter 5).
"""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import yaml

from gateway.base.overrides import VersionKey
from gateway.cli.manifests.promql import (
    SERVED,
    failed_share,
    labels,
    request_labels,
    requests,
    text,
)
from gateway.routing.snapshot import Snapshot

# The alerts of the gateway itself, which no configuration changes.
_GATEWAY = Path(__file__).with_name("alerts.yaml")
_DAY = 86_400
# How much faster than evenly the budget of 30 days is spent: severity, factor, windows.
_BURNS = (("critical", 14.4, "1h", "5m"), ("warning", 6.0, "6h", "30m"))
_NEAR = 0.8
_SUNSET_DAYS = 30

# What names no version, or is of an API without any, has no label for it.
_VERSION_OF = "{{ with $labels.gateway_api_version }}Version {{ . }} of {{ end }}"

Alert = dict[str, Any]


def alerts(snapshot: Snapshot, objective: float) -> dict[str, Any]:
    """Return the groups of alerting rules.

    Args:
        snapshot: the rules.
        objective: the share of requests that are to succeed, such as 0.999.
    """
    groups = [("version-gateway", yaml.safe_load(_GATEWAY.read_text()))]
    for api in snapshot.apis:
        rules = [*_budget(api.name, objective)]
        for version in snapshot.labels.get(api.name, ()):
            rules += _version((api.name, version), snapshot)
        groups.append((f"version-gateway {api.name}", rules))
    return {"groups": [{"name": name, "rules": rules} for name, rules in groups]}


def _budget(api: str, objective: float) -> Iterator[Alert]:
    matchers, budget = f"gateway_api_name={text(api)}", 1 - objective
    for severity, factor, long, short in _BURNS:
        bound = f"{factor * budget:.6g}"
        both = (f"{failed_share(matchers, window)} > {bound}" for window in (long, short))
        yield _alert(
            *("VersionErrorBudget", " and ".join(both), "2m", severity),
            f"{_VERSION_OF}{api} spends its error budget {factor:g} times too fast.",
            f"{{{{ $value | humanizePercentage }}}} of its requests fail, and {100 * budget:.4g}%"
            " may. Look at error_type, and at the services.",
            {"api": api},
        )


def _version(key: VersionKey, snapshot: Snapshot) -> Iterator[Alert]:
    api, version = key
    named, own = f"Version {version} of {api}", {"api": api, "version": version}
    routes = [*snapshot.routes(key)]
    terms = snapshot.terms(key)
    if terms is not None:
        called = f"sum(increase({SERVED}_count{{{request_labels(key)}}}[1d])) > 0"
        if terms.deprecated is not None:
            yield _alert(
                "DeprecatedVersionCalled",
                f"{called} and on() vector(time()) >= {terms.deprecated:.0f}",
                *("1h", "info"),
                f"{named} is deprecated and was called {{{{ $value | humanize }}}} times in a day.",
                "`usage` lists who calls it.",
                own,
            )
        if terms.sunset < inf:
            yield _alert(
                "VersionCalledNearSunset",
                f"{called} and on() vector(time()) >= {terms.sunset - _SUNSET_DAYS * _DAY:.0f}",
                *("1h", "warning"),
                f"{named} ends within {_SUNSET_DAYS} days, or has ended, and is called.",
                "Ask its callers (`usage`), give them more time (`exempt`), or move its sunset.",
                own,
            )
    if any(route.brownout is not None for route in routes):
        yield from _brownout(key, named, own)
    if key in snapshot.cutovers:
        yield from _gates(key, named, own)
    if any(route.check is not None and route.check.percent for route in routes):
        yield _alert(
            "VersionViolatesDocument",
            f"sum(increase(gateway_violations_total{{{labels(key)}}}[1h])) > 0",
            *("0m", "warning"),
            f"Converted answers of {named[0].lower() + named[1:]} violate its OpenAPI document.",
            "The log has the fields (violation).",
            own,
        )


def _brownout(key: VersionKey, named: str, own: dict[str, str]) -> Iterator[Alert]:
    matchers = request_labels(key)
    refused = f"gateway_refusals_total{{{labels(key)}, code={text('version_brownout')}}}"
    week = requests(matchers, "7d", "")
    before = week.replace("[7d]", "[7d] offset 7d")
    yield _alert(
        "BrownoutWithoutEffect",
        f"sum(increase({refused}[7d])) > 0 and {week} >= 0.9 * {before}",
        *("1h", "warning"),
        f"{named} was refused in brownouts for a week and is called as often as before.",
        "Its callers have not noticed: ask them (`usage`), or have brownouts grow.",
        own,
    )
    yield _alert(
        "BrownoutPaused",
        f"gateway_brownout_paused{{{labels(key)}}} == 1",
        *("1d", "info"),
        f"The brownouts of {named[0].lower() + named[1:]} have been paused for a day.",
        "`brownout resume` has them go on.",
        own,
    )


def _gates(key: VersionKey, named: str, own: dict[str, str]) -> Iterator[Alert]:
    near = {
        "violations": "{new} - ignoring(route) {old} > ignoring(route) {near} * {limit}",
        "differences": "{new} > ignoring(route) {near} * {limit}",
        "errors": "{new} - ignoring(route) {old} > ignoring(route) {near} * {limit}",
        "latency": "{new} / ignoring(route) {old} > ignoring(route) 1 + {near} * ({limit} - 1)",
    }
    for gate, pattern in near.items():
        matchers = f"{labels(key)}, gate={text(gate)}"
        new, old = (f"gateway_gate_value{{{matchers}, route={text(r)}}}" for r in ("new", "old"))
        limit = f"gateway_gate_limit{{{matchers}}}"
        expression = pattern.format(new=new, old=old, limit=limit, near=_NEAR)
        yield _alert(
            *("GateNearLimit", expression, "0m", "warning"),
            f"The gate {gate} of the cutover of {named[0].lower() + named[1:]} is near its limit.",
            "`cutover show` has what it compares; beyond the limit, it acts by its `then`.",
            {**own, "gate": gate},
        )
    yield _alert(
        "GateExceeded",
        f'gateway_gate_outcome{{{labels(key)}, outcome="exceeded"}} == 1',
        *("0m", "critical"),
        f"The gate {{{{ $labels.gate }}}} of the cutover of {named[0].lower() + named[1:]} is"
        " exceeded.",
        "`cutover show` has why; the cutover was held or rolled back, unless it is a dry run.",
        own,
    )


def _alert(
    name: str,
    expression: str,
    after: str,
    severity: str,
    summary: str,
    description: str,
    more: dict[str, str] | None = None,
) -> Alert:
    return {
        "alert": name,
        "expr": expression,
        "for": after,
        "labels": {"severity": severity, **(more or {})},
        "annotations": {"summary": summary, "description": description},
    }
