"""Objects of the group autoscaling in v2, and in v1 as Kubernetes converts them.

https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/autoscaling/v1/conversion.go
"""

import copy
import json
from collections.abc import Callable
from typing import Any

PREFIX = "autoscaling.alpha.kubernetes.io/"
Object = dict[str, Any]
Metrics = list[Object]


def in_version(stored: Object, version: str) -> Object:
    shown = copy.deepcopy(stored)
    return shown if version == "v2" else _v1(shown)


def to_v2(sent: Object) -> Object:
    """Return an object of either version in v2, with the defaults of v2."""
    made = copy.deepcopy(sent)
    if sent.get("apiVersion") == "autoscaling/v1":
        made = _v2(made)
    spec = made.get("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu(80)]
    return made


def cpu(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _v1(shown: Object) -> Object:
    shown["apiVersion"] = "autoscaling/v1"
    spec, status, notes = shown["spec"], shown.get("status", {}), dict[str, Any]()
    others: Metrics = []
    for metric in spec.pop("metrics", []):
        percent = metric.get("resource", {}).get("target", {}).get("averageUtilization")
        if percent is None or metric["resource"]["name"] != "cpu":
            others.append(_flat(metric, "target"))
        else:
            spec["targetCPUUtilizationPercentage"] = percent
    if others:
        notes["metrics"] = others
    if (behavior := spec.pop("behavior", None)) is not None:
        notes["behavior"] = _go_behavior(behavior)
    if current := status.pop("currentMetrics", None):
        for metric in current:
            percent = metric.get("resource", {}).get("current", {}).get("averageUtilization")
            if percent is not None and metric["resource"]["name"] == "cpu":
                status["currentCPUUtilizationPercentage"] = percent
        notes["current-metrics"] = [_flat(metric, "current") for metric in current]
    if conditions := status.pop("conditions", None):
        notes["conditions"] = conditions
    if notes:
        texts = {PREFIX + key: json.dumps(note) for key, note in notes.items()}
        shown["metadata"]["annotations"] = {**shown["metadata"].get("annotations", {}), **texts}
    return shown


def _v2(made: Object) -> Object:
    made["apiVersion"] = "autoscaling/v2"
    spec, status = made.get("spec", {}), made.get("status", {})
    annotations = made.get("metadata", {}).get("annotations", {})
    notes = {
        key.removeprefix(PREFIX): json.loads(annotations.pop(key))
        for key in list(annotations)
        if key.startswith(PREFIX)
    }
    if "annotations" in made.get("metadata", {}) and not annotations:
        del made["metadata"]["annotations"]
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [_nested(metric, "target") for metric in notes.get("metrics", [])]
    metrics += [] if percent is None else [cpu(percent)]
    if metrics:
        spec["metrics"] = metrics
    if "behavior" in notes:
        spec["behavior"] = _renamed(notes["behavior"], str.lower)
    percent = status.pop("currentCPUUtilizationPercentage", None)
    if "current-metrics" in notes:
        status["currentMetrics"] = [_nested(one, "current") for one in notes["current-metrics"]]
    elif percent is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": percent}}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    if "conditions" in notes:
        status["conditions"] = notes["conditions"]
    return made


def _source(metric: Object) -> str:
    kind: str = metric["type"]
    return kind[0].lower() + kind[1:]


def _flat(metric: Object, part: str) -> Object:
    """Return a metric of v2 in the format of annotations: `part` is target or current."""
    name = _source(metric)
    source = copy.deepcopy(metric[name])
    values = source.pop(part)
    values.pop("type", None)
    identifier = source.pop("metric", {})
    if "name" in identifier:
        source["metricName"] = identifier["name"]
    if "selector" in identifier:
        key = "metricSelector" if name == "external" else "selector"
        source[key] = identifier["selector"]
    if name == "object":
        source["target"] = source.pop("describedObject")
    for key, value in values.items():
        plain = name == "object" and key == "averageValue"
        source[key if plain else part + key[0].upper() + key[1:]] = value
    return {"type": metric["type"], name: source}


def _nested(metric: Object, part: str) -> Object:
    name = _source(metric)
    source = copy.deepcopy(metric[name])
    if name == "object":
        source["describedObject"] = source.pop("target")
    values: Object = {}
    for key in ("averageUtilization", "averageValue", "value"):
        for written in (part + key[0].upper() + key[1:], key):
            if written in source:
                values[key] = source.pop(written)
    if "metricName" in source:
        identifier = source["metric"] = {"name": source.pop("metricName")}
        for key in ("metricSelector", "selector"):
            if key in source:
                identifier["selector"] = source.pop(key)
    if part == "target":
        kinds = {"averageUtilization": "Utilization", "averageValue": "AverageValue"}
        values["type"] = next((kinds[key] for key in kinds if key in values), "Value")
    source[part] = values
    return {"type": metric["type"], name: source}


def _go_behavior(behavior: Object) -> Object:
    """Return a behavior with the names of the fields in Go, of which absent fields are null."""
    rules = dict.fromkeys(("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"))
    made = {"ScaleUp": None, "ScaleDown": None, **_renamed(behavior, str.upper)}
    return {key: one and {**rules, **one} for key, one in made.items()}


def _renamed(value: Any, first: Callable[[str], str]) -> Any:
    """Return a value without nulls whose keys have another first letter."""
    if isinstance(value, list):
        return [_renamed(one, first) for one in value]
    if isinstance(value, dict):
        given = {key: one for key, one in value.items() if one is not None}
        return {first(key[0]) + key[1:]: _renamed(one, first) for key, one in given.items()}
    return value
