"""The exported Kubernetes objects: valid by its schemas, and restricted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway.cli.manifests.kubernetes import Deployed, ExportedFiles, notes, objects, stream
from gateway.routing.snapshot import Snapshot
from tests.gateway.cli.manifests.rules import RULES, rules

# The oldest Kubernetes release with all used fields, and the newest release in the package.
RELEASES = ("1.33", "1.37")
FILES = ExportedFiles({"gateway.yaml": RULES})
DEPLOYED = Deployed(rules(), FILES, "registry/gateway:1")
FULL = replace(
    DEPLOYED,
    files=ExportedFiles(
        {"gateway.yaml": RULES, "documents/v1.json": "{}"},
        secrets=("keys/token.pem",),
        variables={"STATE_URL": False, "SEPARATOR": True, "GATEWAY_GRACE": True},
        variable_services=frozenset({"two"}),
        variable_state=True,
    ),
    name="api",
    namespace="shop",
    grace=30.5,
)


def made(deployed: Deployed = DEPLOYED) -> dict[str, Any]:
    documents = yaml.safe_load_all(stream(objects(deployed)))
    return {document["kind"]: document for document in documents}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("deployed", [DEPLOYED, FULL], ids=["plain", "full"])
def test_the_objects_are_valid_in_each_kubernetes_release(deployed: Deployed, release: str) -> None:
    found = made(deployed)
    assert list(found) == [
        "ServiceAccount",
        "ConfigMap",
        "Deployment",
        "Service",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "NetworkPolicy",
    ]
    for each in found.values():
        kubernetes_validate.validate(each, release, strict=True)


def test_the_kubernetes_schemas_refuse_unknown_fields() -> None:
    wrong = made()["Deployment"]
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, RELEASES[-1], strict=True)


def test_pods_are_restricted() -> None:
    """The pods follow the restricted profile of the Pod Security Standards."""
    pod = made()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {key for volume in pod["volumes"] for key in volume} - {"name"} == {
        "projected",
        "emptyDir",
    }
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]
    assert {"limits", "requests"} == set(container["resources"])


@pytest.mark.parametrize("deployed", [DEPLOYED, FULL], ids=["plain", "full"])
def test_the_overrides_file_is_on_a_volume(deployed: Deployed) -> None:
    """The rest of the container's file system is read-only."""
    (container,) = made(deployed)["Deployment"]["spec"]["template"]["spec"]["containers"]
    settings = {each["name"]: each.get("value") for each in container["env"]}
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert mounts[str(Path(settings["GATEWAY_OVERRIDES_FILE"]).parent)] == "data"


