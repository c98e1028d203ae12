"""The Kubernetes objects of a deployment, as YAML. Equal configurations give equal files."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from gateway.base.mistakes import ConfigError
from gateway.routing.snapshot import Snapshot
from gateway.rules.document import Data, read
from gateway.rules.load import read_rules
from gateway.rules.redaction import comment_lines, secret_lines
from gateway.rules.root import Config
from gateway.rules.variables import names

Object = dict[str, Any]
# Line breaks of YAML 1.1 other than \n. They must be escaped, or a YAML reader changes them.
_BREAKS = re.compile("[\r\x85\u2028\u2029]")
# Strings that Kubernetes, unlike PyYAML, would read as numbers or booleans if not quoted.
_OTHERWISE = re.compile(r"[-+.]?[0-9]|[yYnN]\Z")


class Manifest(NamedTuple):
    name: str
    comments: tuple[str, ...]
    content: Mapping[str, Any]

    @property
    def text(self) -> str:
        dumped = yaml.dump(
            dict(self.content),
            Dumper=_Dumper,
            sort_keys=False,
            width=100,
            allow_unicode=True,
        )
        return f"{commented(self.comments)}{dumped}"


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as block scalars, and indents lists below their keys."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if _BREAKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif _OTHERWISE.match(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def commented(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def stream(manifests: Sequence[Manifest]) -> str:
    return "---\n".join(manifest.text for manifest in manifests)


_PORTS = {"http": 80, "https": 443}
_APPLICATION = "version-gateway"
OPERATOR = "version-gateway/operator"
"""The label of the pods that may send requests to the admin port."""


class ExportedFiles(NamedTuple):
    """The configuration and the files that it names, as needed by a deployment.

    Attributes:
        texts: The contents of the configuration (`gateway.yaml`) and of the files that it names, by
            relative path.
        secrets: The paths of files with keys or tokens, which are not exported.
        variables: The environment variables, and whether each has a default.
        comments: The numbers of lines with a comment that may contain a secret; empty if there are
            none.
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
    """The input of an export: the configuration, its files, and the names of the objects.

    Attributes:
        files: The files to deploy. A Secret contains the variables and the files with keys.
        grace: The seconds within which requests in flight must end.
    """

    snapshot: Snapshot
    files: ExportedFiles
    image: str
    name: str = "version-gateway"
    namespace: str = ""
    grace: float = 10.0

    @property
    def digest(self) -> str:
        whole = sha256()
        for path, text in sorted(self.files.texts.items()):
            whole.update(sha256(path.encode()).digest() + sha256(text.encode()).digest())
        return whole.hexdigest()

    @property
    def labels(self) -> dict[str, str]:
        return {
            "app.kubernetes.io/name": _APPLICATION,
            "app.kubernetes.io/instance": self.name,
        }

    def metadata(self, name: str = "") -> Object:
        namespace = {"namespace": self.namespace} if self.namespace else {}
        return {"name": name or self.name, **namespace, "labels": self.labels}

    @property
    def shares_state(self) -> bool:
        return (self.snapshot.state or "").startswith("postgresql")

    @property
    def egress(self) -> tuple[int, ...] | None:
        """The ports of services and OpenAPI documents.

        None if the gateway may also connect to ports that are not in the configuration.
        """
        files = self.files
        variable = files.variable_services or files.variable_apis or files.variable_state
        # Webhooks also make the ports unknown, since their receivers are external.
        if variable or self.shares_state or self.snapshot.notify.webhooks:
            return None
        services = self.snapshot.services.values()
        ports = {target.port for service in services for target in service.targets}
        for api in self.snapshot.apis:
            for location in api.schemas.values():  # the OpenAPI documents
                parts = urlsplit(location)
                if parts.scheme:
                    ports.add(parts.port or _PORTS[parts.scheme])
        return tuple(sorted(ports))


def notes(deployed: Deployed) -> list[str]:
    found = []
    needed = [*deployed.files.variables, *(key_of(path) for path in deployed.files.secrets)]
    if needed:
        found.append(
            f"the Secret '{deployed.name}' must contain these values, which are not exported: "
            f"{', '.join(needed)}"
        )
    optional = [name for name, absent in deployed.files.variables.items() if absent]
    if optional:
        found.append(
            f"these variables have defaults and may be missing in the Secret: {', '.join(optional)}"
        )
    if deployed.files.comments:
        found.append(
            "comments in the configuration are exported unchanged: check that they contain no "
            f"secret, in line {deployed.files.comments}"
        )
    if not deployed.shares_state:
        found.append(
            "state is not a postgresql:// URL, so each replica counts separately and loses its "
            "counts with its pod; set state to a postgresql:// URL"
        )
    if deployed.egress is None:
        found.append(
            "the NetworkPolicy leaves outgoing connections open, because the configuration does "
            "not name all ports that the gateway connects to"
        )
    found.append(f"pods with the label {OPERATOR}: 'true' may access the admin port, with a token")
    return found


