"""Calls the Kubernetes API with its Python client: `kubernetes_python.py BASE_URL (1|2)`."""

import json
import sys
from typing import Any

from kubernetes import client, watch

from tests.clients.calls.annotations import opened
from tests.clients.calls.report import report

BASE, VERSION = sys.argv[1:]
configuration = client.Configuration()
configuration.host = BASE
api_client = client.ApiClient(configuration)
api = client.AutoscalingV1Api(api_client) if VERSION == "1" else client.AutoscalingV2Api(api_client)
NAME = "namespaced_horizontal_pod_autoscaler"
IN_METRIC = "metrics/0/resource/target/averageUtilization"
METRIC = "targetCPUUtilizationPercentage" if VERSION == "1" else IN_METRIC


def call(verb: str, *arguments: Any, **options: Any) -> Any:
    found = getattr(api, f"{verb}_{NAME}")(*arguments, **options)
    return opened(api_client.sanitize_for_serialization(found))


def raw(verb: str, *arguments: Any, **options: Any) -> Any:
    response = getattr(api, f"{verb}_{NAME}")(*arguments, _preload_content=False, **options)
    return {"type": response.headers["Content-Type"], "body": opened(json.loads(response.data))}


def cpu(percent: int) -> dict[str, Any]:
    if VERSION == "1":
        return {"targetCPUUtilizationPercentage": percent}
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}


def scaler(name: str, **spec: Any) -> dict[str, Any]:
    reference = {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}
    return {
        "apiVersion": f"autoscaling/v{VERSION}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 3, **spec},
    }


def typed(name: str) -> Any:
    meta = client.V1ObjectMeta(name=name)
    if VERSION == "1":
        reference = client.V1CrossVersionObjectReference(kind="Deployment", name=name)
        spec = client.V1HorizontalPodAutoscalerSpec(scale_target_ref=reference, max_replicas=4)
        made = client.V1HorizontalPodAutoscaler(
            api_version="autoscaling/v1", metadata=meta, spec=spec
        )
    else:
        reference = client.V2CrossVersionObjectReference(kind="Deployment", name=name)
        spec = client.V2HorizontalPodAutoscalerSpec(scale_target_ref=reference, max_replicas=4)
        made = client.V2HorizontalPodAutoscaler(
            api_version="autoscaling/v2", metadata=meta, spec=spec
        )
    return call("create", "shop", made)


def replace(name: str, namespace: str) -> Any:
    found = getattr(api, f"read_{NAME}")(name, namespace)
    found.spec.max_replicas = 9
    return call("replace", name, namespace, found)


def events(**options: Any) -> Any:
    """Watch until a change arrives that is made during the watch."""
    watcher, seen = watch.Watch(), []
    listing = getattr(api, f"list_{NAME}")
    options = {"timeout_seconds": 5, "allow_watch_bookmarks": True, **options}
    for event in watcher.stream(listing, "shop", **options):
        seen.append([event["type"], opened(event["raw_object"])])
        if event["type"] == "BOOKMARK":
            call("patch", "c", "shop", {"spec": {"minReplicas": 2}})
        if event["type"] == "MODIFIED":
            watcher.stop()
    return seen


def lines() -> Any:
    """Return the documents of a watch as received, without the client's models."""
    path = f"/apis/autoscaling/v{VERSION}/namespaces/shop/horizontalpodautoscalers"
    response = api_client.rest_client.request("GET", f"{BASE}{path}?watch=1&timeoutSeconds=0")
    return [opened(json.loads(line)) for line in response.read().splitlines()]


report(
    {
        "create": lambda: call("create", "shop", scaler("new", **cpu(70))),
        "create with a type": lambda: call(
            "create",
            "shop",
            scaler("typed", **cpu(70)),
            _headers={"Content-Type": "application/json"},
        ),
        "create without a metric": lambda: call("create", "shop", scaler("bare")),
        "create, models": lambda: typed("models"),
        "create, existing": lambda: call("create", "shop", scaler("a", **cpu(70))),
        "create, invalid": lambda: call("create", "shop", scaler("bad", maxReplicas=0)),
        "read": lambda: raw("read", "a", "shop"),
        "read the status": lambda: opened(
            api_client.sanitize_for_serialization(getattr(api, f"read_{NAME}_status")("a", "shop"))
        ),
        "read, missing": lambda: call("read", "none", "shop"),
        "list": lambda: raw("list", "shop"),
        "list in pages": lambda: [
            raw("list", "shop", limit=2),
            raw("list", "shop", limit=2, _continue="2"),
        ],
        "watch": events,
        "watch, raw": lines,
        "watch, expired": lambda: events(resource_version="1"),
        "replace": lambda: replace("a", "shop"),
        "patch": lambda: call("patch", "b", "shop", {"spec": {"maxReplicas": 6}}),
        "patch a metric": lambda: call("patch", "b", "shop", {"spec": cpu(60)}),
        "merge patch": lambda: call(
            "patch",
            "b",
            "shop",
            {"spec": {"maxReplicas": 7}},
            _content_type="application/merge-patch+json",
        ),
        "JSON patch": lambda: call(
            "patch", "c", "shop", [{"op": "replace", "path": "/spec/maxReplicas", "value": 8}]
        ),
        "delete": lambda: call("delete", "c", "shop"),
        "delete with options": lambda: call(
            "delete", "b", "shop", body=client.V1DeleteOptions(grace_period_seconds=0)
        ),
        "delete, missing": lambda: call("delete", "c", "shop"),
        "other metrics": lambda: raw("read", "memory", "odd"),
        "replace other metrics": lambda: replace("memory", "odd"),
        "delete all": lambda: raw("delete_collection", "shop"),
        "JSON patch a metric": lambda: call(
            "patch", "memory", "odd", [{"op": "replace", "path": f"/spec/{METRIC}", "value": 65}]
        ),
        "server-side apply": lambda: call(
            "patch",
            "applied",
            "shop",
            scaler("applied", **cpu(70)),
            field_manager="me",
            _content_type="application/apply-patch+yaml",
        ),
    }
)
