"""A stand-in for the group autoscaling of the Kubernetes API.

`documents` has the OpenAPI documents of Kubernetes (Apache License 2.0).
https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import json
import lzma
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.clients.kubernetes_versions import cpu, in_version, to_v2
from tests.clients.stand_in import Request, Response, StandIn, route

# A real server sends no charset and ends each document with a line feed.
JSON = "application/json"
GROUP = "/apis/autoscaling/(v[12])"
ROOT = f"{GROUP}/namespaces/(shop|odd)/horizontalpodautoscalers"
ONE = ROOT + "/([a-z-]+)(?:/status)?"

MEMORY = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500Mi"}}
CONTAINER = {
    "name": "cpu",
    "container": "web",
    "target": {"type": "Utilization", "averageUtilization": 60},
}
PODS = {
    "metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}},
    "target": {"type": "AverageValue", "averageValue": "1k"},
}
HITS = {
    "metric": {"name": "hits"},
    "describedObject": {"kind": "Ingress", "name": "main"},
    "target": {"type": "Value", "value": "10k"},
}
QUEUE = {
    "metric": {"name": "queue", "selector": {"matchLabels": {"q": "w"}}},
    "target": {"type": "AverageValue", "averageValue": "30"},
}
OTHER_METRICS = [
    {"type": "Resource", "resource": MEMORY},
    {"type": "ContainerResource", "containerResource": CONTAINER},
    {"type": "Pods", "pods": PODS},
    {"type": "Object", "object": HITS},
    {"type": "External", "external": QUEUE},
]
BEHAVIOR = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
    }
}
CONDITION = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AS_TABLE = "as=Table;v=v1;g=meta.k8s.io"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
SPEC = {"v1": {"targetCPUUtilizationPercentage"}, "v2": {"metrics", "behavior"}}
COLUMNS = ("Name", "Reference", "MinPods", "MaxPods", "Age")
DOCUMENTS = Path(__file__).with_name("documents")
Object = dict[str, Any]


class Kubernetes(StandIn):
    """Stores objects in the format of v2 and serves the named versions of the group."""

    def __init__(self, *versions: str) -> None:
        super().__init__()
        self.versions = versions
        self.revision = 10
        self.objects: dict[tuple[str, str], Object] = {}
        self.changes: list[Object] = []
        for name in ("a", "b", "c"):
            self._store(_object("shop", name, [cpu(50)]))
        odd = _object("odd", "memory", [cpu(50), *OTHER_METRICS])
        odd["spec"]["behavior"] = BEHAVIOR
        odd["status"]["conditions"] = [CONDITION]
        self._store(odd)

    def answer(self, request: Request) -> Response:
        for version in ("v1", "v2"):
            if version not in self.versions and request.path.startswith(
                f"/apis/autoscaling/{version}"
            ):
                return self.missing(request)
        return super().answer(request)

    def missing(self, request: Request) -> Response:
        return _status(404, "NotFound", "the server could not find the requested resource")

    @route("GET", "/api")
    def core(self, request: Request) -> Response:
        if AGGREGATED in request.headers.get("accept", ""):
            return _discovered([])
        return _answer({"kind": "APIVersions", "versions": ["v1"]})

    @route("GET", "/apis")
    def groups(self, request: Request) -> Response:
        if AGGREGATED in request.headers.get("accept", ""):
            versions = [_discovered_version(version) for version in self.versions]
            return _discovered([{"metadata": {"name": "autoscaling"}, "versions": versions}])
        listed = [{"groupVersion": f"autoscaling/{one}", "version": one} for one in self.versions]
        group = {"name": "autoscaling", "versions": listed, "preferredVersion": listed[0]}
        return _answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})

    @route("GET", GROUP)
    def resources(self, request: Request, version: str) -> Response:
        resource = {
            "name": "horizontalpodautoscalers",
            "singularName": "horizontalpodautoscaler",
            "namespaced": True,
            "kind": "HorizontalPodAutoscaler",
            "verbs": VERBS,
            "shortNames": ["hpa"],
        }
        head = {"kind": "APIResourceList", "apiVersion": "v1"}
        return _answer({**head, "groupVersion": f"autoscaling/{version}", "resources": [resource]})

    @route("GET", "/openapi/v3")
    def documents(self, request: Request) -> Response:
        paths = {
            f"apis/autoscaling/{one}": {
                "serverRelativeURL": f"/openapi/v3/apis/autoscaling/{one}?hash=1"
            }
            for one in self.versions
        }
        return _answer({"paths": paths})

    @route("GET", "/(?:openapi/v3/apis/autoscaling/|autoscaling-)(v[12])(?:.json)?")
    def document(self, request: Request, version: str) -> Response:
        text = (DOCUMENTS / f"autoscaling-{version}.json.xz").read_bytes()
        return Response(200, lzma.decompress(text), {"Content-Type": JSON})

    @route("POST", ROOT)
    def create(self, request: Request, version: str, namespace: str) -> Response:
        new = request.json()
        name = new["metadata"]["name"]
        if mistake := _mistake(new, version, request):
            return mistake
        if (namespace, name) in self.objects:
            text = f'horizontalpodautoscalers.autoscaling "{name}" already exists'
            return _status(409, "AlreadyExists", text, name)
        return self._stored(request, version, namespace, name, new, 201)

    @route("GET", ROOT)
    def list_or_watch(self, request: Request, version: str, namespace: str) -> Response:
        query = dict(request.query)
        name = query.get("fieldSelector", "").removeprefix("metadata.name=")
        found = [
            one
            for (place, known), one in self.objects.items()
            if place == namespace and known.startswith(name)
        ]
        if query.get("watch") in ("true", "True", "1"):
            stream = self._watch(found, version, query, _form(request, version))
            return Response(200, stream, {"Content-Type": _type(request)})
        start, limit = int(query.get("continue") or 0), int(query.get("limit") or 500)
        metadata: Object = {"resourceVersion": str(self.revision)}
        if start + limit < len(found):
            metadata |= {
                "continue": str(start + limit),
                "remainingItemCount": len(found) - start - limit,
            }
        page = found[start : start + limit]
        if AS_TABLE in request.headers.get("accept", ""):
            return _answer({**_table(page, version, request), "metadata": metadata}, request)
        items = [in_version(one, version) for one in page]
        for item in items:  # the list has these fields instead of its items
            del item["apiVersion"], item["kind"]
        kind = {"kind": "HorizontalPodAutoscalerList", "apiVersion": f"autoscaling/{version}"}
        return _answer({**kind, "metadata": metadata, "items": items})

    @route("GET", ONE)
    def read(self, request: Request, version: str, namespace: str, name: str) -> Response:
        if (namespace, name) not in self.objects:
            return _no_such(name)
        found = self.objects[namespace, name]
        return _answer(_form(request, version)(found), request)

    @route("PUT", ONE)
    def replace(self, request: Request, version: str, namespace: str, name: str) -> Response:
        new = request.json()
        if mistake := _mistake(new, version, request):
            return mistake
        old = self.objects[namespace, name]["metadata"]["resourceVersion"]
        if new["metadata"].get("resourceVersion", old) != old:
            return _status(409, "Conflict", "the object has been modified", name)
        return self._stored(request, version, namespace, name, new)

    @route("PATCH", ONE)
    def patch(self, request: Request, version: str, namespace: str, name: str) -> Response:
        kind = request.headers.get("content-type", "")
        old = self.objects.get((namespace, name))
        if kind == "application/apply-patch+yaml":
            return self._applied(request, version, namespace, name, old)
        if old is None:
            return _no_such(name)
        shown = in_version(old, version)
        if kind == "application/json-patch+json":
            for operation in request.json():
                _apply(shown, operation)
        elif kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
            shown = _merge(shown, request.json())
        else:
            return _status(415, "UnsupportedMediaType", f"the body of the request was in {kind!r}")
        return _mistake(shown, version, request) or self._stored(
            request, version, namespace, name, shown
        )

    def _applied(
        self, request: Request, version: str, namespace: str, name: str, old: Object | None
    ) -> Response:
        """Apply a configuration: https://kubernetes.io/docs/reference/using-api/server-side-apply/.

        Only maxReplicas can be in conflict.
        """
        new, query = request.json(), dict(request.query)
        if mistake := _mistake(new, version, request):
            return mistake
        manager, known = query["fieldManager"], old or _object(namespace, name, [])
        for field in known["metadata"].get("managedFields", []):
            differs = known["spec"]["maxReplicas"] != new["spec"].get("maxReplicas")
            if field["manager"] != manager and differs and query.get("force") != "true":
                text = f'conflict with "{field["manager"]}": .spec.maxReplicas'
                return _status(409, "Conflict", f"Apply failed with 1 conflict: {text}", name)
        merged = _merge(in_version(known, version), new)
        field = {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1"}
        merged["metadata"]["managedFields"] = [{**field, "apiVersion": f"autoscaling/{version}"}]
        return self._stored(request, version, namespace, name, merged, 200 if old else 201)

    @route("DELETE", ONE)
    def delete(self, request: Request, version: str, namespace: str, name: str) -> Response:
        if (namespace, name) not in self.objects:
            return _no_such(name)
        if "dryRun" not in dict(request.query):
            del self.objects[namespace, name]
        details = {"name": name, "group": "autoscaling", "kind": "horizontalpodautoscalers"}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _answer({**status, "details": details})

    @route("DELETE", ROOT)
    def delete_all(self, request: Request, version: str, namespace: str) -> Response:
        removed = [key for key in self.objects if key[0] == namespace]
        items = [in_version(self.objects.pop(key), version) for key in removed]
        kind = {"kind": "HorizontalPodAutoscalerList", "apiVersion": f"autoscaling/{version}"}
        return _answer(
            {**kind, "metadata": {"resourceVersion": str(self.revision)}, "items": items}
        )

    def _stored(
        self,
        request: Request,
        version: str,
        namespace: str,
        name: str,
        new: Object,
        status: int = 200,
    ) -> Response:
        made = {"kind": "HorizontalPodAutoscaler", **to_v2(new)}
        known = self.objects.get((namespace, name)) or _object(namespace, name, [])
        made["metadata"] = {**made["metadata"], "namespace": namespace}
        made["status"] = known["status"]  # a status has a separate path
        if made["spec"]["maxReplicas"] < 1:
            return _status(422, "Invalid", "spec.maxReplicas: must be greater than 0", name)
        if dict(request.query).get("dryRun") == "All":
            return _answer(in_version(made, version), status=status)
        return _answer(in_version(self._store(made), version), status=status)

    def _store(self, made: Object) -> Object:
        self.revision += 1
        made["metadata"]["resourceVersion"] = str(self.revision)
        self.objects[made["metadata"]["namespace"], made["metadata"]["name"]] = made
        self.changes.append(made)
        return made

    def _watch(
        self,
        found: list[Object],
        version: str,
        query: dict[str, str],
        form: Callable[[Object], Object],
    ) -> Iterator[bytes]:
        if query.get("resourceVersion") == "1":
            gone = json.loads(_status(410, "Expired", "too old resource version: 1 (10)").body)
            yield _line({"type": "ERROR", "object": gone})
            return
        seen, end = len(self.changes), time.monotonic() + float(query.get("timeoutSeconds", 2))
        if "resourceVersion" not in query:
            lines = [_line({"type": "ADDED", "object": form(one)}) for one in found]
            yield lines[0][:40]  # one event arrives in two pieces, and two events in one
            yield lines[0][40:]
            yield b"".join(lines[1:])
        if query.get("allowWatchBookmarks") in ("true", "True"):
            bookmark: Object = {
                "kind": "HorizontalPodAutoscaler",
                "apiVersion": f"autoscaling/{version}",
            }
            bookmark |= {"metadata": {"resourceVersion": str(self.revision)}}
            yield _line({"type": "BOOKMARK", "object": bookmark})
        while time.monotonic() < end:
            for changed in self.changes[seen:]:
                yield _line({"type": "MODIFIED", "object": form(changed)})
                seen += 1
            time.sleep(0.01)


def _object(namespace: str, name: str, metrics: list[Object]) -> Object:
    reference = {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5, "metrics": metrics}
    status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": [_current(40)]}
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": status,
    }


def _current(percent: int) -> Object:
    current = {"averageValue": "80m", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


def _mistake(sent: Object, version: str, request: Request) -> Response | None:
    """Return the refusal of an object in another version, or of a field of another version."""
    if sent["apiVersion"] != f"autoscaling/{version}":
        text = f"the API version in the data ({sent['apiVersion']}) does not match"
        return _status(400, "BadRequest", text)
    known = {"scaleTargetRef", "minReplicas", "maxReplicas"} | SPEC[version]
    if unknown := sent["spec"].keys() - known:
        text = f'strict decoding error: unknown field "spec.{min(unknown)}"'
        return _status(400, "BadRequest", text)
    return None


def _form(request: Request, version: str) -> Callable[[Object], Object]:
    """Return the function that makes the document of an object: the object itself, or a table."""
    if AS_TABLE in request.headers.get("accept", ""):
        return lambda stored: _table([stored], version, request)
    return lambda stored: in_version(stored, version)


def _table(found: list[Object], version: str, request: Request) -> Object:
    """Return a table: the documentation calls it "Receiving resources as Tables"."""
    whole = dict(request.query).get("includeObject") == "Object"
    rows = []
    for stored in found:
        meta = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        spec, target = stored["spec"], stored["spec"]["scaleTargetRef"]
        cells = [stored["metadata"]["name"], f"{target['kind']}/{target['name']}"]
        cells += [spec["minReplicas"], spec["maxReplicas"], "5m"]
        shown = in_version(stored, version)
        rows.append(
            {"cells": cells, "object": shown if whole else {**meta, "metadata": shown["metadata"]}}
        )
    columns = [{"name": name, "type": "string", "priority": 0} for name in COLUMNS]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}
    return {**head, "columnDefinitions": columns, "rows": rows}


def _discovered(items: list[Object]) -> Response:
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    content = {"Content-Type": f"{JSON};{AGGREGATED}"}
    return Response(200, _line({**body, "metadata": {}, "items": items}), content)


def _discovered_version(version: str) -> Object:
    kind = {"group": "autoscaling", "version": version, "kind": "HorizontalPodAutoscaler"}
    resource = {
        "resource": "horizontalpodautoscalers",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "horizontalpodautoscaler",
        "verbs": VERBS,
        "shortNames": ["hpa"],
    }
    return {"version": version, "resources": [resource], "freshness": "Current"}


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


def _apply(document: Any, operation: Object) -> None:
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
        {**body, "message": message, "reason": reason, "details": details, "code": status},
        status=status,
    )


def _answer(body: Any, request: Request | None = None, status: int = 200) -> Response:
    return Response(status, _line(body), {"Content-Type": _type(request), "Audit-Id": "0-1"})


def _type(request: Request | None) -> str:
    tabular = request is not None and AS_TABLE in request.headers.get("accept", "")
    return f"{JSON};{AS_TABLE}" if tabular else JSON


def _line(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
