"""What is deployed to a cluster: the rules, the files and the variables that they name."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from gateway.cli.export.manifest import Object
from gateway.routing.snapshot import Snapshot

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
