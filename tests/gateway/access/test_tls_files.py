"""A certificate and its key: what cannot be used, and the reason."""

import ssl
from pathlib import Path

import pytest

from gateway.access.admin_rules import TlsFiles
from gateway.access.tls_files import server_context
from tests.gateway.admin.access.certificates import write_certificate


def test_a_certificate_and_its_key(tmp_path: Path) -> None:
    context = server_context(write_certificate(tmp_path))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("certificate", "key", "reason"),
    [
        ("none.crt", "a.key", "No such file"),
        ("a.crt", "none.key", "No such file"),
        ("a.crt", "b.key", "KEY_VALUES_MISMATCH"),
        ("a.key", "a.key", "PEM"),
        ("a.crt", "secret.key", "cannot be used"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, certificate: str, key: str, reason: str) -> None:
    for name, password in (("a", b""), ("b", b""), ("secret", b"secret")):
        write_certificate(tmp_path, name, password)
    with pytest.raises(ValueError, match=reason):
        server_context(TlsFiles(str(tmp_path / certificate), str(tmp_path / key)))
