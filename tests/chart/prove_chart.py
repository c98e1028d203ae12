"""The Helm chart: rendered by helm, valid by the schemas of Kubernetes: `make test-chart`."""

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway.rules.load import load_file
from tests.gateway.kit import ROOT

CHART = ROOT / "charts" / "version-gateway"
FULL = Path(__file__).with_name("values.yaml")
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
HELM = os.environ.get("HELM") or shutil.which("helm") or ""
# The API version of ReferenceGrant, HTTPRoute and the objects of the Prometheus operator.
FOREIGN = ("gateway.networking.k8s.io/", "monitoring.coreos.com/")
RELEASES = ("1.30", "1.31", "1.32", "1.33", "1.34")
TOKENS = ("--set", "secret.operatorToken=0123456789abcdef,secret.readToken=123456789abcdef0")

pytestmark = pytest.mark.skipif(not HELM, reason="helm is not installed")


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    # A helm that was built from its Go module has no default release of Kubernetes.
    command = [HELM, *words, "--kube-version", f"{RELEASES[-1]}.0"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def rendered(*words: str) -> dict[str, Any]:
    """Return the objects of the chart by kind, or by kind and name for further ones."""
    done = helm("template", "shop-api", str(CHART), "--namespace", "shop", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = {}
    for each in filter(None, yaml.safe_load_all(done.stdout)):
        key = each["kind"]
        found[f"{key} {each['metadata']['name']}" if key in found else key] = each
    return found


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    return rendered("--values", str(FULL))


@pytest.fixture(scope="module")
def minimal(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The values of the docs and nothing else."""
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(FILES["values.yaml"])
    return rendered("--values", str(values), *TOKENS)


def container(objects: dict[str, Any]) -> Any:
    (found,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


def test_helm_lint_reports_nothing() -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(FULL))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"\[(WARNING|ERROR)\]", done.stdout), done.stdout


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("values", ["minimal", "full"])
def test_the_objects_are_valid_in_each_kubernetes_release(
    values: str, release: str, request: pytest.FixtureRequest
) -> None:
    objects = request.getfixturevalue(values)
    for each in objects.values():
        if not each["apiVersion"].startswith(FOREIGN):
            kubernetes_validate.validate(each, release, strict=True)


def test_the_kubernetes_schemas_refuse_unknown_fields(minimal: dict[str, Any]) -> None:
    wrong = json.loads(json.dumps(minimal["Deployment"]))
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, RELEASES[-1], strict=True)


def test_each_part_of_the_chart_can_be_switched_on(
    minimal: dict[str, Any], full: dict[str, Any]
) -> None:
    needed = {"ServiceAccount", "Secret", "ConfigMap", "Deployment", "Service"}
    needed |= {"Service shop-api-version-gateway-admin", "HorizontalPodAutoscaler"}
    needed |= {"PodDisruptionBudget", "NetworkPolicy"}
    assert set(minimal) == needed
    parts = {"Ingress", "HTTPRoute", "ReferenceGrant", "PodMonitor", "PrometheusRule"}
    assert set(full) - needed == parts | {"ConfigMap shop-api-version-gateway-dashboard"}


@pytest.mark.parametrize("values", ["minimal", "full"])
def test_the_gateway_accepts_the_rendered_configuration(
    values: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The files are laid out as in a pod; the variables are those of the Secret."""
    objects = request.getfixturevalue(values)
    (volume,) = (
        each
        for each in objects["Deployment"]["spec"]["template"]["spec"]["volumes"]
        if each["name"] == "config"
    )
    for source in volume["projected"]["sources"]:
        for item in source.get("configMap", {}).get("items", ()):
            path = tmp_path / item["path"]
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(objects["ConfigMap"]["data"][item["key"]])
    text = (tmp_path / "gateway.yaml").read_text()
    if values == "minimal":
        assert load_file(tmp_path / "gateway.yaml", objects["Secret"]["stringData"]).apis
    loaded = yaml.safe_load(text)
    loaded["admin"].pop("tls", None)  # the certificates are in the cluster
    (tmp_path / "gateway.yaml").write_text(yaml.safe_dump(loaded))
    assert load_file(tmp_path / "gateway.yaml", objects["Secret"]["stringData"]).apis
    assert {"operator", "monitor"} == set(loaded["admin"]["tokens"])


LITERAL = """\
services: { shop: { targets: ["http://shop:8002"] } }
apis:
  shop:
    versions: { 1.9: { via: 1.10 }, 1.10: { service: shop } }
    conversions:
      - between: [1.9, 1.10]
        on: responses
        changes: [ { map: { field: n, values: { yes: no, total: 1.50 }, unknown: keep } } ]
    endpoints: [ { path: "/v{version}/shop", version: { in: path } } ]
"""


def test_the_text_of_a_configuration_reaches_the_pods_as_it_is(tmp_path: Path) -> None:
    """Helm reads values by YAML 1.1, where `on`, `n` and `yes` are booleans and 1.10 is 1.1."""
    (tmp_path / "mine.yaml").write_text(LITERAL)
    objects = rendered(*TOKENS, "--set-file", f"configText={tmp_path / 'mine.yaml'}")
    text = objects["ConfigMap"]["data"]["gateway.yaml"]
    assert text.startswith(LITERAL)
    (tmp_path / "gateway.yaml").write_text(text)
    (api,) = load_file(tmp_path / "gateway.yaml", objects["Secret"]["stringData"]).apis
    assert list(api.versions) == ["1.9", "1.10"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (TOKENS, "configText: no API is configured"),
        (("--set", "config.apis.a.service=s"), "secret.operatorToken: not set; set it to"),
        (("--set", "secret.operatorToken=short"), "operatorToken"),
        (("--set", "secret.stateUrl=state.db"), "stateUrl"),
        (("--set", "replica=2"), "replica"),
        (("--set", "ingress.enabled=true,config.apis.a.service=s", *TOKENS), "ingress.hosts: no"),
        (
            ("--set", "httpRoute.enabled=true,config.apis.a.service=s", *TOKENS),
            "httpRoute.parentRefs: no Gateway",
        ),
    ],
)
def test_mistakes_in_values_are_refused_with_their_place(
    words: tuple[str, ...], message: str
) -> None:
    done = helm("template", "a", str(CHART), *words)
    assert done.returncode != 0
    assert message in done.stderr


def test_own_objects_replace_the_configmap_and_the_secret() -> None:
    objects = rendered("--set", "existingConfigMap=my-rules,secret.existing=my-secret")
    assert "ConfigMap" not in objects
    assert "Secret" not in objects
    assert container(objects)["envFrom"] == [{"secretRef": {"name": "my-secret"}}]
    volumes = objects["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["projected"]["sources"] == [{"configMap": {"name": "my-rules"}}]


def test_pods_follow_the_restricted_pod_security_standard(full: dict[str, Any]) -> None:
    pod = full["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(full)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]
    kinds = {key for volume in pod["volumes"] for key in volume} - {"name"}
    assert kinds == {"projected", "emptyDir"}


def test_a_pod_has_enough_time_to_finish_its_requests(full: dict[str, Any]) -> None:
    settings = {each["name"]: each.get("value") for each in container(full)["env"]}
    leaving = container(full)["lifecycle"]["preStop"]["sleep"]["seconds"]
    pod = full["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > leaving + float(settings["GATEWAY_GRACE"])


@pytest.mark.parametrize(("values", "scheme"), [("minimal", "HTTP"), ("full", "HTTPS")])
def test_probes_use_the_admin_port(
    values: str, scheme: str, request: pytest.FixtureRequest
) -> None:
    found = container(request.getfixturevalue(values))
    paths = {
        kind: found[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }
    probe = {"port": "admin", "scheme": scheme}
    assert paths == {
        "startup": {"path": "/healthz", **probe},
        "liveness": {"path": "/healthz", **probe},
        "readiness": {"path": "/readyz", **probe},
    }


def test_the_autoscaler_alone_sets_the_number_of_pods(full: dict[str, Any]) -> None:
    assert "replicas" not in full["Deployment"]["spec"]
    fixed = rendered("--values", str(FULL), "--set", "autoscaling.enabled=false,replicas=3")
    assert fixed["Deployment"]["spec"]["replicas"] == 3
    assert "HorizontalPodAutoscaler" not in fixed


def test_an_edited_configuration_replaces_no_pod_and_an_edited_secret_does(
    full: dict[str, Any],
) -> None:
    edited = rendered("--values", str(FULL), "--set", "config.workers=2")
    assert edited["ConfigMap"] != full["ConfigMap"]
    assert edited["Deployment"] == full["Deployment"]
    other = rendered("--values", str(FULL), "--set", "secret.values.API_KEY=other-key")
    assert other["Deployment"] != full["Deployment"]


def test_the_network_policy_names_ports_of_pods_and_lets_prometheus_in(
    minimal: dict[str, Any], full: dict[str, Any]
) -> None:
    policy = minimal["NetworkPolicy"]["spec"]
    clients, admin = policy["ingress"]
    assert "from" not in clients
    assert clients["ports"] == [{"port": "http", "protocol": "TCP"}]
    names = {each["name"] for each in container(minimal)["ports"]}
    assert {"http", "admin"} == names
    assert [
        each["namespaceSelector"]["matchLabels"]
        for each in admin["from"]
        if "namespaceSelector" in each
    ] == [{"kubernetes.io/metadata.name": "monitoring"}]
    assert policy["policyTypes"] == ["Ingress"]
    dns, services = full["NetworkPolicy"]["spec"]["egress"]
    assert {each["port"] for each in dns["ports"]} == {53, 5353}
    assert services["ports"] == [{"port": 8002, "protocol": "TCP"}]


def test_a_route_in_another_namespace_gets_a_reference_grant(full: dict[str, Any]) -> None:
    (reference,) = full["HTTPRoute"]["spec"]["rules"][0]["backendRefs"]
    service = full["Service"]
    assert full["HTTPRoute"]["metadata"]["namespace"] == "edge"
    assert (reference["name"], reference["namespace"]) == (service["metadata"]["name"], "shop")
    assert reference["port"] in {each["port"] for each in service["spec"]["ports"]}
    assert full["ReferenceGrant"]["metadata"]["namespace"] == "shop"
    assert full["ReferenceGrant"]["spec"] == {
        "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "edge"}],
        "to": [{"group": "", "kind": "Service", "name": service["metadata"]["name"]}],
    }
    same = rendered("--values", str(FULL), "--set", "httpRoute.namespace=")
    assert "ReferenceGrant" not in same
    assert same["HTTPRoute"]["metadata"]["namespace"] == "shop"


def test_prometheus_reads_the_metrics_with_the_read_token(full: dict[str, Any]) -> None:
    (endpoint,) = full["PodMonitor"]["spec"]["podMetricsEndpoints"]
    credentials = endpoint["authorization"]["credentials"]
    assert credentials["name"] == full["Secret"]["metadata"]["name"]
    assert credentials["key"] in full["Secret"]["stringData"]
    assert (endpoint["port"], endpoint["scheme"]) == ("admin", "https")


def test_alerts_and_dashboard_are_those_of_the_monitoring_folder(full: dict[str, Any]) -> None:
    def expected(name: str) -> str:
        text = (ROOT / "monitoring" / name).read_text()
        return text.replace(
            "https://example.com/version-gateway/docs", "https://docs.example.test/gateway"
        )

    assert full["PrometheusRule"]["spec"] == yaml.safe_load(expected("alerts.yml"))
    data = full["ConfigMap shop-api-version-gateway-dashboard"]["data"]
    assert json.loads(data["version-gateway.json"]) == json.loads(expected("dashboard.json"))


def test_no_alert_or_dashboard_links_to_an_address_that_is_not_configured() -> None:
    objects = rendered("--values", str(FULL), "--set", "docsUrl=")
    assert "example.com" not in json.dumps(objects["PrometheusRule"])
    urls = {
        rule["annotations"]["runbook_url"].partition("#")[0]
        for group in objects["PrometheusRule"]["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert urls == {"docs/alerts.md"}
    (text,) = objects["ConfigMap shop-api-version-gateway-dashboard"]["data"].values()
    dashboard = json.loads(text)
    assert "example.com" not in text
    linked = json.loads((ROOT / "monitoring" / "dashboard.json").read_text())
    for one in (linked, *linked["panels"]):
        one.pop("links", None)
    assert dashboard == linked
