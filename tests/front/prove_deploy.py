"""The files of docs/deploy.md: nginx beside the gateway, and a unit of systemd."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.front.prove_front import executable, running
from tests.gateway.kit import ROOT, held_port, start_program, wait_for

PAGE = (ROOT / "docs" / "deploy.md").read_text()
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def answer(port: int, path: str) -> object:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    body = json.load(connection.getresponse())
    connection.close()
    return body


def test_an_existing_gateway_sends_only_the_old_version_to_the_version_gateway(
    tmp_path: Path,
) -> None:
    executable("nginx")
    with ExitStack() as stack:
        service = start_program(stack, tmp_path / "service", "backend_v2")
        rules = FILES["beside.yaml"].replace(":8002", f":{service.port}")
        folder = tmp_path / "gateway"
        folder.mkdir()
        (folder / "gateway.yaml").write_text(rules)
        gateway = start_program(stack, folder, "gateway")
        port = held_port(stack)
        text = FILES["nginx.conf"].replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        text = text.replace(":8002", f":{service.port}").replace(":8080", f":{gateway.port}")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        own = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
        text = text.replace("http {\n", f"http {{\naccess_log off; {own}\n", 1)
        stack.enter_context(running("nginx", tmp_path, text, port))

        assert answer(port, "/v1/person") == {"name": "Bob Charlie"}
        assert answer(port, "/v2/person") == {"name": {"firstName": "Bob", "lastName": "Charlie"}}
        wait_for(lambda: gateway.log("request"))
        assert [each["path"] for each in gateway.log("request")] == ["/v1/person"]


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / "version-gateway.service"
    program = "/opt/version-gateway/bin/version-gateway"
    unit.write_text(FILES["version-gateway.service"].replace(program, sys.executable))
    command = ["systemd-analyze", "verify", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if "version-gateway" in line]
    assert own == []
