"""The command `export`: the files that it writes, and its errors."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from gateway.cli import parse
from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.authority import Authority
from tests.gateway.cli.manifests.rules import RULES

SECRET = "s3cret-value"  # noqa: S105  # must not be written
# The text that an export appends to a configuration without tokens or sign-on.
ADDED = """\

# Added by the export: the admin port is reachable from outside the pod.
admin:
  tokens:
    operator: { right: operate, token: "${GATEWAY_ADMIN_TOKEN}" }
"""
KINDS = [
    "ServiceAccount",
    "ConfigMap",
    "Deployment",
    "Service",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "NetworkPolicy",
]
FILES = [f"{kind.lower()}.yaml" for kind in KINDS]
# Keys of a configuration that refer to a file and to a variable.
BESIDE = """\
clients:
  by:
    - { jwt: { claim: sub, key_file: keys/token.pem, algorithms: [HS256] } }
    - { api_key: { header: X-Api-Key, keys_file: keys/owners.yaml } }
state: "postgresql://gateway:${STATE_PASSWORD}@db/gateway"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def run(folder: Path, *words: str) -> int:
    return parse(["export", "kubernetes", str(folder / "rules.yaml"), *words])()


def test_without_out_the_objects_are_printed_as_one_stream(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder) == 0
    output, errors = capsys.readouterr()
    documents = list(yaml.safe_load_all(output))
    assert [document["kind"] for document in documents] == KINDS
    assert documents[1]["data"] == {"gateway.yaml": RULES + ADDED}
    assert output.startswith("# Written by version-gateway export kubernetes.\n")
    assert (
        "pods with the label version-gateway/operator: 'true' may access the admin port"
    ) in errors


