"""Official clients of Kubernetes use autoscaling/v1 at a service of autoscaling/v2, and reverse."""

from pathlib import Path

import pytest

from tests.clients.comparison import Client, compare
from tests.clients.kubernetes_api import Kubernetes

PYTHON = Client("kubernetes_python.py")
KUBECTL = Client("kubectl.py")
RULES = Path(__file__).with_name("autoscaling.yaml").read_text()
# The same conversions, for clients of v2 at a service of v1.
REVERSE = RULES.replace("        via: v2\n", "        service: cluster\n").replace(
    "v2: { service: cluster }", "v2: { via: v1 }"
)
# Bodies of the type application/apply-patch+yaml pass unchanged.
APPLIED = {
    "apply, server-side",
    "apply, server-side, forced",
}
RAISED = {
    "create, existing",
    "create, invalid",
    "read, missing",
    "watch, expired",
    "delete, missing",
}


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("served", ["v1", "v2"])
def test_every_call_of_the_python_client_returns_the_result_of_the_version(
    served: str, version: str, tmp_path: Path
) -> None:
    services = Kubernetes("v1", "v2"), Kubernetes(served)
    found = compare(tmp_path, RULES if served == "v2" else REVERSE, services, PYTHON, version)
    assert found.raised == RAISED
    assert all(f"/autoscaling/{served}/" in request.path for request in found.requests)
    if version == served[1:]:
        assert found.different == {}
    else:
        # A JSON Patch names an element by its position, which the gateway does not know.
        assert found.different.keys() == {"JSON patch a metric", "server-side apply"}
        assert found.different["JSON patch a metric"]["status"] == 400


def test_every_command_of_kubectl_has_the_result_of_version_1(tmp_path: Path) -> None:
    found = compare(tmp_path, RULES, (Kubernetes("v2", "v1"), Kubernetes("v2")), KUBECTL)
    assert not any(request.path.startswith("/apis/autoscaling/v1") for request in found.requests)
    # The service names the version in which it stores the fields of a manager.
    assert found.different.keys() == {"JSON patch of the metric", "managed fields"} | APPLIED
    (refusal,) = found.different["JSON patch of the metric"]["errors"]
    assert refusal.startswith(
        "Error from server (BadRequest): The request does not fit this version"
    )
