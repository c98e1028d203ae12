"""A stand-in for the group autoscaling of the Kubernetes API, in versions v1 and v2.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

from tests.clients.stand_in import Request, Response, StandIn, route

# A real server sends no charset and ends each document with a line feed.
JSON = "application/json"
ROOT = "/apis/autoscaling/(v[12])/namespaces/(shop|odd)/horizontalpodautoscalers"
MEMORY = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500Mi"}}


class Kubernetes(StandIn):
    """Stores objects in the format of v2 and returns them in the version of the path."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 10
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.changes: list[dict[str, Any]] = []
        for name in ("a", "b", "c"):
            self._store("shop", name, _spec(name, [_cpu(50)]))
        self._store(
            "odd", "memory", _spec("m", [_cpu(50), {"type": "Resource", "resource": MEMORY}])
        )

    def missing(self, request: Request) -> Response:
        return _status(404, "NotFound", "the server could not find the requested resource")

    @route("POST", ROOT)
    def create(self, request: Request, version: str, namespace: str) -> Response:
        new = request.json()
        if new["apiVersion"] != f"autoscaling/{version}":
            text = f"the API version in the data ({new['apiVersion']}) does not match"
            return _status(400, "BadRequest", text)
        name = new["metadata"]["name"]
        if (namespace, name) in self.objects:
            text = f'horizontalpodautoscalers.autoscaling "{name}" already exists'
            return _status(409, "AlreadyExists", text, name)
        spec = _to_v2(new)["spec"]
        if spec["maxReplicas"] < 1:
            return _status(422, "Invalid", "spec.maxReplicas: must be greater than 0", name)
        return _answer(_shown(self._store(namespace, name, spec), version), 201)

    @route("GET", ROOT)
    def list_or_watch(self, request: Request, version: str, namespace: str) -> Response:
        query = dict(request.query)
        found = [one for (place, _), one in self.objects.items() if place == namespace]
        if query.get("watch") in ("true", "True", "1"):
            return Response(200, self._watch(found, version, query), {"Content-Type": JSON})
        start, limit = int(query.get("continue") or 0), int(query.get("limit") or 500)
        items = [_shown(one, version) for one in found[start : start + limit]]
        for item in items:  # the list has these fields instead of its items
            del item["apiVersion"], item["kind"]
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if start + limit < len(found):
            metadata |= {
                "continue": str(start + limit),
                "remainingItemCount": len(found) - start - limit,
            }
        kind = {"kind": "HorizontalPodAutoscalerList", "apiVersion": f"autoscaling/{version}"}
        return _answer({**kind, "metadata": metadata, "items": items})

    @route("GET", ROOT + "/([a-z-]+)(?:/status)?")
    def read(self, request: Request, version: str, namespace: str, name: str) -> Response:
        if (namespace, name) not in self.objects:
            return _no_such(name)
        return _answer(_shown(self.objects[namespace, name], version))

    @route("PUT", ROOT + "/([a-z-]+)")
    def replace(self, request: Request, version: str, namespace: str, name: str) -> Response:
        new = request.json()
        old = self.objects[namespace, name]["metadata"]["resourceVersion"]
        if new["metadata"].get("resourceVersion", old) != old:
            return _status(409, "Conflict", "the object has been modified", name)
        spec = _to_v2(new)["spec"]
        return _answer(_shown(self._store(namespace, name, spec), version))

    @route("PATCH", ROOT + "/([a-z-]+)")
    def patch(self, request: Request, version: str, namespace: str, name: str) -> Response:
        shown = _shown(self.objects[namespace, name], version)
        kind = request.headers.get("content-type", "")
        if kind == "application/json-patch+json":
            for operation in request.json():
                _apply(shown, operation)
        elif kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
            shown = _merge(shown, request.json())
        else:
            return _status(415, "UnsupportedMediaType", f"the body of the request was in {kind!r}")
        return _answer(_shown(self._store(namespace, name, _to_v2(shown)["spec"]), version))

    @route("DELETE", ROOT + "/([a-z-]+)")
    def delete(self, request: Request, version: str, namespace: str, name: str) -> Response:
        if self.objects.pop((namespace, name), None) is None:
            return _no_such(name)
        details = {"name": name, "group": "autoscaling", "kind": "horizontalpodautoscalers"}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _answer({**status, "details": details})

    @route("DELETE", ROOT)
    def delete_all(self, request: Request, version: str, namespace: str) -> Response:
        removed = [key for key in self.objects if key[0] == namespace]
        items = [_shown(self.objects.pop(key), version) for key in removed]
        kind = {"kind": "HorizontalPodAutoscalerList", "apiVersion": f"autoscaling/{version}"}
        return _answer(
            {**kind, "metadata": {"resourceVersion": str(self.revision)}, "items": items}
        )

    def _store(self, namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        metadata = {"name": name, "namespace": namespace, "resourceVersion": str(self.revision)}
        status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": [_current(40)]}
        stored = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2"}
        self.objects[namespace, name] = {
            **stored,
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }
        self.changes.append(self.objects[namespace, name])
        return self.objects[namespace, name]

    def _watch(
        self, found: list[dict[str, Any]], version: str, query: dict[str, str]
    ) -> Iterator[bytes]:
        if query.get("resourceVersion") == "1":
            gone = json.loads(_status(410, "Expired", "too old resource version: 1 (10)").body)
            yield _line({"type": "ERROR", "object": gone})
            return
        seen, end = len(self.changes), time.monotonic() + float(query.get("timeoutSeconds", 0))
        lines = [_line({"type": "ADDED", "object": _shown(one, version)}) for one in found]
        yield lines[0][:40]  # one event arrives in two pieces, and two events in one
        yield lines[0][40:]
        yield b"".join(lines[1:])
        bookmark: dict[str, Any] = {
            "kind": "HorizontalPodAutoscaler",
            "apiVersion": f"autoscaling/{version}",
        }
        bookmark |= {"metadata": {"resourceVersion": str(self.revision)}}
        yield _line({"type": "BOOKMARK", "object": bookmark})
        while time.monotonic() < end:
            for changed in self.changes[seen:]:
                yield _line({"type": "MODIFIED", "object": _shown(changed, version)})
                seen += 1
            time.sleep(0.01)


def _spec(target: str, metrics: list[dict[str, Any]]) -> dict[str, Any]:
    reference = {"kind": "Deployment", "name": target, "apiVersion": "apps/v1"}
    return {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5, "metrics": metrics}


def _cpu(percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _current(percent: int) -> dict[str, Any]:
    current = {"averageValue": "80m", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


def _shown(stored: dict[str, Any], version: str) -> dict[str, Any]:
    """Return an object in the format of a version.

    In v1, metrics other than the CPU are in an annotation.
    """
    shown = copy.deepcopy(stored)
    if version == "v2":
        return shown
    shown["apiVersion"] = "autoscaling/v1"
    percents, others = _split(shown["spec"].pop("metrics"), "target")
    if percents:
        shown["spec"]["targetCPUUtilizationPercentage"] = percents[0]
    if others:
        annotations = {"autoscaling.alpha.kubernetes.io/metrics": json.dumps(others)}
        shown["metadata"]["annotations"] = annotations
    percents, _ = _split(shown["status"].pop("currentMetrics"), "current")
    shown["status"]["currentCPUUtilizationPercentage"] = percents[0]
    return shown


def _split(metrics: list[dict[str, Any]], part: str) -> tuple[list[int], list[dict[str, Any]]]:
    cpu = [one for one in metrics if one["resource"]["name"] == "cpu"]
    others = [one for one in metrics if one["resource"]["name"] != "cpu"]
    return [one["resource"][part]["averageUtilization"] for one in cpu], others


def _to_v2(shown: dict[str, Any]) -> dict[str, Any]:
    stored = copy.deepcopy(shown)
    if shown["apiVersion"] == "autoscaling/v1":
        percent = stored["spec"].pop("targetCPUUtilizationPercentage", None)
        stored["spec"]["metrics"] = [_cpu(80 if percent is None else percent)]
        annotations = stored["metadata"].get("annotations", {})
        others = annotations.get("autoscaling.alpha.kubernetes.io/metrics", "[]")
        stored["spec"]["metrics"] += json.loads(others)
    stored["spec"].setdefault("minReplicas", 1)
    stored["spec"].setdefault("metrics", [_cpu(80)])
    return stored


def _merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396).

    For these objects, a strategic merge patch has the same effect.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _apply(document: Any, operation: dict[str, Any]) -> None:
    """Apply one operation of a JSON Patch (RFC 6902): add, replace or remove."""
    *parents, last = operation["path"].split("/")[1:]
    for parent in parents:
        document = document[int(parent) if isinstance(document, list) else parent]
    key = int(last) if isinstance(document, list) else last
    if operation["op"] == "remove":
        del document[key]
    else:
        document[key] = operation["value"]


def _no_such(name: str) -> Response:
    return _status(
        404, "NotFound", f'horizontalpodautoscalers.autoscaling "{name}" not found', name
    )


def _status(status: int, reason: str, message: str, name: str = "") -> Response:
    details = {"name": name, "group": "autoscaling", "kind": "horizontalpodautoscalers"}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return _answer(
        {**body, "message": message, "reason": reason, "details": details, "code": status}, status
    )


def _answer(body: Any, status: int = 200) -> Response:
    return Response(status, _line(body), {"Content-Type": JSON, "Audit-Id": "0-1"})


def _line(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
