"""The files in monitoring/ use metrics that exist, and link to sections that exist."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gateway.observe.metric_table import METRICS
from tests.gateway.kit import ROOT

DOCS = "https://example.com/version-gateway/docs/"
DASHBOARD = json.loads((ROOT / "monitoring" / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
GROUPS = yaml.safe_load((ROOT / "monitoring" / "alerts.yml").read_text())["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
QUERIES = [
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
    *(rule["expr"] for rule in RULES),
]
LABELS = {
    f"{row.name}{suffix}": {*row.labels, *(["le"] if suffix == "_bucket" else [])}
    for row in METRICS
    for suffix in (("_bucket", "_count", "_sum") if row.type == "histogram" else ("",))
}
# Labels that Prometheus adds to each series.
ADDED = {"cluster", "namespace", "job", "instance", "pod"}


def selectors(query: str) -> Iterator[tuple[str, set[str]]]:
    query = re.sub(r"version_gateway:[\w:]+", "", query)
    for name, matchers in re.findall(r"\b((?:gateway|http)_\w+)(?:{([^}]*)})?", query):
        if name in LABELS or not any(name in labels for labels in LABELS.values()):
            yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))


@pytest.mark.parametrize("query", QUERIES)
def test_metrics_and_labels_in_queries_are_in_the_table_of_metrics(query: str) -> None:
    found = [*selectors(query)]
    for name, labels in found:
        assert labels <= LABELS[name] | ADDED
    known = ADDED.union(*(LABELS[name] for name, _ in found))
    if "version_gateway:" not in query:  # a recorded series has labels of its own
        for clause in re.findall(r"\b(?:by|without|ignoring) \(([^)]*)\)", query):
            assert set(re.findall(r"\w+", clause)) <= known


def test_recorded_series_of_alerts_are_recorded() -> None:
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    used = {name for rule in ALERTS for name in re.findall(r"version_gateway:[\w:]+", rule["expr"])}
    assert used == recorded


def headings(page: str) -> set[str]:
    """Return the anchors of the headings of a page of docs/."""
    found = re.findall(r"^##+ (.*)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in found}


def links() -> Iterator[str]:
    yield from (rule["annotations"]["runbook_url"] for rule in ALERTS)
    yield from (link["url"] for panel in PANELS for link in panel["links"])
    yield from (link["url"] for link in DASHBOARD["links"])


@pytest.mark.parametrize("link", sorted({*links()}))
def test_links_lead_to_a_section_of_the_docs(link: str) -> None:
    page, _, anchor = link.removeprefix(DOCS).partition("#")
    assert link.startswith(DOCS)
    assert not anchor or anchor in headings(page)


def test_every_alert_has_its_own_runbook() -> None:
    assert {rule["alert"].lower() for rule in ALERTS} == headings("alerts.md") - {"install"}
    for rule in ALERTS:
        annotations = rule["annotations"]
        assert annotations["runbook_url"].endswith(f"#{rule['alert'].lower()}")
        assert annotations["summary"] and annotations["description"]  # noqa: PT018  # both


def test_every_panel_has_a_description_and_its_own_place() -> None:
    assert all(panel["description"] for panel in PANELS)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_dashboard_offers_the_jobs_and_apis_that_prometheus_knows() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "api"]
    assert variables["api"]["definition"].endswith(", gateway_api_name)")
