"""A real Prometheus scrapes the stack and answers each query of the dashboard with data."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.gateway.conftest import stack  # noqa: F401  # the four programs, as a fixture
from tests.gateway.kit import ROOT, Program, Stack, free_port, start_program, wait_for

HERE = Path(__file__).parent
# The alerts that are firing or pending after the requests here.
DUE = ("VersionViolatesDocument", "DeprecatedVersionCalled")
# The panels that have data with every configuration.
ALWAYS = (
    *("Requests by version", "Failed by version", "95 % of requests take at most"),
    *("Clients by version", "Last request by version", "Refused by the gateway, by code"),
    *("Requests by status", "95 % of service responses begin within", "Failing targets"),
    *("Workers", "State unreachable", "Edited configurations"),
)
REQUESTS = [
    ("/v1/person", {}),
    ("/v2/person", {}),
    ("/v3/person", {}),
    ("/v9/person", {}),
    ("/person/header", {"X-API-VERSION": "1"}),
    ("/person/param?version=2", {}),
    ("/users/1", {}),
]
# No response of a backend matches this document, so converted responses violate it.
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "person", "version": "3"},
    "paths": {
        "/person": {
            "get": {
                "responses": {
                    "200": {
                        "description": "a person",
                        "content": {
                            "application/json": {
                                "schema": {"properties": {"name": {"maxProperties": 1}}}
                            }
                        },
                    }
                }
            }
        }
    },
}


@contextmanager
def scraping(gateway: Program, folder: Path) -> Iterator[int]:
    port = free_port()
    target = f"127.0.0.1:{gateway.admin}"
    (folder / "prometheus.yml").write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(ROOT / "monitoring" / "alerts.yml")],
                "scrape_configs": [
                    {"job_name": "gateway", "static_configs": [{"targets": [target]}]}
                ],
            }
        )
    )
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--web.listen-address=127.0.0.1:{port}",
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: asked(port, "gateway_workers"))
        yield port
    finally:
        process.terminate()
        process.wait()


def api(port: int, path: str) -> dict[str, Any]:
    """Return a response of Prometheus, or an empty one while it is starting."""
    connection = HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", f"/api/v1/{path}")
        found: dict[str, Any] = json.load(connection.getresponse())["data"]
        return found
    except (OSError, json.JSONDecodeError):
        return {}
    finally:
        connection.close()


def asked(port: int, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api(port, f"query?{urlencode({'query': query})}").get(
        "result", []
    )
    return found


def call(gateway: Program) -> None:
    connection = HTTPConnection("127.0.0.1", gateway.port)
    for path, fields in REQUESTS:
        connection.request("GET", path, headers=fields)
        connection.getresponse().read()
    connection.close()


def unanswered(gateway: Program, port: int, queries: set[str]) -> set[str]:
    end = time.monotonic() + 60
    while queries and time.monotonic() < end:
        call(gateway)
        time.sleep(1)  # the next scrape
        # Without a request between two scrapes, a ratio or a quantile is NaN.
        queries = {
            query
            for query in queries
            if not any(each["value"][1] != "NaN" for each in asked(port, query))
        }
    return queries


def panels() -> dict[str, list[str]]:
    """Return the queries of each panel as Grafana sends them."""
    made = json.loads((ROOT / "monitoring" / "dashboard.json").read_text())
    return {
        panel["title"]: [
            re.sub(r"\$\w+", ".*", target["expr"].replace("$__rate_interval", "1m"))
            for target in panel["targets"]
        ]
        for panel in made["panels"]
        if panel["type"] != "row"
    }


def test_every_query_has_data_with_the_shipped_rules(stack: Stack, tmp_path: Path) -> None:  # noqa: F811  # the fixture
    gateway = stack.gateway
    with scraping(gateway, tmp_path) as port:
        queries = {query for title in ALWAYS for query in panels()[title]}
        assert not unanswered(gateway, port, queries)

        def evaluated() -> list[dict[str, Any]]:
            groups = api(port, "rules").get("groups", [])
            found = [rule for group in groups for rule in group["rules"]]
            return found if found and all(rule["health"] == "ok" for rule in found) else []

        rules = wait_for(evaluated)
        assert {"VersionErrorBudget", "VersionGatewayAbsent"} <= {rule["name"] for rule in rules}
        assert asked(port, 'ALERTS{alertstate="firing"}') == []


def test_every_query_has_data_with_all_features(stack: Stack, tmp_path: Path) -> None:  # noqa: F811  # likewise
    variables = stack.variables
    with ExitStack() as resources:
        folder = tmp_path / "gateway"
        folder.mkdir()
        (folder / "three.json").write_text(json.dumps(DOCUMENT))
        (folder / "gateway.yaml").write_text((HERE / "live.yaml").read_text())
        gateway = start_program(resources, folder, "gateway", **variables)
        gateway.config = folder / "gateway.yaml"
        port = resources.enter_context(scraping(gateway, tmp_path))
        queries = {query for found in panels().values() for query in found}
        alerts = {f'ALERTS{{alertname="{name}"}}' for name in DUE}
        assert not unanswered(gateway, port, queries | alerts)
