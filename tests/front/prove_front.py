"""The files of docs/front-proxy.md, run in front of a gateway: `make test-front`."""

import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.front.service import Service, started_service
from tests.gateway.authority import Authority
from tests.gateway.kit import ROOT, Program, free_port, held_port, start_program, wait_for

PAGE = (ROOT / "docs" / "front-proxy.md").read_text()
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
NGINX = ["-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; pid nginx.pid;"]
COMMANDS = {
    "envoy": ("envoy.yaml", ["-c", "envoy.yaml", "--concurrency", "1", "--disable-hot-restart"]),
    "caddy": ("Caddyfile", ["run", "--config", "Caddyfile"]),
    "nginx": ("nginx.conf", NGINX),
}
"""The file of each proxy, and the arguments that make the proxy use the file."""
HTTP_3 = ["envoy", "caddy"]
NAME = "api.example.com"
CLIENT = "127.0.0.5"
"""The address of clients; the proxies connect to the gateway from 127.0.0.1."""
APIS = """
clients: { by: [ { address: true } ] }
services: { s: { targets: [ "http://127.0.0.1:PORT" ] } }
apis:
  person:
    versions: { "1": { via: "2" }, "2": { service: s } }
    conversions:
      - { between: ["1", "2"], changes: [ { rename: { field: fullName, to: name } } ] }
    endpoints:
      - { path: "/v{version}/person", version: { in: path }, upstream_path: /person }
      - { path: /person, version: { in: host, name: "v{version}.api.example.com" } }
  rest:
    service: s
    endpoints: [ { path: "/{rest*}" } ]
"""
FORWARDED = {
    "Forwarded": "for=9.9.9.9;host=evil.test;proto=http",
    "X-Forwarded-For": "9.9.9.9",
    "X-Forwarded-Host": "evil.test",
    "X-Forwarded-Port": "99",
    "X-Forwarded-Prefix": "/evil",
    "X-Forwarded-Proto": "http",
    "X-Forwarded-Scheme": "evil",
    "X-Forwarded-Server": "evil.test",
    "X-Forwarded-Ssl": "evil",
    "X-Original-URL": "/evil",
    "X-Rewrite-URL": "/evil",
}
IDENTITY = [
    *("X-Forwarded-Client-Cert", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Groups"),
    *("X-Forwarded-Preferred-Username", "Remote-User", "X-Real-IP", "X-Client-Cert"),
    "X-SSL-Client-Subject",
]
"""The identity fields that the page asks proxies to remove or to set."""


@dataclass(frozen=True)
class Front:
    name: str
    port: int
    gateway: Program
    service: Service
    authority: Authority
    folder: Path

    def curl(self, path: str, *options: str, name: str = NAME) -> tuple[str, bytes]:
        """Return the HTTP version and the body of a response, which has to be a 200."""
        return run_curl(self.curl_command(path, *options, name=name))

    def curl_command(self, path: str, *options: str, name: str = NAME) -> list[str]:
        to = ["--resolve", f"{name}:{self.port}:127.0.0.1", "--interface", CLIENT]
        url = f"https://{name}:{self.port}{path}"
        return [*CURL, "--cacert", str(self.authority.file), *to, *options, url]

    def is_ready(self) -> bool:
        command = self.curl_command("/v2/person", "--fail")
        return not subprocess.run(command, capture_output=True, check=False).returncode

    def seen(self, *options: str) -> dict[str, str]:
        self.service.seen.clear()
        self.curl("/v2/person", *options)
        return self.service.seen


CURL = ["curl", "--silent", "--show-error", "--max-time", "20", "--no-buffer"]
CURL += ["--write-out", "%{stderr}%{http_version} %{http_code}"]


def run_curl(command: list[str]) -> tuple[str, bytes]:
    done = subprocess.run(command, capture_output=True, check=False)
    version, _, status = done.stderr.decode().partition(" ")
    assert (done.returncode, status) == (0, "200"), done.stderr + done.stdout
    return version, done.stdout


def as_options(fields: Mapping[str, str]) -> list[str]:
    return [word for name, value in fields.items() for word in ("--header", f"{name}: {value}")]


def executable(name: str) -> str:
    places = [str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def adapted(text: str, folder: Path, ports: Mapping[str, int], port: int) -> str:
    """Return a file of the page for free ports, loopback addresses and a folder of the test."""
    text = text.replace("/etc/tls/", f"{folder}/tls/").replace("10.0.0.5", "127.0.0.1")
    text = re.sub(r"\b(8080|8443)\b", lambda found: str(ports[found[0]]), text)
    text = text.replace("0.0.0.0", "127.0.0.1")  # noqa: S104  # replaced, not used
    text = text.replace("admin off", f"admin off\n\thttps_port {port}\n\tdefault_bind 127.0.0.1")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    text = text.replace("\nhttp {\n", f"\nhttp {{\naccess_log off; {own}\n")
    return re.sub(r"\b443\b", str(port), text)


@contextmanager
def running(name: str, folder: Path, text: str, port: int) -> Iterator[None]:
    path = executable(name)
    file, arguments = COMMANDS[name]
    (folder / file).write_text(text)
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [path, *arguments], cwd=folder, env=environment, stdout=log, stderr=log
        )

    def listens() -> bool:
        assert process.poll() is None, (folder / f"{name}.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(listens)
        yield
    finally:
        process.terminate()
        process.wait(20)


def rules_of(number: int, folder: Path, service: Service) -> str:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    text = re.sub(r"0\.0\.0\.0:\d+", lambda _: f"127.0.0.1:{free_port()}", blocks[number])
    text = text.replace("10.0.0.0/24", "127.0.0.1/32").replace("tls/api", f"{folder}/tls/api")
    return text + APIS.replace("PORT", str(service.port))


def certified(folder: Path) -> Authority:
    authority = Authority(folder / "tls")
    authority.write("api", NAME, f"*.{NAME}")
    authority.write("client", "client.example.com")
    shutil.copy(authority.file, folder / "tls" / "clients-ca.pem")
    return authority


@contextmanager
def started(name: str, file: str, folder: Path, rules: int) -> Iterator[Front]:
    executable(name)
    authority = certified(folder)
    with ExitStack() as stack:
        service = stack.enter_context(started_service())
        (folder / "gateway.yaml").write_text(rules_of(rules, folder, service))
        gateway = start_program(stack, folder, "gateway")
        (listening,) = gateway.log("listening")
        urls = [*listening.get("others", ()), listening["url"]]
        ports = {
            ("8443" if "https:" in url else "8080"): int(url.rpartition(":")[2]) for url in urls
        }
        port = held_port(stack)
        stack.enter_context(running(name, folder, adapted(FILES[file], folder, ports, port), port))
        front = Front(name, port, gateway, service, authority, folder)
        wait_for(front.is_ready)
        yield front


@pytest.fixture(scope="module", params=COMMANDS)
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    name = request.param
    with started(name, COMMANDS[name][0], tmp_path_factory.mktemp(name), 0) as made:
        yield made


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_clients_use_http_1_1_and_http_2(front: Front, version: str) -> None:
    used, body = front.curl("/v1/person", f"--http{version}")
    assert (used, json.loads(body)) == (version, {"name": "Bob"})


def of_method(gateway: Program, method: str) -> list[dict[str, Any]]:
    return [each for each in gateway.log("request") if each["method"] == method]


def connections(port: int) -> int:
    found = psutil.net_connections("tcp")
    return sum(each.laddr[1:] == (port,) and each.status == "ESTABLISHED" for each in found)


def test_clients_use_http_3(front: Front, tmp_path: Path) -> None:
    """A second Caddy is the client, since few programs support HTTP/3."""
    if front.name not in HTTP_3:
        pytest.skip(f"the file of {front.name} has no HTTP/3")
    with ExitStack() as stack:
        port = held_port(stack)
        text = f"""
{{
	admin off
	persist_config off
	auto_https off
	default_bind 127.0.0.1
}}
http://127.0.0.1:{port} {{
	reverse_proxy https://127.0.0.1:{front.port} {{
		header_up Host {NAME}:{front.port}
		transport http {{
			versions 3
			tls_server_name {NAME}
			tls_trust_pool file {front.authority.file}
		}}
	}}
}}
"""
        stack.enter_context(running("caddy", tmp_path, text, port))
        front.service.seen.clear()
        _, body = run_curl([*CURL, f"http://127.0.0.1:{port}/v1/person"])
    assert json.loads(body) == {"name": "Bob"}
    assert front.service.seen["x-forwarded-proto"] == "https"


def test_a_client_learns_of_http_3(front: Front) -> None:
    if front.name not in HTTP_3:
        pytest.skip(f"the file of {front.name} has no HTTP/3")
    _, head = front.curl("/v1/person", "--head")
    assert f'\nalt-svc: h3=":{front.port}"'.encode() in head.lower()


def test_the_version_comes_from_the_host_name(front: Front) -> None:
    for name, body in (
        ("v1.api.example.com", {"name": "Bob"}),
        ("v2.api.example.com", {"fullName": "Bob"}),
    ):
        assert json.loads(front.curl("/person", name=name)[1]) == body


def test_requests_reuse_connections_to_the_gateway(front: Front) -> None:
    before = connections(front.gateway.port)
    for _ in range(10):
        front.curl("/v2/person")
    assert 1 <= connections(front.gateway.port) <= before + 2


@pytest.mark.parametrize("forged", [(), ("X-Forwarded-For", "Forwarded")])
def test_the_gateway_knows_the_address_of_the_client(front: Front, forged: tuple[str, ...]) -> None:
    path = f"/unknown/{len(forged)}"
    fields = {name: FORWARDED[name] for name in forged}
    subprocess.run(front.curl_command(path, *as_options(fields)), capture_output=True, check=True)

    def logged() -> list[dict[str, Any]]:
        return [each for each in front.gateway.log("request") if each["path"] == path]

    assert wait_for(logged)[0]["client"] == CLIENT


def test_links_have_the_origin_of_the_client(front: Front) -> None:
    _, head = front.curl("/v1/person", "--head")
    assert f"\nlocation: https://{NAME}:{front.port}/v1/person\r\n".encode() in head.lower()


def test_clients_cannot_forge_forwarding_fields(front: Front) -> None:
    seen = front.seen(*as_options(FORWARDED))
    assert (seen["x-forwarded-proto"], seen["x-forwarded-host"]) == (
        "https",
        f"{NAME}:{front.port}",
    )
    assert [name for name, value in seen.items() if "evil" in value or value == "99"] == []


def test_clients_cannot_forge_an_identity(front: Front) -> None:
    names = [*IDENTITY, *(name.replace("-", "_") for name in IDENTITY)]
    seen = front.seen(*as_options(dict.fromkeys(names, "mallory")))
    assert [name for name, value in seen.items() if "mallory" in value] == []


def test_the_service_gets_the_name_of_a_client_certificate(front: Front) -> None:
    field = "x-forwarded-client-cert" if front.name == "envoy" else "x-ssl-client-subject"
    pair = front.folder / "tls" / "client"
    assert front.seen().get(field, "") == ""
    seen = front.seen("--cert", f"{pair}.pem", "--key", f"{pair}.key")
    assert "trustme" in seen[field]


def test_large_bodies_pass_in_both_directions(front: Front, tmp_path: Path) -> None:
    body = os.urandom(1 << 20) * 32
    (tmp_path / "body").write_bytes(body)
    for version in ("1.1", "2"):
        _, received = front.curl(
            "/bytes", f"--http{version}", "--upload-file", str(tmp_path / "body")
        )
        assert received == body


def test_events_reach_the_client_at_once(front: Front) -> None:
    front.service.read.clear()
    with subprocess.Popen(
        front.curl_command("/events"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as curl:
        assert curl.stdout is not None
        assert curl.stdout.readline() == b"data: 1\n"
        front.service.read.set()
        assert curl.stdout.read() == b"\ndata: 2\n\n"


def test_a_websocket_passes(front: Front) -> None:
    fields = f"Host: {NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    fields += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    context = ssl.create_default_context(cafile=front.authority.file)
    with (
        socket.create_connection(("127.0.0.1", front.port), 20) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as secure,
        secure.makefile("rb") as received,
    ):
        secure.sendall(f"GET /socket HTTP/1.1\r\n{fields}\r\n".encode())
        head = b"".join(iter(received.readline, b"\r\n"))
        assert head.startswith(b"HTTP/1.1 101 ")
        secure.sendall(b"\x81\x85\0\0\0\0hello")  # masked with zeros (RFC 6455, section 5.2)
        assert received.read(7) == b"\x81\x05hello"


def test_websockets_are_not_offered_over_http_2(front: Front) -> None:
    """A service that supports HTTP/1.1 would miss Sec-WebSocket-Key (RFC 8441, section 5)."""
    context = ssl.create_default_context(cafile=front.authority.file)
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", front.port), 20) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as secure,
        secure.makefile("rb") as received,
    ):
        secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        head = received.read(9)
        assert head[3] == 4  # SETTINGS
        payload = received.read(int.from_bytes(head[:3]))
        settings = dict(struct.iter_unpack(">HI", payload))
        assert not settings.get(8)  # SETTINGS_ENABLE_CONNECT_PROTOCOL


def test_health_checks_are_answered_by_the_gateway(front: Front) -> None:
    if front.name == "nginx":
        pytest.skip("nginx has no active health checks")
    check = wait_for(lambda: of_method(front.gateway, "OPTIONS"))[0]
    assert (check["status"], check.get("service")) == (204, None)


def test_a_proxy_can_leave_tls_to_the_gateway(tmp_path: Path) -> None:
    """The PROXY protocol carries the address of the client."""
    with started("envoy", "envoy-tcp.yaml", tmp_path, 1) as front:
        version, body = front.curl("/v1/person", "--http2")
        assert (version, json.loads(body)) == ("1.1", {"name": "Bob"})
        assert front.service.seen["x-forwarded-for"] == CLIENT
        assert front.service.seen["x-forwarded-proto"] == "https"
        checks = wait_for(lambda: of_method(front.gateway, "OPTIONS"))
        assert checks[0]["status"] == 204
        requests = wait_for(lambda: of_method(front.gateway, "GET"))
        assert {each["client"] for each in requests} == {CLIENT}
        assert front.gateway.log("handshake_failed") == []


@pytest.mark.parametrize("options", [["--http2"], ["--http2-prior-knowledge"]])
def test_a_client_of_the_gateway_gets_http_1_1_or_an_error(
    options: list[str], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        service = stack.enter_context(started_service())
        (tmp_path / "gateway.yaml").write_text(APIS.replace("PORT", str(service.port)))
        gateway = start_program(stack, tmp_path, "gateway")
        command = [*CURL, "--verbose", *options, f"{gateway.url}/v1/person"]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        if options == ["--http2"]:
            assert (done.returncode, json.loads(done.stdout)) == (0, {"name": "Bob"})
        else:
            assert done.returncode == 16
            assert "GOAWAY, error=13" in done.stderr
            assert "curl: (16) Error in the HTTP2 framing layer" in done.stderr
