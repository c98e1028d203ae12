"""The Grafana dashboard and the Prometheus alerts, and the PromQL expressions that both use."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import yaml

from gateway.base.overrides import VersionKey
from gateway.routing.snapshot import Snapshot

SERVED = "http_server_request_duration_seconds"
ASKED = "http_client_request_duration_seconds"
BY_VERSION = "gateway_api_name, gateway_api_version"
# The blames of errors that neither the client nor an operator has caused.
_FAILED = 'error_type!~"|aborted|version_brownout"'


def text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def labels(key: VersionKey) -> str:
    api, version = key
    return f"api={text(api)}, version={text(version)}"


def request_labels(key: VersionKey) -> str:
    api, version = key
    return f"gateway_api_name={text(api)}, gateway_api_version={text(version)}"


def requests(matchers: str, window: str, by: str = BY_VERSION) -> str:
    return f"sum by ({by}) (rate({SERVED}_count{{{matchers}}}[{window}]))"


def failed_share(matchers: str, window: str) -> str:
    """Return the expression for the share of failed requests; 0 if no request failed."""
    everything = requests(matchers, window)
    failed = requests(f"{matchers}, {_FAILED}", window)
    return f"({failed} or 0 * {everything}) / {everything}"


def quantile(share: float, metric: str, matchers: str, window: str, by: str) -> str:
    """Return the expression for a quantile of request durations, in seconds."""
    rate = f"sum by (le, {by}) (rate({metric}_bucket{{{matchers}}}[{window}]))"
    return f"histogram_quantile({share:g}, {rate})"


# The alerts about the gateway itself, which do not depend on the configuration.
_GATEWAY = Path(__file__).with_name("alerts.yaml")
_DAY = 86_400
# The severity, factor and windows of each alert about the error budget of 30 days. A factor of 1
# means that the budget is spent evenly over the 30 days.
_BURNS = (("critical", 14.4, "1h", "5m"), ("warning", 6.0, "6h", "30m"))
_NEAR = 0.8
_SUNSET_DAYS = 30

# Requests without a version, and requests for an API without versions, lack this label.
_VERSION_OF = "{{ with $labels.gateway_api_version }}Version {{ . }} of {{ end }}"

Alert = dict[str, Any]


def alerts(snapshot: Snapshot, objective: float) -> dict[str, Any]:
    """`objective` is the target share of successful requests, such as 0.999."""
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
            f"{{{{ $value | humanizePercentage }}}} of its requests fail, while the budget is "
            f"{100 * budget:.4g}%"
            ". Check error_type, and the services.",
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
                "`usage` lists its clients.",
                own,
            )
        if terms.sunset < inf:
            yield _alert(
                "VersionCalledNearSunset",
                f"{called} and on() vector(time()) >= {terms.sunset - _SUNSET_DAYS * _DAY:.0f}",
                *("1h", "warning"),
                f"{named} ends within {_SUNSET_DAYS} days, or has ended, and is still called.",
                "Contact its callers (`usage`), give them more time (`exempt`), or move its "
                "sunset.",
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
            f"Converted responses of {named[0].lower() + named[1:]} violate its OpenAPI document.",
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
        "Its callers have not noticed: contact them (`usage`), or increase its brownouts.",
        own,
    )
    yield _alert(
        "BrownoutPaused",
        f"gateway_brownout_paused{{{labels(key)}}} == 1",
        *("1d", "info"),
        f"The brownouts of {named[0].lower() + named[1:]} have been paused for a day.",
        "`brownout resume` resumes them.",
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
            "`cutover show` lists the values that it compares; beyond the limit, it applies its "
            "`then`.",
            {**own, "gate": gate},
        )
    yield _alert(
        "GateExceeded",
        f'gateway_gate_outcome{{{labels(key)}, outcome="exceeded"}} == 1',
        *("0m", "critical"),
        f"The gate {{{{ $labels.gate }}}} of the cutover of {named[0].lower() + named[1:]} is"
        " exceeded.",
        "`cutover show` states the reason; the cutover was held or rolled back, unless it is a "
        "dry run.",
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


# The size of a panel, and the columns of Grafana's grid. The schema version is that of Grafana 10
# and later.
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_SCHEMA = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WINDOW = "$__rate_interval"
_CHOSEN = 'gateway_api_name=~"$api"'
_CHOSEN_API = 'api=~"$api"'
_NAMED = "{{gateway_api_name}} {{gateway_api_version}}"
_VERSION = "{{api}} {{version}}"


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"


def dashboard(snapshot: Snapshot) -> dict[str, Any]:
    """Return the dashboard. Panels for unused features, such as brownouts, are omitted."""
    names = [api.name for api in snapshot.apis]
    return {
        "title": "Version gateway",
        "uid": "version-gateway",
        "tags": ["version-gateway"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), _apis(names)]},
        "annotations": {"list": []},
        "panels": [_placed(number, panel) for number, panel in enumerate(panels(snapshot))],
    }


def panels(snapshot: Snapshot) -> Iterator[_Panel]:
    yield _Panel("Requests by version", ((requests(_CHOSEN, _WINDOW), _NAMED),), "reqps")
    yield _Panel("Failed by version", ((failed_share(_CHOSEN, _WINDOW), _NAMED),), "percentunit")
    p95 = quantile(0.95, SERVED, _CHOSEN, _WINDOW, BY_VERSION)
    yield _Panel("95% are answered within", ((p95, _NAMED),), "s")
    by_status = requests(_CHOSEN, _WINDOW, "http_response_status_code")
    yield _Panel("Requests by status", ((by_status, "{{http_response_status_code}}"),), "reqps")
    by_target = "server_address, server_port"
    yield _Panel(
        "95% of service responses begin within",
        (
            (
                quantile(0.95, ASKED, _CHOSEN, _WINDOW, by_target),
                "{{server_address}}:{{server_port}}",
            ),
        ),
        "s",
    )
    yield _Panel(
        "Refused by the gateway, by code",
        (
            (
                f"sum by (code) (rate(gateway_refusals_total{{{_CHOSEN_API}}}[{_WINDOW}]))",
                "{{code}}",
            ),
        ),
        "reqps",
    )
    yield _Panel("Clients by version", ((f"gateway_usage_clients{{{_CHOSEN_API}}}", _VERSION),))
    last = f"gateway_usage_last_seen_timestamp_seconds{{{_CHOSEN_API}}} * 1000"
    yield _Panel("Last request by version", ((last, _VERSION),), "dateTimeFromNow", "stat")
    yield from _of_some_rules(snapshot)
    yield _Panel("Workers", (("gateway_workers", "{{instance}}"),), kind="stat")
    yield _Panel(
        "State unreachable",
        (("gateway_state_stale_since_timestamp_seconds > bool 0", "{{instance}}"),),
        "bool",
        "stat",
    )
    yield _Panel(
        "Reloads", (("sum by (result) (gateway_reloads_total)", "{{result}}"),), kind="stat"
    )


def _of_some_rules(snapshot: Snapshot) -> Iterator[_Panel]:
    routes = [route for endpoint in snapshot.router for route in endpoint.routes.values()]
    if any(route.request or route.response for route in routes):
        converted = f"rate(gateway_conversions_total{{{_CHOSEN_API}}}[{_WINDOW}])"
        yield _Panel(
            "Converted by version", ((f"sum by (api, version) ({converted})", _VERSION),), "reqps"
        )
    if any(route.brownout for route in routes):
        paused = f"gateway_brownout_paused{{{_CHOSEN_API}}}"
        refused = f"{_CHOSEN_API}, code={text('version_brownout')}"
        rate = f"sum by (api, version) (rate(gateway_refusals_total{{{refused}}}[{_WINDOW}]))"
        yield _Panel("Refused in brownouts", ((rate, _VERSION),), "reqps")
        yield _Panel("Paused brownouts", ((paused, _VERSION),), "bool", "stat")
    if snapshot.cutovers:
        percent = f"gateway_cutover_percent{{{_CHOSEN_API}}}"
        yield _Panel("Cutovers", ((percent, _VERSION),), "percent")
        gates = "{{api}} {{version}} {{gate}} {{measure}}"
        value, limit = (f"gateway_gate_{name}{{{_CHOSEN_API}}}" for name in ("value", "limit"))
        yield _Panel("Gates", ((value, f"{gates} {{{{route}}}}"), (limit, f"{gates} limit")))
    if any(route.shadow for route in routes):
        compared, differing = (
            f"sum by (api, version) (rate(gateway_{name}_total{{{_CHOSEN_API}}}[{_WINDOW}]))"
            for name in ("compared", "differing")
        )
        share = f"({differing} or 0 * {compared}) / {compared}"
        yield _Panel("Responses that differ from their shadow", ((share, _VERSION),), "percentunit")
    if any(route.check and route.check.percent for route in routes):
        rate = f"sum by (api, version) (rate(gateway_checked_total{{{_CHOSEN_API}}}[{_WINDOW}]))"
        found = rate.replace("checked", "violations")
        yield _Panel("Checked answers", ((rate, f"{_VERSION} checked"), (found, _VERSION)), "reqps")


def _placed(number: int, panel: _Panel) -> dict[str, Any]:
    columns = _COLUMNS // _WIDTH
    row, column = divmod(number, columns)
    place = {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
    targets = [
        {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": query, "legendFormat": name}
        for index, (query, name) in enumerate(panel.queries)
    ]
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": targets,
    }


def _datasource() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }


def _apis(names: list[str]) -> dict[str, Any]:
    return {
        "name": "api",
        "label": "API",
        "type": "custom",
        "query": ",".join(names),
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "options": [{"text": name, "value": name, "selected": False} for name in names],
    }
