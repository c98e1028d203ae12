"""The admin port with TLS and tokens, used by operator commands."""

import json
import re
import socket
from collections import Counter
from pathlib import Path

from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.kit import Program, StartGateway, rules, run_command, wait_for

ANN, MONITOR = "ann-0123456789abcdef", "monitor-0123456789abcdef"


def test_operator_commands_work_with_tokens_over_tls(gateway: StartGateway, tmp_path: Path) -> None:
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

    assert run_command(program, "brownout show person 2", **monitor)[0] == 0
    assert run_command(program, pause, **monitor) == (
        2,
        "monitor has no right to operate; use a token with the right to operate\n",
    )
    status, said = run_command(program, pause, **tls)
    assert (status, "GATEWAY_ADMIN_TOKEN" in said) == (2, True)
    status, said = run_command(program, pause, **tls, GATEWAY_ADMIN_TOKEN=ANN[1:])
    assert (status, "not listed under 'admin'" in said) == (2, True)
    assert run_command(program, pause, **tls, GATEWAY_ADMIN_TOKEN=ANN)[0] == 0
    status, said = run_command(program, "fleet audit --json", **monitor)
    (entry,) = json.loads(said)
    assert (entry["who"], entry["why"]) == ("ann", "trial")

    for authority, reason in (
        ("", "if it uses TLS, set GATEWAY_ADMIN_CA"),
        ("system", "set GATEWAY_ADMIN_CA to the file of its authority"),
    ):
        status, said = run_command(program, pause, GATEWAY_ADMIN_CA=authority)
        assert (status, reason in said) == (2, True), said
    status, said = run_command(program, pause, GATEWAY_ADMIN_CA=str(tmp_path / "none"))
    assert (status, "none: No such file or directory; name the" in said) == (2, True), said
    status, said = run_command(program, pause, GATEWAY_ADMIN_CA=str(tmp_path / "token"))
    assert (status, "token: it contains no PEM certificate; name the" in said) == (2, True), said
    status, said = run_command(
        program, pause, **tls, GATEWAY_ADMIN_TOKEN_FILE=str(tmp_path / "none")
    )
    absent = f"GATEWAY_ADMIN_TOKEN_FILE={tmp_path / 'none'}: No such file or directory; name a"
    assert (status, said.startswith(absent)) == (2, True), said
    plain = gateway(rules(1))
    status, said = run_command(plain, "usage", GATEWAY_ADMIN_CA="system")
    assert (status, "if it uses none, unset GATEWAY_ADMIN_CA" in said) == (2, True), said

    renewed = write_certificate(tmp_path)
    wait_for(lambda: program.log("config_loaded"))
    assert run_command(program, "brownout show person 2", **monitor)[0] == 0
    assert renewed == files
    assert ANN not in program.output.read_text()


def statuses(program: Program, address: str, token: str, times: int = 1) -> list[str]:
    line = f"GET /versions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    asked = f"{line}\r\n" * (times - 1) + f"{line}Connection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", program.admin), 60, (address, 0)) as sent:
        sent.sendall(asked.encode())
        answered = sent.makefile("rb").read()
    return re.findall(r"HTTP/1\.1 (\d+) ", answered.decode())


def test_wrong_tokens_from_many_addresses_are_bounded_and_logged(gateway: StartGateway) -> None:
    """After 1,024 addresses with 20 attempts each, all other addresses share 20 more."""
    program = gateway(
        f"admin: {{ tokens: {{ ann: {{ right: operate, token: '${{ANN}}' }} }} }}\n{rules(1)}",
        ANN=ANN,
    )
    few = Counter(statuses(program, "127.0.0.9", ANN[1:], 25))
    assert few["401"] in (20, 21)
    assert few["429"] == 25 - few["401"]
    assert statuses(program, "127.0.0.9", ANN) == ["200"]
    for number in range(1023):  # five attempts are available again after 15 s
        address = f"127.1.{number // 250}.{number % 250 + 1}"
        assert statuses(program, address, ANN[1:], 5) == ["401"] * 5
    others = [statuses(program, f"127.2.0.{number}", ANN[1:]) for number in range(1, 61)]
    assert others.count(["429"]) >= 30
    assert statuses(program, "127.2.0.1", ANN) == ["200"]
    limited = wait_for(lambda: len(found := program.log("admin_tries_limited")) == 2 and found)
    assert [line["peer"] for line in limited] == ["127.0.0.9", "other addresses"]
