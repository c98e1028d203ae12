"""What is deployed to a cluster: the rules, the files and the variables that they name."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from gateway.base.mistakes import ConfigError
from gateway.cli.manifests.manifest import Manifest, Object
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import read_rules
from gateway.rules.root import Config
from gateway.rules.source import Data, read
from gateway.rules.variables import names
from gateway.rules.written_secrets import comment_lines, secret_lines

_PORTS = {"http": 80, "https": 443}
_APPLICATION = "version-gateway"
OPERATOR = "version-gateway/operator"
"""The label of the pods that may ask the admin port."""


class ExportedFiles(NamedTuple):
    """What a deployment needs of a file of rules and of the files that it names.

    Attributes:
        texts: The rules, as `gateway.yaml`, and the files beside them, by relative path.
        secrets: The relative paths of the files that hold keys.
        variables: The variables of the rules, each with whether it may be unset.
        variable_services: The services that are written with variables.
        variable_apis: The APIs that are written with variables, other than in conversions.
        variable_state: Whether the place of the state is written with variables.
        comments: The lines of the rules whose comment may hold a secret; empty if none does.
    """

    texts: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    variables: Mapping[str, bool] = MappingProxyType({})
    variable_services: frozenset[str] = frozenset()
    variable_apis: frozenset[str] = frozenset()
    variable_state: bool = False
    comments: str = ""


@dataclass(frozen=True, slots=True)
class Deployed:
    """What is deployed, and under which names.

    Attributes:
        snapshot: The rules.
        files: What the rules name; the Secret holds the files with keys and the variables.
        name: The name of the objects, and of the Secret.
        namespace: The namespace of the objects; empty leaves it to kubectl.
        image: The image of the gateway.
        grace: The seconds in which requests in flight may end.
    """

    snapshot: Snapshot
    files: ExportedFiles
    image: str
    name: str = "version-gateway"
    namespace: str = ""
    grace: float = 10.0

    @property
    def digest(self) -> str:
        """The hash of the rules and of the files beside them."""
        whole = sha256()
        for path, text in sorted(self.files.texts.items()):
            whole.update(sha256(path.encode()).digest() + sha256(text.encode()).digest())
        return whole.hexdigest()

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which the pods are found."""
        return {
            "app.kubernetes.io/name": _APPLICATION,
            "app.kubernetes.io/instance": self.name,
        }

    def metadata(self, name: str = "") -> Object:
        """Return the metadata of an object."""
        namespace = {"namespace": self.namespace} if self.namespace else {}
        return {"name": name or self.name, **namespace, "labels": self.labels}

    @property
    def shares_state(self) -> bool:
        """Whether the replicas share their state."""
        return (self.snapshot.state or "").startswith("postgresql")

    @property
    def egress(self) -> tuple[int, ...] | None:
        """The ports of services and documents; None where they are not all written in the rules."""
        files = self.files
        variable = files.variable_services or files.variable_apis or files.variable_state
        # Receivers of word are chats and the like, somewhere else.
        if variable or self.shares_state or self.snapshot.notify.webhooks:
            return None
        services = self.snapshot.services.values()
        ports = {target.port for service in services for target in service.targets}
        for api in self.snapshot.apis:
            for location in api.schemas.values():  # OpenAPI documents, which `verify` reads too
                parts = urlsplit(location)
                if parts.scheme:
                    ports.add(parts.port or _PORTS[parts.scheme])
        return tuple(sorted(ports))


def notes(deployed: Deployed) -> list[str]:
    """Return what an operator has to know or to do."""
    found = []
    needed = [*deployed.files.variables, *(key_of(path) for path in deployed.files.secrets)]
    if needed:
        found.append(
            f"the Secret '{deployed.name}' holds what is not exported: {', '.join(needed)}"
        )
    optional = [name for name, absent in deployed.files.variables.items() if absent]
    if optional:
        found.append(f"these have defaults, and the Secret may lack them: {', '.join(optional)}")
    if deployed.files.comments:
        found.append(
            "comments of the rules are exported as they are: look whether they hold a secret, in"
            f" line {deployed.files.comments}"
        )
    if not deployed.shares_state:
        found.append(
            "state is no postgresql:// URL, so that each replica counts for itself and forgets with"
            " its pod; name one in state"
        )
    if deployed.egress is None:
        found.append(
            "the NetworkPolicy leaves outgoing connections open, because not all ports that are"
            " asked are written in the rules"
        )
    found.append(f"pods with the label {OPERATOR}: 'true' may ask the admin port, with a token")
    return found


def key_of(path: str) -> str:
    """Return the key of a file in a ConfigMap or a Secret, which cannot hold a slash."""
    return path.replace("/", "_")


# The parts of the rules that no route depends on.
_APART = frozenset({"state", "fleet", "clients", "workers", "limits", "trusted_proxies", "bypass"})
_APART |= {"admin", "notify", "cors"}
# So many lines are named.
_LISTED = 10
ADMIN_TOKEN = "GATEWAY_ADMIN_TOKEN"  # noqa: S105  # the name of a variable
"""The variable with the token of the admin port that an export adds; commands send it."""
_ADDED = f"""\

# Added by the export: others than the pod reach its admin port.
admin:
  tokens:
    operator: {{ right: operate, token: "${{{ADMIN_TOKEN}}}" }}
"""


