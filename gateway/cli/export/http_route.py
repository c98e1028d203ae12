"""The HTTPRoute of the Gateway API (v1) by which requests reach the gateway in a cluster."""

from dataclasses import dataclass

from gateway.cli.export.deployed import Deployed
from gateway.cli.export.kubernetes_objects import PORT
from gateway.cli.export.manifest import Manifest, Object


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
