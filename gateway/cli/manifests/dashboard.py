"""The dashboard: panels of Grafana for the versions of the rules, as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.cli.manifests.promql import (
    ASKED,
    BY_VERSION,
    SERVED,
    failed_share,
    quantile,
    requests,
    text,
)
from gateway.routing.snapshot import Snapshot

# Grafana's grid has 24 columns; the numbers of its schema are those of Grafana 10 and later.
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_SCHEMA = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WINDOW = "$__rate_interval"
_CHOSEN = 'gateway_api_name=~"$api"'
_CHOSEN_API = 'api=~"$api"'
_NAMED = "{{gateway_api_name}} {{gateway_api_version}}"
_VERSION = "{{api}} {{version}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: What it shows.
        queries: Each in PromQL, with the legend of its series.
        unit: Of its values, by the names that Grafana has for units.
        kind: Of the panel, likewise.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"


def dashboard(snapshot: Snapshot) -> dict[str, Any]:
    """Return the dashboard: requests first, then what only some rules have."""
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


def panels(snapshot: Snapshot) -> Iterator[Panel]:
    """Yield the panels in order."""
    yield Panel("Requests by version", ((requests(_CHOSEN, _WINDOW), _NAMED),), "reqps")
    yield Panel("Failed by version", ((failed_share(_CHOSEN, _WINDOW), _NAMED),), "percentunit")
    p95 = quantile(0.95, SERVED, _CHOSEN, _WINDOW, BY_VERSION)
    yield Panel("95% are answered within", ((p95, _NAMED),), "s")
    by_status = requests(_CHOSEN, _WINDOW, "http_response_status_code")
    yield Panel("Requests by status", ((by_status, "{{http_response_status_code}}"),), "reqps")
    by_target = "server_address, server_port"
    yield Panel(
        "95% of answers of services begin within",
        (
            (
                quantile(0.95, ASKED, _CHOSEN, _WINDOW, by_target),
                "{{server_address}}:{{server_port}}",
            ),
        ),
        "s",
    )
    yield Panel(
        "Refused by the gateway, by code",
        (
            (
                f"sum by (code) (rate(gateway_refusals_total{{{_CHOSEN_API}}}[{_WINDOW}]))",
                "{{code}}",
            ),
        ),
        "reqps",
    )
    yield Panel("Clients by version", ((f"gateway_usage_clients{{{_CHOSEN_API}}}", _VERSION),))
    last = f"gateway_usage_last_seen_timestamp_seconds{{{_CHOSEN_API}}} * 1000"
    yield Panel("Last request by version", ((last, _VERSION),), "dateTimeFromNow", "stat")
    yield from _of_some_rules(snapshot)
    yield Panel("Workers", (("gateway_workers", "{{instance}}"),), kind="stat")
    yield Panel(
        "State out of reach",
        (("gateway_state_stale_since_timestamp_seconds > bool 0", "{{instance}}"),),
        "bool",
        "stat",
    )
    yield Panel(
        "Reloads", (("sum by (result) (gateway_reloads_total)", "{{result}}"),), kind="stat"
    )


def _of_some_rules(snapshot: Snapshot) -> Iterator[Panel]:
    routes = [route for endpoint in snapshot.router for route in endpoint.routes.values()]
    if any(route.request or route.response for route in routes):
        converted = f"rate(gateway_conversions_total{{{_CHOSEN_API}}}[{_WINDOW}])"
        yield Panel(
            "Converted by version", ((f"sum by (api, version) ({converted})", _VERSION),), "reqps"
        )
    if any(route.brownout for route in routes):
        paused = f"gateway_brownout_paused{{{_CHOSEN_API}}}"
        refused = f"{_CHOSEN_API}, code={text('version_brownout')}"
        rate = f"sum by (api, version) (rate(gateway_refusals_total{{{refused}}}[{_WINDOW}]))"
        yield Panel("Refused in brownouts", ((rate, _VERSION),), "reqps")
        yield Panel("Paused brownouts", ((paused, _VERSION),), "bool", "stat")
    if snapshot.cutovers:
        percent = f"gateway_cutover_percent{{{_CHOSEN_API}}}"
        yield Panel("Cutovers", ((percent, _VERSION),), "percent")
        gates = "{{api}} {{version}} {{gate}} {{measure}}"
        value, limit = (f"gateway_gate_{name}{{{_CHOSEN_API}}}" for name in ("value", "limit"))
        yield Panel("Gates", ((value, f"{gates} {{{{route}}}}"), (limit, f"{gates} limit")))
    if any(route.shadow for route in routes):
        compared, differing = (
            f"sum by (api, version) (rate(gateway_{name}_total{{{_CHOSEN_API}}}[{_WINDOW}]))"
            for name in ("compared", "differing")
        )
        share = f"({differing} or 0 * {compared}) / {compared}"
        yield Panel("Answers that differ from their shadow", ((share, _VERSION),), "percentunit")
    if any(route.check and route.check.percent for route in routes):
        rate = f"sum by (api, version) (rate(gateway_checked_total{{{_CHOSEN_API}}}[{_WINDOW}]))"
        found = rate.replace("checked", "violations")
        yield Panel("Checked answers", ((rate, f"{_VERSION} checked"), (found, _VERSION)), "reqps")


def _placed(number: int, panel: Panel) -> dict[str, Any]:
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