@pytest.mark.parametrize("deployed", [DEPLOYED, FULL], ids=["plain", "full"])
def test_a_pod_has_enough_time_to_finish_its_requests(deployed: Deployed) -> None:
    pod = made(deployed)["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = {each["name"]: each.get("value") for each in container["env"]}
    leaving = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert float(settings["GATEWAY_GRACE"]) == deployed.grace
    assert pod["terminationGracePeriodSeconds"] > leaving + deployed.grace


def test_probes_ask_the_admin_port() -> None:
    (container,) = made()["Deployment"]["spec"]["template"]["spec"]["containers"]
    paths = {
        kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }
    assert paths == {
        "startup": {"path": "/healthz", "port": "admin"},
        "liveness": {"path": "/healthz", "port": "admin"},
        "readiness": {"path": "/readyz", "port": "admin"},
    }


def test_variables_and_secret_files_are_references_to_the_secret() -> None:
    found = made(FULL)
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    references = [each for each in container["env"] if "valueFrom" in each]
    assert references == [
        {
            "name": name,
            "valueFrom": {"secretKeyRef": {"name": "api", "key": name, "optional": absent}},
        }
        for name, absent in (("STATE_URL", False), ("SEPARATOR", True))
    ]
    (rules_volume, *_) = found["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert rules_volume["projected"]["sources"] == [
        {
            "configMap": {
                "name": "api",
                "items": [
                    {"key": "documents_v1.json", "path": "documents/v1.json"},
                    {"key": "gateway.yaml", "path": "gateway.yaml"},
                ],
            }
        },
        {
            "secret": {
                "name": "api",
                "items": [{"key": "keys_token.pem", "path": "keys/token.pem"}],
            }
        },
    ]


def test_a_changed_configuration_changes_only_the_configmap_and_the_digest() -> None:
    first, again = made(), made(replace(DEPLOYED))
    assert first == again
    other = made(replace(DEPLOYED, files=ExportedFiles({"gateway.yaml": RULES + "# more\n"})))
    assert [kind for kind in first if first[kind] != other[kind]] == ["ConfigMap", "Deployment"]
    template = other["Deployment"]["spec"]["template"]
    note = "version-gateway/rules-sha256"
    template["metadata"]["annotations"][note] = DEPLOYED.digest
    assert other["Deployment"] == first["Deployment"]


def test_the_digest_depends_on_names_and_contents_of_files() -> None:
    digests = {
        replace(DEPLOYED, files=ExportedFiles(files)).digest
        for files in ({"a": "bc"}, {"ab": "c"}, {"a": "b", "c": ""}, {"a": "b"}, {})
    }
    assert len(digests) == 5


SHARED = 'state: "postgresql://127.0.0.1/a"\nservices:'
DOCUMENT = '"3": { service: one, schema: "https://example.com/v3.json" }'


@pytest.mark.parametrize(
    ("deployed", "ports"),
    [
        (DEPLOYED, [8001, 8002, 8003]),
        (replace(DEPLOYED, files=FILES._replace(variable_services=frozenset({"one"}))), None),
        (replace(DEPLOYED, files=FILES._replace(variable_state=True)), None),
        (replace(DEPLOYED, snapshot=rules("services:", SHARED)), None),
        (
            replace(DEPLOYED, snapshot=rules('"3": { service: one }', DOCUMENT)),
            [443, 8001, 8002, 8003],
        ),
        (replace(DEPLOYED, files=FILES._replace(variable_apis=frozenset({"users"}))), None),
    ],
)
def test_the_network_policy_allows_only_known_ports_or_all(
    deployed: Deployed, ports: list[int] | None
) -> None:
    spec = made(deployed)["NetworkPolicy"]["spec"]
    if ports is None:
        assert "egress" not in spec
        assert spec["policyTypes"] == ["Ingress"]
        assert any("outgoing connections open" in note for note in notes(deployed))
    else:
        names, services = spec["egress"]
        assert [each["port"] for each in names["ports"]] == [53, 53]
        assert [each["port"] for each in services["ports"]] == ports
        assert spec["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize(
    ("snapshot", "noted"),
    [(rules(), True), (rules("services:", SHARED), False)],
)
def test_a_note_warns_of_replicas_that_do_not_share_a_state(
    snapshot: Snapshot, noted: bool
) -> None:
    found = notes(replace(DEPLOYED, snapshot=snapshot))
    assert any("each replica counts separately" in note for note in found) == noted


def test_a_note_lists_the_variables_and_files_of_the_secret() -> None:
    found = notes(FULL)
    assert found[:2] == [
        (
            "the Secret 'api' must contain these values, which are not exported: STATE_URL, "
            "SEPARATOR, GATEWAY_GRACE,"
            " keys_token.pem"
        ),
        "these variables have defaults and may be missing in the Secret: SEPARATOR, GATEWAY_GRACE",
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"gateway.yaml": "é" * 524_289}, "have 1048578 bytes, and a ConfigMap can hold 1048576"),
        ({"a/b": "", "a_b": ""}, "differ only in '/' and '_'"),
    ],
)
def test_files_that_do_not_fit_into_a_configmap_are_refused(
    files: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        objects(replace(DEPLOYED, files=ExportedFiles(files)))
