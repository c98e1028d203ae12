"""Kubernetes: the objects that run the gateway in a cluster by its rules.

Values of environment variables are never written: the rules are exported with the names of their
variables, and pods take the values from a Secret.
"""

import re
from collections.abc import Iterator, Mapping
from math import ceil

from gateway.cli.export.deployed import OPERATOR, Deployed, key_of
from gateway.cli.export.manifest import Manifest, Object

PORT = 8080
_ADMIN = 8090
_USER = 10001  # that of the image
# The seconds in which Service and Gateway take a pod that ends out of their lists, and those that
# the process has beyond its grace.
_LEAVING = 5
_MARGIN = 10
# The bytes of all values of a ConfigMap (Kubernetes API, ConfigMap v1 core).
_MOST = 1024 * 1024
# A key of a ConfigMap or a Secret (likewise).
_LONGEST_KEY = 253
_KEY = re.compile(rf"(?!\.{{1,2}}\Z)[-._A-Za-z0-9]{{1,{_LONGEST_KEY}}}\Z")


def objects(deployed: Deployed) -> list[Manifest]:
    """Return the objects; raises ValueError if the files do not fit into a ConfigMap."""
    return [
        Manifest("serviceaccount", (), _service_account(deployed)),
        Manifest("configmap", (), _config_map(deployed)),
        Manifest("deployment", (), _deployment(deployed)),
        Manifest("service", (), _service(deployed)),
        Manifest("horizontalpodautoscaler", (), _autoscaler(deployed)),
        Manifest("poddisruptionbudget", (), _disruption_budget(deployed)),
        Manifest("networkpolicy", (), _network_policy(deployed)),
    ]


def _service_account(deployed: Deployed) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": deployed.metadata(),
        "automountServiceAccountToken": False,
    }


def _config_map(deployed: Deployed) -> Object:
    size = sum(len(text.encode()) for text in deployed.files.texts.values())
    if size > _MOST:
        raise ValueError(
            f"the rules and the files beside them have {size} bytes, and a ConfigMap takes {_MOST};"
            " name the OpenAPI documents by URL"
        )
    data = {key_of(path): text for path, text in sorted(deployed.files.texts.items())}
    for path in (*deployed.files.texts, *deployed.files.secrets):
        if not _KEY.match(key_of(path)):
            raise ValueError(
                f"{path}: no key of a ConfigMap or a Secret; rename it to letters, digits, '.', '-'"
                f" and '_', {_LONGEST_KEY} at most"
            )
    if len(data) < len(deployed.files.texts):
        raise ValueError("two files beside the rules differ in '/' and '_' alone; rename one")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": deployed.metadata(), "data": data}


def _deployment(deployed: Deployed) -> Object:
    end = ceil(deployed.grace) + _LEAVING + _MARGIN
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": deployed.metadata(),
        # No number of replicas: it belongs to the autoscaler.
        "spec": {
            "selector": {"matchLabels": deployed.labels},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "template": {
                "metadata": {
                    "labels": deployed.labels,
                    "annotations": {"version-gateway/rules-sha256": deployed.digest},
                },
                "spec": {
                    "serviceAccountName": deployed.name,
                    "automountServiceAccountToken": False,
                    # The variables of a Service of this name would be taken for settings.
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": end,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _USER,
                        "runAsGroup": _USER,
                        "fsGroup": _USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": deployed.labels},
                        }
                    ],
                    "containers": [_container(deployed)],
                    "volumes": [
                        {"name": "rules", "projected": {"sources": list(_sources(deployed))}},
                        {"name": "data", "emptyDir": {"sizeLimit": "256Mi"}},
                        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
                    ],
                },
            },
        },
    }


def _container(deployed: Deployed) -> Object:
    # Of a certificate, probes check nothing.
    scheme = {"scheme": "HTTPS"} if deployed.snapshot.admin.tls is not None else {}

    def probe(path: str, period: int, failures: int) -> Object:
        return {
            "httpGet": {"path": path, "port": "admin", **scheme},
            "periodSeconds": period,
            "timeoutSeconds": 3,
            "failureThreshold": failures,
        }

    settings = {
        "GATEWAY_HOST": "0.0.0.0",  # noqa: S104  # of a pod, which its NetworkPolicy guards
        "GATEWAY_PORT": str(PORT),
        "GATEWAY_ADMIN_HOST": "0.0.0.0",  # noqa: S104  # likewise, and by tokens
        "GATEWAY_ADMIN_PORT": str(_ADMIN),
        "GATEWAY_CONFIG": "/config/gateway.yaml",
        "GATEWAY_WORKERS": "1",  # the autoscaler adds pods
        "GATEWAY_GRACE": f"{deployed.grace:g}",
        # What outlives a restart of the container, on a disk that outlives it.
        "GATEWAY_OVERRIDES_FILE": "/data/overrides.json",
    }
    return {
        "name": "gateway",
        "image": deployed.image,
        "command": ["version-gateway"],
        "ports": [
            {"name": "http", "containerPort": PORT, "protocol": "TCP"},
            {"name": "admin", "containerPort": _ADMIN, "protocol": "TCP"},
        ],
        "env": [
            *({"name": name, "value": value} for name, value in settings.items()),
            *_references(deployed, settings),
        ],
        "startupProbe": probe("/healthz", 1, 30),
        "livenessProbe": probe("/healthz", 10, 3),
        "readinessProbe": probe("/readyz", 2, 2),
        # A pod gets requests until all who send them know that it ends.
        "lifecycle": {"preStop": {"sleep": {"seconds": _LEAVING}}},
        "resources": {
            "requests": {"cpu": "250m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "rules", "mountPath": "/config", "readOnly": True},
            {"name": "data", "mountPath": "/data"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # an emptyDir of the pod
        ],
    }


def _references(deployed: Deployed, settings: Mapping[str, str]) -> Iterator[Object]:
    for name, absent in deployed.files.variables.items():
        if name not in settings:
            reference = {"name": deployed.name, "key": name, "optional": absent}
            yield {"name": name, "valueFrom": {"secretKeyRef": reference}}


def _sources(deployed: Deployed) -> Iterator[Object]:
    def items(paths: list[str]) -> list[Object]:
        return [{"key": key_of(path), "path": path} for path in paths]

    yield {"configMap": {"name": deployed.name, "items": items(sorted(deployed.files.texts))}}
    if deployed.files.secrets:
        yield {"secret": {"name": deployed.name, "items": items(sorted(deployed.files.secrets))}}


def _service(deployed: Deployed) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": deployed.metadata(),
        "spec": {
            "type": "ClusterIP",
            "selector": deployed.labels,
            "ports": [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def _autoscaler(deployed: Deployed) -> Object:
    target = {"type": "Utilization", "averageUtilization": 70}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": deployed.metadata(),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": deployed.name,
            },
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def _disruption_budget(deployed: Deployed) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": deployed.metadata(),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": deployed.labels},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _network_policy(deployed: Deployed) -> Object:
    operators = {"podSelector": {"matchLabels": {OPERATOR: "true"}}}
    spec: Object = {
        "podSelector": {"matchLabels": deployed.labels},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": [{"port": "http", "protocol": "TCP"}]},
            {"from": [operators], "ports": [{"port": "admin", "protocol": "TCP"}]},
        ],
    }
    if deployed.egress is not None:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [
            {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
            {"ports": [{"port": port, "protocol": "TCP"} for port in deployed.egress]},
        ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": deployed.metadata(),
        "spec": spec,
    }
