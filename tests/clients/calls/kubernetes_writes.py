"""Writes a scaler in four ways with the Python client: `kubernetes_writes.py BASE_URL`."""

import sys

from kubernetes import client

from tests.clients.calls.report import report

configuration = client.Configuration()
configuration.host = sys.argv[1]
api = client.AutoscalingV1Api(client.ApiClient(configuration))
NAME = "memory", "odd"
FIELD = "targetCPUUtilizationPercentage"


def percent() -> int:
    found = api.read_namespaced_horizontal_pod_autoscaler(*NAME)
    return int(found.spec.target_cpu_utilization_percentage)


def patch(kind: str, body: object) -> int:
    media_type = f"application/{kind}+json"
    api.patch_namespaced_horizontal_pod_autoscaler(*NAME, body, _content_type=media_type)
    return percent()


def replace(value: int) -> int:
    found = api.read_namespaced_horizontal_pod_autoscaler(*NAME)
    found.spec.target_cpu_utilization_percentage = value
    api.replace_namespaced_horizontal_pod_autoscaler(*NAME, found)
    return percent()


report(
    {
        "merge patch": lambda: patch("merge-patch", {"spec": {FIELD: 61}}),
        "JSON patch": lambda: patch(
            "json-patch", [{"op": "replace", "path": f"/spec/{FIELD}", "value": 62}]
        ),
        "strategic": lambda: patch("strategic-merge-patch", {"spec": {FIELD: 63}}),
        "PUT": lambda: replace(64),
    }
)
