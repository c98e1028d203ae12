"""OpenSSL and curl clients whose TLS handshake fails: both sides report the cause."""

import asyncio
import re
import subprocess
from collections import Counter
from pathlib import Path
from shutil import which
from urllib.parse import urlsplit

import pytest

from tests.gateway.authority import Authority, self_signed
from tests.gateway.kit import DEADLINE, Program, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import metric
from tests.gateway.talk import OK, soon

FAILURES = "gateway_client_handshake_failures_total"
NAME = "api.example.com"
# With OpenSSL 3, TLS 1.0 and 1.1 require a lower security level.
OLD = "-cipher DEFAULT@SECLEVEL=0"

# The port of the gateway, the command, a pattern in its output, and the counted reason.
CLIENTS = {
    "TLS 1.0": ("tls", f"openssl -tls1 {OLD}", "alert protocol version", "protocol"),
    "TLS 1.1": ("tls", f"openssl -tls1_1 {OLD}", "alert protocol version", "protocol"),
    "no common cipher": (
        *("tls", "openssl -tls1_2 -cipher NULL-SHA256:@SECLEVEL=0"),
        *("alert handshake failure", "cipher"),
    ),
    "unknown authority": (
        *("tls", f"curl https://{NAME}/plain --cacert stranger/ca.pem"),
        *("curl: .60. .*unable to get local issuer", "certificate_refused"),
    ),
    "wrong name": (
        *("tls", "curl https://other.example.com/plain --cacert ca.pem"),
        *("curl: .60. .*no alternative certificate subject name", ""),
    ),
    "expired certificate": (
        *("tls", "curl https://late.example.com/plain --cacert ca.pem"),
        *("curl: .60. .*certificate has expired", "certificate_refused"),
    ),
    "certificate that is not valid yet": (
        *("tls", "curl https://early.example.com/plain --cacert ca.pem"),
        *("curl: .60. .*certificate is not yet valid", "certificate_refused"),
    ),
    "self-signed certificate": (
        *("tls", "curl https://own.example.com/plain --cacert ca.pem"),
        *("curl: .60. .*self-signed certificate", "certificate_refused"),
    ),
    "HTTP to the port for TLS": (
        *("tls", f"curl http://{NAME}/plain"),
        *('"status":400,"detail":"This port requires TLS; use https."', "not_tls"),
    ),
    "other method to the port for TLS": (
        *("tls", f"curl -X DELETE http://{NAME}/plain"),
        *("This port requires TLS; use https", "not_tls"),
    ),
    "another protocol": ("tls", "echo SSH-2.0-x", "", "not_tls"),
    "TLS to the plain port": (
        *("plain", f"curl https://{NAME}/plain --cacert ca.pem"),
        *("curl: .35. .*wrong version number", ""),
    ),
    "HTTP/2 by ALPN, and so HTTP/1.1": (
        *("tls", f"curl --http2 -i https://{NAME}/plain --cacert ca.pem"),
        *("HTTP/1.1 200 OK", ""),
    ),
    "HTTP/2 without TLS": (
        *("plain", f"curl --http2-prior-knowledge http://{NAME}/plain"),
        *("curl: .16. .*HTTP2|curl: .92. .*HTTP_1_1_REQUIRED|curl: .56.", ""),
    ),
    "no client certificate": (
        *("mutual", "openssl"),
        *("alert certificate required", "no_certificate"),
    ),
    "no client certificate with TLS 1.2": (
        *("mutual", "openssl -tls1_2"),
        *("alert handshake failure", "no_certificate"),
    ),
    "expired client certificate": (
        *("mutual", "openssl -cert late.pem -key late.key"),
        *("alert certificate expired", "expired"),
    ),
    "client certificate that is not valid yet": (
        *("mutual", "openssl -cert early.pem -key early.key"),
        *("alert bad certificate", "not_yet_valid"),
    ),
    "self-signed client certificate": (
        *("mutual", "openssl -cert own.pem -key own.key"),
        *("alert unknown ca", "self_signed"),
    ),
    "client certificate of another authority": (
        *("mutual", "openssl -cert stranger/client.pem -key stranger/client.key"),
        *("alert unknown ca", "unknown_authority"),
    ),
}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made, stranger = Authority(tmp_path / "tls"), Authority(tmp_path / "tls/stranger")
    made.write("api", NAME)
    made.write("late", "late.example.com", expired=True)
    made.write("early", "early.example.com", early=True)
    made.write_pair("own", self_signed("own.example.com"))
    stranger.write("client", "client.example.com")
    return made


def listen(authority: Authority) -> str:
    folder = authority.folder
    pairs = ", ".join(
        f"{{ certificate: {folder}/{name}.pem, key: {folder}/{name}.key }}"
        for name in ("api", "late", "early", "own")
    )
    return f"""
listen:
  - {{ address: "127.0.0.1:0" }}
  - address: "127.0.0.2:0"
    tls: {{ certificates: [{pairs}] }}
  - address: "127.0.0.3:0"
    tls: {{ certificates: [{pairs}], client_certificates: {{ ca: {authority.file} }} }}
"""


def run(command: str, place: str, folder: Path) -> str:
    tool, *options = command.split()
    host, _, port = place.rpartition(":")
    to = f"{host}:{port}"
    if tool == "openssl":
        words = ["openssl", "s_client", "-connect", to, "-servername", NAME, "-ign_eof", *options]
    elif tool == "curl":
        words = ["curl", "-sS", "-m", "30", "--connect-to", f"::{to}", *options]
    else:
        words = ["curl", "-sS", "-m", "30", f"telnet://{to}"]
    sent = " ".join(options) if tool == "echo" else "GET /plain HTTP/1.0\r\n\r\n"
    done = subprocess.run(  # nothing else runs in the meantime
        words, input=f"{sent}\r\n".encode(), cwd=folder, capture_output=True, timeout=DEADLINE
    )
    return (done.stdout + done.stderr).decode(errors="replace")


@pytest.mark.skipif(not (which("openssl") and which("curl")), reason="needs openssl and curl")
async def test_a_failed_handshake_is_reported_by_the_client_and_the_gateway(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    program = gateway(listen(authority) + rules((await upstream(OK)).port))
    (entry,) = program.log("listening")
    places = dict(
        zip(
            ("plain", "tls", "mutual"),
            (urlsplit(url).netloc for url in (entry["url"], *entry["others"])),
            strict=True,
        )
    )
    wrong = {}
    for name, (port, command, pattern, _) in CLIENTS.items():
        output = await asyncio.to_thread(run, command, places[port], authority.folder)
        if not re.search(pattern, output):
            wrong[name] = output
    assert not wrong
    to_plain = "it begins with TLS, and this port accepts only plain HTTP; use http."
    await soon(lambda: any(to_plain in each.get("cause", "") for each in program.log("request")))
    reasons = Counter(reason for *_, reason in CLIENTS.values() if reason)
    await soon(lambda: failures(program, reasons) == reasons)
    first = program.log("handshake_failed")[0]
    assert first["client"].startswith("127.0.0.")
    assert first["reason"] == "no TLS version is common to both sides"


def failures(program: Program, reasons: Counter[str]) -> Counter[str]:
    return Counter(
        {each: int(metric(program, f'{FAILURES}{{reason="{each}"}}')) for each in reasons}
    )