def test_an_httproute_is_exported_for_the_gateway_api(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--gateway-api", "--parent", "edge/public", "--hostname", "api.example.com")
    assert run(folder, *options, "--name", "api", "--namespace", "shop") == 0
    output, _ = capsys.readouterr()
    (route,) = [each for each in yaml.safe_load_all(output) if each["kind"] == "HTTPRoute"]
    assert route["metadata"]["namespace"] == "shop"
    assert route["spec"]["parentRefs"] == [{"name": "public", "namespace": "edge"}]
    assert route["spec"]["hostnames"] == ["api.example.com"]
    (rule,) = route["spec"]["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    assert rule["backendRefs"] == [{"name": "api", "port": 8080}]


def test_with_out_the_objects_are_files_and_old_ones_are_removed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out" / "objects"
    assert run(folder, "--out", str(out), "--gateway-api") == 0
    assert capsys.readouterr().out == ""
    before = {path.name: path.read_text() for path in out.iterdir()}
    assert set(FILES) < set(before)
    (out / "mine.yaml").write_text("a: 1\n")
    assert run(folder, "--out", str(out), "--gateway-api") == 0
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        **before,
        "mine.yaml": "a: 1\n",
    }
    assert run(folder, "--out", str(out)) == 0  # without routes, so their files are removed
    assert {path.name for path in out.iterdir()} == {*FILES, "mine.yaml"}


def test_values_of_variables_are_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_PASSWORD", SECRET)
    monkeypatch.setenv("TWO", SECRET)
    monkeypatch.setenv("USERS", f"/{SECRET}")
    (folder / "keys").mkdir()
    (folder / "keys" / "token.pem").write_text(SECRET * 4)
    (folder / "keys" / "owners.yaml").write_text(f"acme: {SECRET}")
    rules = RULES.replace("http://two:8002", "http://${TWO}:8002").replace(
        "/users/me", '"${USERS}"'
    )
    (folder / "rules.yaml").write_text(BESIDE + rules)
    assert run(folder, "--gateway-api") == 0
    output, errors = capsys.readouterr()
    assert SECRET not in output + errors
    documents = {each["kind"]: each for each in yaml.safe_load_all(output)}
    assert documents["ConfigMap"]["data"] == {"gateway.yaml": BESIDE + rules + ADDED}
    (container,) = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {each["name"] for each in container["env"] if "valueFrom" in each} == {
        "STATE_PASSWORD",
        "TWO",
        "USERS",
        "GATEWAY_ADMIN_TOKEN",
    }
    secrets = "STATE_PASSWORD, TWO, USERS, GATEWAY_ADMIN_TOKEN, keys_token.pem, keys_owners.yaml"
    assert f"must contain these values, which are not exported: {secrets}" in errors


def test_a_dollar_sign_without_braces_is_not_a_variable(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = RULES.replace("/users/me", "/users/$me").replace("path: /users,", "path: /us$$ers,")
    (folder / "rules.yaml").write_text(rules)
    assert run(folder) == 0
    _, errors = capsys.readouterr()
    assert "must contain these values, which are not exported: GATEWAY_ADMIN_TOKEN\n" in errors


def test_a_file_whose_name_cannot_be_a_key_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "v 3.json").write_text('{"openapi": "3.1.0"}')
    rules = RULES.replace('"3": { service: one', '"3": { service: one, schema: "v 3.json"')
    (folder / "rules.yaml").write_text(rules)
    assert run(folder) == 2
    assert capsys.readouterr().err.startswith("v 3.json: not a valid key of a ConfigMap or Secret;")


def test_a_configuration_that_contains_a_secret_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = RULES + f'admin: {{ tokens: {{ ann: {{ right: read, token: "{SECRET * 2}" }} }} }}\n'
    (folder / "rules.yaml").write_text(rules)
    assert run(folder) == 2
    output, errors = capsys.readouterr()
    assert SECRET not in output + errors
    assert (
        f"contains secrets in plain text, in line {rules.count(chr(10))}, which must not" in errors
    )


def test_a_note_lists_comments_that_may_contain_secrets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rules.yaml").write_text(f"# token: {SECRET}\n{RULES}")
    assert run(folder) == 0
    assert "check that they contain no secret, in line 1\n" in capsys.readouterr().err


def test_configured_tokens_are_exported_instead_of_a_new_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN", SECRET * 2)
    (folder / "token").write_text(SECRET * 3)
    write_certificate(folder)
    rules = f"""\
admin:
  tls: {{ certificate: tls.crt, key: tls.key }}
  tokens:
    ann: {{ right: operate, token: "${{ANN}}" }}
    monitor: {{ right: read, token_file: token }}
{RULES}"""
    (folder / "rules.yaml").write_text(rules)
    assert run(folder) == 0
    output, errors = capsys.readouterr()
    assert SECRET not in output + errors
    documents = {each["kind"]: each for each in yaml.safe_load_all(output)}
    assert documents["ConfigMap"]["data"] == {"gateway.yaml": rules}
    assert (
        "must contain these values, which are not exported: ANN, tls.crt, tls.key, token" in errors
    )
    (container,) = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_ports_and_certificates_of_listen_and_services_are_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GATEWAY_HOST and GATEWAY_PORT would have no effect beside `listen`."""
    authority = Authority(tmp_path / "tls")
    authority.write("api", "api.example.com")
    (tmp_path / "rules.yaml").write_text("""
listen:
  - address: "0.0.0.0:8443"
    tls: { certificates: [ { certificate: tls/api.pem, key: tls/api.key } ] }
  - { address: "0.0.0.0:8081" }
services: { s: { targets: [ "https://orders:8443" ], tls: { ca: tls/ca.pem } } }
apis: { s: { service: s, endpoints: [ { path: /s } ] } }
""")
    assert run(tmp_path, "--gateway-api") == 0
    output, errors = capsys.readouterr()
    documents = {each["kind"]: each for each in yaml.safe_load_all(output)}
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"http-8081": 8081, "http-8443": 8443, "admin": 8090}
    assert not {"GATEWAY_HOST", "GATEWAY_PORT"} & {each["name"] for each in container["env"]}
    service = documents["Service"]["spec"]["ports"]
    assert [(each["port"], each["targetPort"]) for each in service] == [
        (8081, "http-8081"),
        (8443, "http-8443"),
    ]
    ingress = documents["NetworkPolicy"]["spec"]["ingress"][0]["ports"]
    assert [each["port"] for each in ingress] == ["http-8081", "http-8443"]
    (rule,) = documents["HTTPRoute"]["spec"]["rules"]
    assert rule["backendRefs"][0]["port"] == 8081
    (mounted,) = [each for each in pod["volumes"] if each["name"] == "rules"]
    (secret,) = [each["secret"] for each in mounted["projected"]["sources"] if "secret" in each]
    assert [each["path"] for each in secret["items"]] == [
        "tls/api.key",
        "tls/api.pem",
        "tls/ca.pem",
    ]
    assert "GATEWAY_ADMIN_TOKEN, tls_api.pem, tls_api.key, tls_ca.pem" in errors
    for kind in ("Deployment", "Service", "NetworkPolicy"):
        kubernetes_validate.validate(documents[kind], "1.37", strict=True)


@pytest.mark.parametrize(
    "rules",
    [
        "admin: { tls: { certificate: tls.crt, key: tls.key } }\n" + RULES,
        yaml.safe_dump(yaml.safe_load(RULES), default_flow_style=True),
    ],
    ids=["admin is there", "braces"],
)
def test_an_export_to_which_no_token_can_be_added_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], rules: str
) -> None:
    write_certificate(folder)
    (folder / "rules.yaml").write_text(rules)
    assert run(folder) == 2
    assert "configure tokens in 'admin'" in capsys.readouterr().err


def test_documents_and_functions_in_the_configuration_folder_are_exported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "documents").mkdir()
    (folder / "documents" / "v3.json").write_text('{"openapi": "3.1.0"}')
    (folder / "exported_functions.py").write_text("def up(x):\n    return x\n")
    function = '{ python: { up: "exported_functions:up", down: "exported_functions:up" } }'
    rules = RULES.replace("{ rename: { field: title, to: called } }", function)
    rules = rules.replace('"3": { service: one', '"3": { service: one, schema: documents/v3.json')
    (folder / "rules.yaml").write_text(rules)
    assert run(folder) == 0
    documents = {each["kind"]: each for each in yaml.safe_load_all(capsys.readouterr().out)}
    assert documents["ConfigMap"]["data"] == {
        "documents_v3.json": '{"openapi": "3.1.0"}',
        "exported_functions.py": "def up(x):\n    return x\n",
        "gateway.yaml": rules + ADDED,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--name", "Gateway"), "'Gateway' is not a valid object name; use lower-case letters"),
        (("--namespace", "a.b"), "'a.b' is not a valid object name"),
        (("--gateway-api", "--parent", "a/b/c"), "'a/b' is not a valid object name"),
        (("--gateway-api", "--parent", "edge/"), "'/' is not a valid object name"),
        (("--gateway-api", "--hostname", "A b"), "--hostname 'A b': must be a host name in lower"),
        (("--grace", "-1"), "--grace -1: must be from 0 to 86400 seconds"),
    ],
)
def test_an_invalid_option_is_refused_with_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert run(folder, *words) == 2
    output, errors = capsys.readouterr()
    assert not output
    assert errors.startswith(message)
    assert errors.count("\n") == 1


def test_an_error_is_printed_if_the_folder_cannot_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out").write_text("")
    assert run(folder, "--out", str(folder / "out")) == 2
    said = "out cannot be written: File exists; name another folder in --out"
    assert said in capsys.readouterr().err


def test_other_files_in_the_folder_are_kept(folder: Path) -> None:
    """Files of other programs are kept, and so is a folder with the name of a manifest."""
    out = folder / "out"
    (out / "folder.yaml").mkdir(parents=True)
    (out / "bytes.yaml").write_bytes(b"\xff")
    assert run(folder, "--out", str(out)) == 0
    assert {"folder.yaml", "bytes.yaml", "configmap.yaml"} <= {one.name for one in out.iterdir()}


def test_an_invalid_configuration_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rules.yaml").write_text("services: {}\n")
    assert run(folder) == 1
    assert "rules.yaml" in capsys.readouterr().err


def test_a_document_outside_the_configuration_folder_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "v3.json").write_text('{"openapi": "3.1.0"}')
    (folder / "in").mkdir()
    rules = RULES.replace('"3": { service: one', '"3": { service: one, schema: ../v3.json')
    (folder / "in" / "rules.yaml").write_text(rules)
    assert run(folder / "in") == 2
    assert capsys.readouterr().err == (
        "../v3.json is not in the folder of the configuration; put it there to export it\n"
    )


@pytest.mark.parametrize(("what", "begins"), [("grafana", "{"), ("alerts", "# Written by")])
def test_a_dashboard_and_alerts_are_printed_or_written_to_a_file(
    what: str, begins: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", what, str(folder / "rules.yaml")]
    assert parse(words)() == 0
    printed = capsys.readouterr().out
    assert printed.startswith(begins)
    out = folder / "out"
    assert parse([*words, "--out", str(out)])() == 0
    assert out.read_text() == printed
    assert capsys.readouterr().out == ""
    assert parse([*words, "--out", str(folder / "missing" / "out")])() != 0
    said = "cannot be written: No such file or directory; name another file in --out"
    assert said in capsys.readouterr().err


def test_an_objective_of_100_percent_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(["export", "alerts", str(folder / "rules.yaml"), "--objective", "100"])() != 0
    assert "must be above 0 and below 100 percent" in capsys.readouterr().err
