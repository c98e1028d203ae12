"""Queries of the dashboard and the alerts use only metrics and labels that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.manifests.monitoring import alerts, dashboard
from gateway.observe.metric_table import METRICS
from gateway.rules.load import load_file
from tests.gateway.kit import ROOT

SERVICES = {"PERSON_V1": "127.0.0.1:1", "PERSON_V2": "127.0.0.1:2"}
LABELS = {
    f"{row.name}{suffix}": {*row.labels, *(["le"] if suffix == "_bucket" else [])}
    for row in METRICS
    for suffix in (("_bucket", "_count", "_sum") if row.type == "histogram" else ("",))
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("rules")
    (folder / "three.json").write_text(json.dumps({"openapi": "3.1.0", "paths": {}}))
    (folder / "gateway.yaml").write_text((ROOT / "tests/telemetry/live.yaml").read_text())
    rules = load_file(folder / "gateway.yaml", SERVICES)
    panels = [target for panel in dashboard(rules)["panels"] for target in panel["targets"]]
    groups = alerts(rules, 0.999)["groups"]
    return [
        *(panel["expr"] for panel in panels),
        *(rule["expr"] for group in groups for rule in group["rules"]),
    ]


def selectors(query: str) -> Iterator[tuple[str, set[str]]]:
    for name, matchers in re.findall(r"\b((?:gateway|http)_\w+)(?:{([^}]*)})?", query):
        if name in LABELS or not any(name in labels for labels in LABELS.values()):
            yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))


def test_metrics_and_labels_in_queries_are_in_the_table_of_metrics(texts: list[str]) -> None:
    assert len(texts) > 30
    for query in texts:
        found = [*selectors(query)]
        for name, labels in found:
            assert labels <= LABELS[name], query
        known = {label for name, _ in found for label in LABELS[name]}
        for clause in re.findall(r"\b(?:by|without|ignoring) \(([^)]*)\)", query):
            assert set(re.findall(r"\w+", clause)) <= known, query
