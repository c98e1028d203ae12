"""Official clients of Kubernetes use autoscaling/v1 at a service of autoscaling/v2, and reverse."""

from pathlib import Path

import pytest

from tests.clients.comparison import Client, compare
from tests.clients.kubernetes_api import Kubernetes

PYTHON = Client("kubernetes_python.py")
KUBECTL = Client("kubectl.py")
WRITES = Client("kubernetes_writes.py")
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
    *("create, existing", "create, invalid", "read, missing", "watch, expired", "delete, missing"),
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


MERGED = RULES.replace(
    "      - between: [v1, v2]\n",
    "      - between: [v1, v2]\n"
    "        writes: { without_tag: accept, key: { spec.metrics: [type, resource.name] } }\n",
)
# Without the annotation, clients of v1 see no metric but the CPU.
UNSEEN = MERGED.replace(
    "resource.target.type: Utilization } }", "resource.target.type: Utilization }, others: drop }"
)
UNSEEN = "\n".join(line for line in UNSEEN.split("\n") if "field: spec.metrics, to: 'm" not in line)


@pytest.mark.parametrize("rules", [MERGED, UNSEEN], ids=["in an annotation", "unseen"])
def test_a_memory_metric_stays_after_each_kind_of_write_by_a_client_of_version_1(
    rules: str, tmp_path: Path
) -> None:
    service = Kubernetes("v2")
    before = service.objects["odd", "memory"]["spec"]
    found = compare(tmp_path, rules, (Kubernetes("v1", "v2"), service), WRITES)
    assert found.through == {"merge patch": 61, "JSON patch": 62, "strategic": 63, "PUT": 64}
    for number, changed in enumerate(service.changes[-4:], 61):
        spec = changed["spec"]
        cpu, *others = spec.pop("metrics")
        assert cpu["resource"]["target"]["averageUtilization"] == number
        assert others == before["metrics"][1:]
        assert spec == {key: value for key, value in before.items() if key != "metrics"}
    asked = [one.method for one in found.requests if one.path.endswith("/memory")]
    assert (asked.count("GET"), len(asked)) == (4 + 5, 4 + 5 + 4)