def exported_files(path: Path) -> ExportedFiles:
    """Return what to deploy of a file of rules that can be loaded.

    Raises:
        ConfigError: the file cannot be read.
        ValueError: it has a secret written out, or a file beside it lies in another folder, or
            cannot be read; the text is for the operator.
    """
    content = read_rules(path)
    document = read(content, str(path), os.environ)
    folder = path.absolute().parent
    if written := secret_lines(document, Config.model_json_schema()):
        raise ValueError(
            f"{path} has secrets written out, in line {_listed(written)}, and a ConfigMap is no"
            " place for them; take them from the environment, ${NAME}"
        )
    documents, modules, keys = _named(document.data)
    texts = {"gateway.yaml": content.decode()}
    for name in documents:
        texts[name] = _beside(folder, name)
    for name in modules:
        source = f"{name.replace('.', '/')}.py"
        if (folder / source).exists():  # otherwise it is installed
            texts[source] = _beside(folder, source)
    for name in keys:
        _beside(folder, name)
    services, apis = set(), set()
    for location in document.texts:
        if location[0] == "services":
            services.add(str(location[1]))
        elif location[0] == "apis" and "conversions" not in location:
            apis.add(str(location[1]))
        elif location[0] not in _APART:
            apis |= _apis(document.data)
    return ExportedFiles(
        texts,
        tuple(keys),
        names(written for _, written in document.texts.values()),
        frozenset(services),
        frozenset(apis),
        ("state",) in document.texts,
        _listed(comment_lines(content.decode())),
    )


def with_token(files: ExportedFiles) -> ExportedFiles:
    """Return the files with a token of the admin port, from the variable ADMIN_TOKEN.

    Raises:
        ValueError: nothing can be added to the rules; the text is for the operator.
    """
    text = files.texts["gateway.yaml"]
    added = text + ("" if text.endswith("\n") else "\n") + _ADDED
    try:
        before = read(text.encode(), "gateway.yaml", os.environ).data
        after = read(added.encode(), "gateway.yaml", {**os.environ, ADMIN_TOKEN: "x" * 16}).data
    except ConfigError:
        before = after = None
    known = {name: value for name, value in _members(after).items() if name != "admin"}
    if "admin" in _members(before) or not known or known != _members(before):
        raise ValueError(
            "others than the pod reach its admin port, and no token can be added to the rules; name"
            " tokens in 'admin'"
        )
    return files._replace(
        texts={**files.texts, "gateway.yaml": added},
        variables={**files.variables, ADMIN_TOKEN: False},
    )


def _listed(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:_LISTED]))


def _beside(folder: Path, name: str) -> str:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"{name} is not in the folder of the rules; put it there to export it")
    try:
        return (folder / name).read_text()
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from None


def _apis(data: Data) -> set[str]:
    return set(_members(_members(data).get("apis")))


def _members(data: Data) -> Mapping[str, Data]:
    return data if isinstance(data, dict) else {}


def _named(data: Data) -> tuple[list[str], list[str], list[str]]:
    """Return the documents, the modules and the key files that rules name, each once."""
    found: tuple[dict[str, None], ...] = ({}, {}, {})

    def walk(part: Data) -> None:
        for key, value in part.items() if isinstance(part, dict) else ():
            if isinstance(value, str):
                if key == "schema" and not value.startswith(("http://", "https://")):
                    found[0][value] = None
                elif key in ("key_file", "token_file"):
                    found[2][value] = None
            elif key == "python" and isinstance(value, dict):
                for name in (value.get("up"), value.get("down")):
                    found[1][str(name).partition(":")[0]] = None
        for inner in _parts(part):
            walk(inner)

    walk(data)
    tls = _members(_members(_members(data).get("admin")).get("tls"))
    found[2].update({str(name): None for name in tls.values()})
    documents, modules, keys = (list(names) for names in found)
    return documents, modules, keys


def _parts(part: Data) -> Iterable[Data]:
    if isinstance(part, dict):
        return part.values()
    return part if isinstance(part, list) else ()


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


@dataclass(frozen=True, slots=True)
class Attachment:
    """The Gateway that serves the route.

    Attributes:
        gateway: Its name.
        namespace: Its namespace; empty for that of the route.
        hostnames: The host names of the route; empty for all of the Gateway's.
    """

    gateway: str
    namespace: str = ""
    hostnames: tuple[str, ...] = ()


def http_route(deployed: Deployed, attachment: Attachment) -> Manifest:
    """Return the HTTPRoute that sends every request to the gateway."""
    parent = {"name": attachment.gateway}
    if attachment.namespace:
        parent["namespace"] = attachment.namespace
    hostnames = {"hostnames": list(attachment.hostnames)} if attachment.hostnames else {}
    rule: Object = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": [{"name": deployed.name, "port": PORT}],
        "timeouts": {"request": "0s"},  # the gateway has time-outs of its own, by service
    }
    content: Object = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": deployed.metadata(),
        "spec": {"parentRefs": [parent], **hostnames, "rules": [rule]},
    }
    return Manifest(f"httproute-{deployed.name}", (), content)
