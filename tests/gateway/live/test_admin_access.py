"""The admin port with TLS and tokens, asked by the commands of an operator."""

import json
import subprocess
import sys
from pathlib import Path

from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.kit import ROOT, Program, StartGateway, rules, wait_for

ANN, MONITOR = "ann-0123456789abcdef", "monitor-0123456789abcdef"


def run(program: Program, words: str, **variables: str) -> tuple[int, str]:
    """Run a command beside a gateway; return its status and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words.split()],
        env={"PYTHONPATH": str(ROOT), "GATEWAY_ADMIN_PORT": str(program.admin), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_commands_with_tokens_over_tls(gateway: StartGateway, tmp_path: Path) -> None:
    files = write_certificate(tmp_path)
    (tmp_path / "token").write_text(f"{MONITOR}\n")
    brownout = '"2": { service: s, brownout: { percent: 100 } }'
    program = gateway(
        f"""\
admin:
  tls: {{ certificate: {files.certificate}, key: {files.key} }}
  tokens:
    ann: {{ right: operate, token: "${{ANN}}" }}
    monitor: {{ right: read, token_file: {tmp_path / "token"} }}
{rules(1).replace('"2": { service: s }', brownout)}""",
        ANN=ANN,
    )
    assert program.log("listening")[0]["admin"].startswith("https://127.0.0.1:")
    tls = {"GATEWAY_ADMIN_CA": files.certificate}
    monitor = {**tls, "GATEWAY_ADMIN_TOKEN_FILE": str(tmp_path / "token")}
    pause = "brownout pause person 2 --why trial"

    assert run(program, "brownout show person 2", **monitor)[0] == 0
    assert run(program, pause, **monitor) == (
        2,
        "monitor has no right to operate; ask by a token with the right to operate\n",
    )
    status, said = run(program, pause, **tls)
    assert (status, "GATEWAY_ADMIN_TOKEN" in said) == (2, True)
    status, said = run(program, pause, **tls, GATEWAY_ADMIN_TOKEN=ANN[1:])
    assert (status, "none of 'admin'" in said) == (2, True)
    assert run(program, pause, **tls, GATEWAY_ADMIN_TOKEN=ANN)[0] == 0
    status, said = run(program, "fleet audit --json", **monitor)
    (entry,) = json.loads(said)
    assert (entry["who"], entry["why"]) == ("ann", "trial")

    for authority, reason in (
        ("", "if it uses TLS, set GATEWAY_ADMIN_CA"),
        ("system", "GATEWAY_ADMIN_CA names the file of its authority"),
    ):
        status, said = run(program, pause, GATEWAY_ADMIN_CA=authority)
        assert (status, reason in said) == (2, True), said
    status, said = run(program, pause, GATEWAY_ADMIN_CA=str(tmp_path / "none"))
    assert (status, "none: No such file or directory; name the" in said) == (2, True), said
    status, said = run(program, pause, GATEWAY_ADMIN_CA=str(tmp_path / "token"))
    assert (status, "token: it has no certificate as PEM; name the" in said) == (2, True), said
    status, said = run(program, pause, **tls, GATEWAY_ADMIN_TOKEN_FILE=str(tmp_path / "none"))
    absent = f"GATEWAY_ADMIN_TOKEN_FILE={tmp_path / 'none'}: No such file or directory; name a"
    assert (status, said.startswith(absent)) == (2, True), said
    plain = gateway(rules(1))
    status, said = run(plain, "usage", GATEWAY_ADMIN_CA="system")
    assert (status, "if it uses none, unset GATEWAY_ADMIN_CA" in said) == (2, True), said

    renewed = write_certificate(tmp_path)
    wait_for(lambda: program.log("admin_tls_loaded"))
    assert run(program, "brownout show person 2", **monitor)[0] == 0
    assert renewed == files
    assert ANN not in program.output.read_text()