def key_of(path: str) -> str:
    """Return the key of a file in a ConfigMap or a Secret; keys cannot contain slashes."""
    return path.replace("/", "_")


# The top-level keys of gateway.yaml that do not affect any route.
_APART = frozenset({"state", "fleet", "clients", "workers", "limits", "trusted_proxies", "bypass"})
_APART |= {"admin", "notify", "cors", "listen", "rate_limits"}
# The maximum number of line numbers in a message.
_LISTED = 10
ADMIN_TOKEN = "GATEWAY_ADMIN_TOKEN"  # noqa: S105  # the name of a variable
"""The variable for the admin token that `with_token` adds. Commands also read it."""
_ADDED = f"""\

# Added by the export: the admin port is reachable from outside the pod.
admin:
  tokens:
    operator: {{ right: operate, token: "${{{ADMIN_TOKEN}}}" }}
"""


def exported_files(path: Path) -> ExportedFiles:
    """Return the files to deploy for a valid configuration.

    Raises:
        ConfigError: the configuration cannot be read.
        ValueError: the configuration contains a secret, or a file that it names is in another
            folder or cannot be read. The message is for the operator.
    """
    content = read_rules(path)
    document = read(content, str(path), os.environ)
    folder = path.absolute().parent
    if written := secret_lines(document, Config.model_json_schema()):
        raise ValueError(
            f"{path} contains secrets in plain text, in line {_listed(written)}, which must not"
            " be in a ConfigMap; read them from the environment, ${NAME}"
        )
    documents, modules, keys = _named(document.data)
    texts = {"gateway.yaml": content.decode()}
    for name in documents:
        texts[name] = _beside(folder, name)
    for name in modules:
        source = f"{name.replace('.', '/')}.py"
        if (folder / source).exists():  # otherwise it is an installed module
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
    """Add an admin token from ADMIN_TOKEN; raises ValueError with a message for the operator."""
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
            "the admin port is reachable from outside the pod, and no token can be added to the "
            "configuration; configure tokens in 'admin'"
        )
    return files._replace(
        texts={**files.texts, "gateway.yaml": added},
        variables={**files.variables, ADMIN_TOKEN: False},
    )


def _listed(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:_LISTED]))


def _beside(folder: Path, name: str) -> str:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(
            f"{name} is not in the folder of the configuration; put it there to export it"
        )
    try:
        return (folder / name).read_text()
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from None


def _apis(data: Data) -> set[str]:
    return set(_members(_members(data).get("apis")))


def _members(data: Data) -> Mapping[str, Data]:
    return data if isinstance(data, dict) else {}


# The keys of gateway.yaml that name a file for the Secret.
_SECRET_FILES = frozenset({"key_file", "keys_file", "token_file", "ca"})
_PAIR = frozenset({"certificate", "key"})  # alone, `certificate` names clients


def _named(data: Data) -> tuple[list[str], list[str], list[str]]:
    found: tuple[dict[str, None], ...] = ({}, {}, {})

    def walk(part: Data) -> None:
        members = _members(part)
        for key, value in members.items():
            if isinstance(value, str):
                if key == "schema" and not value.startswith(("http://", "https://")):
                    found[0][value] = None
                elif key in _SECRET_FILES or (key in _PAIR and members.keys() >= _PAIR):
                    found[2][value] = None
            elif key == "python" and isinstance(value, dict):
                for name in (value.get("up"), value.get("down")):
                    found[1][str(name).partition(":")[0]] = None
        for inner in _parts(part):
            walk(inner)

    walk(data)
    documents, modules, keys = (list(names) for names in found)
    return documents, modules, keys


def _parts(part: Data) -> Iterable[Data]:
    if isinstance(part, dict):
        return part.values()
    return part if isinstance(part, list) else ()


_TEMPLATE = Path(__file__).with_name("kubernetes.yaml")
# The seconds in which Services and Gateways stop sending requests to a terminating pod, and the
# seconds that the process has beyond its grace period.
_LEAVING = 5
_MARGIN = 10
# The port for clients, unless `listen` names others.
_PORT = 8080
# The maximum size of all values in a ConfigMap (Kubernetes API, ConfigMap v1 core).
_MOST = 1024 * 1024
# The maximum length of a key in a ConfigMap or a Secret (Kubernetes API, ConfigMap v1 core).
_LONGEST_KEY = 253
_KEY = re.compile(rf"(?!\.{{1,2}}\Z)[-._A-Za-z0-9]{{1,{_LONGEST_KEY}}}\Z")


