"""The Python client of Kubernetes uses autoscaling/v1 at a service of autoscaling/v2."""

from pathlib import Path

import pytest

from tests.clients.comparison import Client, compare
from tests.clients.kubernetes_api import Kubernetes

CLIENT = Client("kubernetes_python.py")

RULES = """
services: { kubernetes: { targets: ["${SERVICE}"] } }
apis:
  autoscaling:
    endpoints: [ { path: "/apis/autoscaling/v{version}/{rest*}", version: { in: path } } ]
    versions: { "1": { via: "2" }, "2": { service: kubernetes } }
    conversions:
      - between: ["1", "2"]
        changes:
          - use: { group: autoscaler }
          - use: { group: autoscaler, at: ["items[]", object] }
    groups:
      autoscaler:
        - map: { field: apiVersion, values: { autoscaling/v2: autoscaling/v1 }, unknown: keep }
        - rename:
            field: spec.metrics.resource.target.averageUtilization
            to: spec.targetCPUUtilizationPercentage
        - unwrap: { field: spec.metrics }
        - default: { field: "spec.metrics[].resource.target.type", value: Utilization }
        - default: { field: "spec.metrics[].resource.name", value: cpu }
        - default: { field: "spec.metrics[].type", value: Resource }
        - python:
            field: status
            up: tests.clients.functions:status_of_v2
            down: tests.clients.functions:status_of_v1
            pure: true
"""

# The calls whose results differ because no declared change can describe the difference.
GAPS = {
    "another metric": "v1 has other metrics as JSON in an annotation: no change writes such a text",
    "JSON patch a metric": "the value became an element with constants: no JSON Patch says so",
}
RAISED = {
    "create, existing",
    "create, invalid",
    "read, missing",
    "watch, expired",
    "delete, missing",
}


@pytest.mark.parametrize("version", ["1", "2"])
def test_every_call_returns_what_the_service_of_the_version_returns(
    version: str, tmp_path: Path
) -> None:
    found = compare(tmp_path, RULES, (Kubernetes(), Kubernetes()), CLIENT, version)
    assert found.raised == RAISED
    assert all(request.path.startswith("/apis/autoscaling/v2/") for request in found.requests)
    if version == "2":
        assert found.different == {}
    else:
        assert found.different.keys() == GAPS.keys()
        assert "annotations" not in found.different["another metric"]["body"]["metadata"]
        assert found.different["JSON patch a metric"]["status"] == 400
