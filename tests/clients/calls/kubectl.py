"""Calls the Kubernetes API with kubectl and manifests of autoscaling/v1: `kubectl.py BASE_URL`."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.calls.annotations import opened
from tests.clients.calls.report import report

(BASE,) = sys.argv[1:]
CACHE = tempfile.mkdtemp()
KUBECTL = str(Path(sys.executable).with_name("kubectl"))
COMMON = (f"--server={BASE}", "--kubeconfig=/dev/null", f"--cache-dir={CACHE}", "--namespace=shop")
SCALERS = "horizontalpodautoscalers.v1.autoscaling"
VALIDATED = "--validate=strict"
KLOG = re.compile(r"^[IWE]\d{4} .*\n", re.MULTILINE)  # has times and process ids


def run(*arguments: str, text: str = "", **spec: Any) -> Any:
    """Run kubectl with a manifest on its input; return its output, as a document if it is JSON."""
    manifest = text or json.dumps(scaler(**spec))
    with subprocess.Popen(
        [KUBECTL, *COMMON, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        output, errors = process.communicate(manifest, timeout=20)
    try:
        shown = opened(json.loads(output))
    except ValueError:
        shown = output.replace("\t", " ").splitlines()
    return {
        "status": process.returncode,
        "output": shown,
        "errors": KLOG.sub("", errors).splitlines()[:3],
    }


def scaler(name: str = "new", **spec: Any) -> dict[str, Any]:
    reference = {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}
    metadata = {"name": name, "namespace": "shop", "labels": {"app": "web"}}
    given = {"maxReplicas": 4, "targetCPUUtilizationPercentage": 70, **spec}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": {"scaleTargetRef": reference, **given},
    }


def shown(name: str = "new", *options: str) -> Any:
    return run("get", SCALERS, name, "--output=json", *options)


def patched(kind: str, patch: Any, name: str = "a") -> Any:
    text = json.dumps(patch)
    return run("patch", SCALERS, name, f"--type={kind}", f"--patch={text}", "--output=json")


def watched(*options: str) -> Any:
    """Return the output of a watch, during which an object changes, up to the end of the stream."""
    command = [KUBECTL, *COMMON, "get", SCALERS, "--watch", "--output-watch-events", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(2)]
        patched("merge", {"spec": {"maxReplicas": 9}}, "b")
        return [*first, *process.stdout.read().splitlines(keepends=True)]


def server_side(manager: str, *options: str, **spec: Any) -> Any:
    manager = f"--field-manager={manager}"
    return run("apply", "--server-side", manager, "--output=json", "--filename=-", *options, **spec)


METRIC = [{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 65}]

report(
    {
        "get a table": lambda: run("get", SCALERS),
        "get": lambda: shown("a"),
        "get, in pages": lambda: run("get", SCALERS, "--chunk-size=2", "--output=json"),
        "get, missing": lambda: run("get", SCALERS, "none"),
        "get other metrics": lambda: shown("memory", "--namespace=odd"),
        "explain": lambda: run(
            "explain", "horizontalpodautoscalers.spec", "--api-version=autoscaling/v1"
        ),
        "create, dry run": lambda: run("create", "--dry-run=server", VALIDATED, "--filename=-"),
        "apply": lambda: run("apply", VALIDATED, "--filename=-"),
        "diff": lambda: run("diff", "--filename=-", maxReplicas=6)["status"],
        "apply a change": lambda: run(
            "apply", "--filename=-", maxReplicas=6, targetCPUUtilizationPercentage=75
        ),
        "apply again": lambda: run(
            "apply", "--filename=-", maxReplicas=6, targetCPUUtilizationPercentage=75
        ),
        "get what was applied": shown,
        "apply an unknown field": lambda: run("apply", VALIDATED, "--filename=-", maxReplica=1),
        "merge patch": lambda: patched("merge", {"spec": {"maxReplicas": 7}}),
        "strategic merge patch": lambda: patched(
            "strategic", {"spec": {"targetCPUUtilizationPercentage": 55}}
        ),
        "JSON patch": lambda: patched(
            "json", [{"op": "replace", "path": "/spec/maxReplicas", "value": 8}]
        ),
        "annotate": lambda: run("annotate", SCALERS, "a", "team=red", "--output=json"),
        "label": lambda: run("label", SCALERS, "a", "team=red", "--output=json"),
        "replace": lambda: run("replace", "--filename=-", "--output=json", name="c"),
        "wait": lambda: run("wait", "--for=jsonpath={.spec.maxReplicas}=8", f"{SCALERS}/a"),
        "watch tables": watched,
        "watch": lambda: watched("--output=jsonpath={.type} {.object.apiVersion} {.object.spec}\n"),
        "delete, dry run": lambda: run("delete", SCALERS, "c", "--dry-run=server"),
        "delete": lambda: run("delete", SCALERS, "c"),
        "delete, missing": lambda: run("delete", SCALERS, "c"),
        "JSON patch of the metric": lambda: patched("json", METRIC),
        "apply, server-side": lambda: server_side("first", maxReplicas=4),
        "apply, server-side, in conflict": lambda: server_side("second", maxReplicas=6),
        "apply, server-side, forced": lambda: server_side(
            "second", "--force-conflicts", maxReplicas=6
        ),
        "managed fields": lambda: shown("new", "--show-managed-fields"),
    }
)