@dataclass(frozen=True, slots=True)
class Attachment:
    """The Gateway to which the HTTPRoute is attached (Gateway API v1).

    Attributes:
        namespace: The Gateway's namespace; empty for the namespace of the route.
        hostnames: The route's host names; empty for all host names of the Gateway.
    """

    gateway: str
    namespace: str = ""
    hostnames: tuple[str, ...] = ()


def objects(deployed: Deployed, attachment: Attachment | None = None) -> list[Manifest]:
    """Return the objects; raises ValueError if the files do not fit into a ConfigMap.

    Values of environment variables are never written. Pods take them from a Secret.
    """
    template = {each["kind"]: each for each in yaml.safe_load_all(_TEMPLATE.read_text())}
    (container,) = template["Deployment"]["spec"]["template"]["spec"]["containers"]
    settings = {each["name"] for each in container["env"] if isinstance(each, dict)}
    egress = deployed.egress
    listeners = deployed.snapshot.listen
    # Each port has a name, since NetworkPolicies and Services refer to ports by their names.
    ports = {f"http-{each}": each for each in sorted({each.host_and_port[1] for each in listeners})}
    ports = ports or {"http": _PORT}
    values = {
        "name": deployed.name,
        "image": deployed.image,
        "metadata": deployed.metadata(),
        "labels": deployed.labels,
        "operators": {OPERATOR: "true"},
        "digest": deployed.digest,
        "data": _data(deployed.files),
        "grace": f"{deployed.grace:g}",
        "leaving": _LEAVING,
        "termination": ceil(deployed.grace) + _LEAVING + _MARGIN,
        "scheme": None if deployed.snapshot.admin.tls is None else "HTTPS",
        "address": [
            {"name": "GATEWAY_HOST", "value": "0.0.0.0"},  # noqa: S104  # in its own network
            {"name": "GATEWAY_PORT", "value": str(_PORT)},
        ]
        if not listeners
        else None,
        "container_ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()
        ],
        "service_ports": [
            {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
            for name, port in ports.items()
        ],
        "policy_ports": [{"port": name, "protocol": "TCP"} for name in ports],
        "port": next(iter(ports.values())),
        "references": list(_references(deployed, settings)),
        "sources": list(_sources(deployed)),
        "egress_type": None if egress is None else "Egress",
        "egress": None
        if egress is None
        else [
            {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
            {"ports": [{"port": port, "protocol": "TCP"} for port in egress]},
        ],
    }
    if attachment is None:
        del template["HTTPRoute"]
    else:
        values |= {
            "parent": attachment.gateway,
            "parent_namespace": attachment.namespace or None,
            "hostnames": list(attachment.hostnames) or None,
        }
    files = {kind: kind.lower() for kind in template} | {"HTTPRoute": f"httproute-{deployed.name}"}
    return [
        Manifest(files[kind], (), _filled(content, values)) for kind, content in template.items()
    ]


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, str) and part.startswith("$"):
        return values[part[1:]]
    if isinstance(part, dict):
        filled = {key: _filled(inner, values) for key, inner in part.items()}
        return {key: value for key, value in filled.items() if value is not None}
    if isinstance(part, list):
        items = [_filled(inner, values) for inner in part]
        lists = (item if isinstance(item, list) else [item] for item in items if item is not None)
        return [item for each in lists for item in each]
    return part


def _data(files: ExportedFiles) -> Mapping[str, str]:
    size = sum(len(text.encode()) for text in files.texts.values())
    if size > _MOST:
        raise ValueError(
            f"the configuration and its files have {size} bytes, and a ConfigMap can hold {_MOST};"
            " name the OpenAPI documents by URL"
        )
    data = {key_of(path): text for path, text in sorted(files.texts.items())}
    for path in (*files.texts, *files.secrets):
        if not _KEY.match(key_of(path)):
            raise ValueError(
                f"{path}: not a valid key of a ConfigMap or Secret; rename it, using only "
                f"letters, digits, '.', '-'"
                f" and '_', {_LONGEST_KEY} at most"
            )
    if len(data) < len(files.texts):
        raise ValueError(
            "two files next to the configuration differ only in '/' and '_'; rename one of them"
        )
    return data


def _references(deployed: Deployed, settings: Container[str]) -> Iterator[Object]:
    for name, absent in deployed.files.variables.items():
        if name not in settings:
            reference = {"name": deployed.name, "key": name, "optional": absent}
            yield {"name": name, "valueFrom": {"secretKeyRef": reference}}


def _sources(deployed: Deployed) -> Iterator[Object]:
    def items(paths: Iterable[str]) -> list[Object]:
        return [{"key": key_of(path), "path": path} for path in sorted(paths)]

    yield {"configMap": {"name": deployed.name, "items": items(deployed.files.texts)}}
    if deployed.files.secrets:
        yield {"secret": {"name": deployed.name, "items": items(deployed.files.secrets)}}
