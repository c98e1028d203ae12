"""TLS contexts made from certificates, keys and authorities, and details of certificates."""

import gc
import ssl
import time
import weakref
from pathlib import Path

import pytest

from gateway.base.files import ConfigFiles
from gateway.http.certificates import (
    KeyPair,
    choose_by_name,
    client_context,
    host_names,
    listener_context,
    server_context,
    validities,
)
from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.authority import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def test_contexts_require_tls_1_2_and_clients_verify_the_server(authority: Authority) -> None:
    server = server_context(authority.issue("a"))
    client = client_context(ca=authority.pem)
    for context in (server, client):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        assert context.options & ssl.OP_NO_RENEGOTIATION
    assert server.verify_mode is ssl.CERT_NONE
    assert (client.verify_mode, client.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("required", "mode"), [(True, ssl.CERT_REQUIRED), (False, ssl.CERT_OPTIONAL)]
)
def test_a_server_can_request_or_require_client_certificates(
    authority: Authority, required: bool, mode: ssl.VerifyMode
) -> None:
    pair = authority.issue("a")
    context = server_context(pair, client_ca=authority.pem, client_required=required)
    assert context.verify_mode is mode


def test_equal_settings_return_the_same_context_while_it_is_in_use(authority: Authority) -> None:
    """A reload therefore keeps connections to services, and TLS sessions of clients."""
    pair = authority.issue("a")
    one = client_context(ca=authority.pem, pair=pair)
    assert client_context(ca=authority.pem, pair=KeyPair(*pair)) is one
    assert client_context(ca=authority.pem) is not one
    other = listener_context((pair, pair))
    assert listener_context((KeyPair(*pair), pair)) is other
    assert listener_context((pair,)) is not other
    unused = [weakref.ref(one), weakref.ref(other)]
    del one, other
    gc.collect()
    assert [each() for each in unused] == [None, None]


@pytest.mark.parametrize(
    ("certificate", "key", "reason"),
    [
        ("a.crt", "b.key", "the key belongs to another certificate; use PEM files"),
        ("a.key", "a.key", "the certificate file contains no certificate"),
        ("a.crt", "secret.key", "the key is encrypted"),
        ("a.crt", "none.key", "the key file contains no key"),
        ("cut.crt", "a.key", "a file is damaged"),
    ],
)
def test_a_certificate_and_a_key_that_do_not_match_are_refused(
    tmp_path: Path, certificate: str, key: str, reason: str
) -> None:
    for name, password in (("a", b""), ("b", b""), ("secret", b"secret")):
        write_certificate(tmp_path, name, password)
    (tmp_path / "none.key").write_bytes(b"")
    (tmp_path / "cut.crt").write_bytes((tmp_path / "a.crt").read_bytes()[:300])
    pair = KeyPair((tmp_path / certificate).read_bytes(), (tmp_path / key).read_bytes())
    with pytest.raises(ValueError, match=reason):
        server_context(pair)


@pytest.mark.parametrize("ca", [b"", b"no certificate", b"\xff"])
def test_invalid_authorities_are_refused(ca: bytes) -> None:
    with pytest.raises(ValueError, match=r"^the ca cannot be used: .*; use PEM certificates$"):
        client_context(ca=ca)


def test_comments_between_authorities_are_ignored(authority: Authority) -> None:
    context = client_context(ca="# Zertifikat für München\n".encode() + authority.pem)
    assert len(context.get_ca_certs()) == 1


def test_a_file_of_authorities_expires_with_its_last_certificate(
    authority: Authority, tmp_path: Path
) -> None:
    """A bundle such as that of the system contains certificates that have expired."""
    expired, valid = authority.issue("old", expired=True), authority.issue("new")
    both = "# für\n".encode() + expired.certificate + valid.certificate
    for name in ("bundle.pem", "chain.pem"):
        (tmp_path / name).write_bytes(both)
    (tmp_path / "key.pem").write_bytes(valid.key)
    files = ConfigFiles(tmp_path)
    files.read("bundle.pem", "ca")
    files.read("chain.pem", "certificate")
    files.read("key.pem", "key")
    now, found = time.time(), validities(files)
    assert [Path(path).name for path, each in found.items() if each.ends > now] == ["bundle.pem"]
    assert [Path(path).name for path, each in found.items() if each.ends < now] == ["chain.pem"]


def test_a_negative_serial_number_causes_no_warning(
    authority: Authority, recwarn: pytest.WarningsRecorder
) -> None:
    """Old authorities have one, which RFC 5280 (section 4.1.2.2) forbids."""
    content = bytearray(ssl.PEM_cert_to_DER_cert(authority.pem.decode()))
    content[content.index(b"\xa0\3\2\1\2\2") + 7] = 0x80  # after the version (section 4.1)
    host_names(ssl.DER_cert_to_PEM_cert(bytes(content)).encode())
    assert not recwarn.list


def test_the_host_names_of_a_certificate_are_read(authority: Authority) -> None:
    names = host_names(authority.issue("API.example", "*.example").certificate)
    assert names == ("api.example", "*.example")
    with pytest.raises(ValueError, match="is not a PEM certificate"):
        host_names(b"no certificate")


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("api.example.com", "exact"),
        ("API.Example.Com", "exact"),
        ("other.example.com", "wildcard"),
        ("a.b.example.com", "first"),
        ("example.com", "first"),
        ("com", "first"),
        ("", "first"),
        (None, "first"),
    ],
)
def test_the_certificate_is_selected_by_server_name(name: str | None, chosen: str) -> None:
    contexts = {
        each: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for each in ("first", "exact", "wildcard")
    }
    choose = choose_by_name(
        [
            (("first.example.org",), contexts["first"]),
            (("*.example.com",), contexts["wildcard"]),
            (("api.example.com",), contexts["exact"]),
        ]
    )
    assert choose(name) is contexts[chosen]
