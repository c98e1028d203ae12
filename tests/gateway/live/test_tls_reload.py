"""Reloads of certificates, keys and configuration while clients and services use TLS."""

import asyncio
import ssl
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from gateway.http.certificates import server_context
from tests.gateway.authority import Authority
from tests.gateway.kit import (
    DEADLINE,
    Program,
    StartGateway,
    StartUpstream,
    assert_sound,
    rules,
    run_command,
)
from tests.gateway.live.bounds import metric
from tests.gateway.talk import OK, ask, connect, soon


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "tls")
    made.write("api", "localhost", "0.example.com")
    made.write("gateway", "gateway.example.com")
    return made


def configuration(authority: Authority, port: int) -> str:
    folder = authority.folder
    pair = f"certificate: {folder}/api.pem, key: {folder}/api.key"
    own = f"certificate: {folder}/gateway.pem, key: {folder}/gateway.key"
    text = rules(port, extra=f", tls: {{ ca: {authority.file}, {own} }}")
    section = f'listen: [ {{ address: "127.0.0.1:0", tls: {{ certificates: [{{ {pair} }}] }} }} ]'
    text = text.replace("http://127.0.0.1", "https://localhost")
    return f"{section}\n{text}"


class Clients:
    def __init__(self, program: Program, context: ssl.SSLContext) -> None:
        self.program, self.context = program, context
        self.statuses: Counter[int | str] = Counter()
        self.over = False

    async def keep(self) -> None:
        try:
            async with connect(self.program, tls=self.context) as client:
                while not self.over:
                    client.send(ask("GET /plain"))
                    self.statuses[(await client.answer()).status] += 1
                    await asyncio.sleep(0.002)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.statuses[repr(error)] += 1

    async def reconnect(self) -> None:
        while not self.over:
            try:
                async with connect(self.program, tls=self.context) as client:
                    client.send(ask("GET /plain"))
                    self.statuses[(await client.answer()).status] += 1
            except (OSError, asyncio.IncompleteReadError) as error:
                self.statuses[repr(error)] += 1
            await asyncio.sleep(0.01)


async def names(program: Program, context: ssl.SSLContext) -> set[str]:
    found: set[str] = set()
    for _ in range(6):
        async with connect(program, tls=context) as client:
            certificate = client.writer.get_extra_info("peercert")
            found |= {name for _, name in certificate["subjectAltName"]}
    return found - {"localhost"}


@pytest.mark.parametrize("times", [5, pytest.param(100, marks=pytest.mark.slow)])
async def test_no_request_fails_while_certificates_and_rules_are_reloaded(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority, times: int
) -> None:
    server = server_context(
        authority.issue("localhost"), client_ca=authority.pem, client_required=True
    )
    text = configuration(authority, (await upstream(OK, tls=server)).port)
    program = gateway(text, GATEWAY_WORKERS="2")
    context = ssl.create_default_context(cafile=authority.file)
    clients = Clients(program, context)
    async with asyncio.TaskGroup() as group:
        for client in (clients.keep, clients.keep, clients.keep, clients.reconnect):
            group.create_task(client())
        for number in range(1, times + 1):
            authority.write("api", "localhost", f"{number}.example.com")
            authority.write("gateway", f"gateway-{number}.example.com")
            changed = f"# {number}\n{text}"
            await asyncio.to_thread(program.reload, changed)
            assert await names(program, context) == {f"{number}.example.com"}
        clients.over = True
    assert set(clients.statuses) == {200}
    assert clients.statuses[200] > 10 * times
    assert_sound(program)


@pytest.mark.parametrize("broken", ["api.key", "ca.pem"])
async def test_an_invalid_file_leaves_the_previous_one_in_force(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority, broken: str
) -> None:
    server = server_context(authority.issue("localhost"))
    text = configuration(authority, (await upstream(OK, tls=server)).port)
    program = gateway(text, GATEWAY_WORKERS="2")
    context = ssl.create_default_context(cafile=authority.file)
    valid = (authority.folder / broken).read_bytes()
    (authority.folder / broken).write_bytes(valid[:100])
    await soon(lambda: metric(program, 'gateway_reloads_total{result="rejected"}'))
    issue = program.log("config_rejected")[0]["issue"]
    assert "cannot be used" in issue
    assert "BEGIN" not in issue
    async with connect(program, tls=context) as client:
        client.send(ask("GET /plain"))
        assert (await client.answer()).status == 200

    def page() -> str:
        with urllib.request.urlopen(f"{program.admin_url}/", timeout=DEADLINE) as response:  # noqa: S310  # our own URL
            return str(response.read().decode())

    assert "cannot be used" in await asyncio.to_thread(page)
    (authority.folder / broken).write_bytes(valid)
    await soon(lambda: metric(program, 'gateway_reloads_total{result="loaded"}'))
    assert "cannot be used" not in await asyncio.to_thread(page)
    assert_sound(program)


def test_the_start_and_check_name_what_is_not_valid_now(
    gateway: StartGateway, authority: Authority
) -> None:
    """A bundle of authorities with one valid certificate is not named."""
    folder = authority.folder
    early = authority.write("gateway", "gateway.example.com", early=True)
    expired = authority.write("api", "localhost", expired=True)
    authority.file.write_bytes(authority.pem + early.certificate + expired.certificate)
    text = (
        configuration(authority, 1)
        + """
clients:
  by:
    - api_key:
        header: X-Api-Key
        keys: { acme: [ { key: old-secret, expires: 2020-01-31 }, { key: new-secret } ] }
access: {}
"""
    )
    program = gateway(text)
    logged = {each["credential"]: each["reason"] for each in program.log("credential_outdated")}
    assert logged == {
        "an API key of acme": "it expired at 2020-01-31; remove it",
        f"{folder}/api.pem": logged[f"{folder}/api.pem"],
        f"{folder}/gateway.pem": logged[f"{folder}/gateway.pem"],
    }
    assert logged[f"{folder}/api.pem"].startswith("it expired at ")
    assert logged[f"{folder}/gateway.pem"].startswith("it is not valid before ")
    status, output = run_command(program, f"check {program.config}")
    for name, reason in logged.items():
        assert f"{program.config}: {name}: warning: {reason}\n" in output
    assert status == 0
    assert run_command(program, f"check --strict {program.config}")[0] == 1
    assert "secret" not in output
    assert "secret" not in program.output.read_text()
