"""A certificate authority for tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

# trustme: issues certificates of a test authority, which the gateway itself cannot do.
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.http.certificates import KeyPair


def self_signed(name: str) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(*text, serialization.NoEncryption())
    return KeyPair(certificate.public_bytes(text[0]), private)


class Authority:
    """A certificate authority whose own certificate is in `file`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.ca = trustme.CA()
        self.file = folder / "ca.pem"
        self.pem = self.ca.cert_pem.bytes()
        self.ca.cert_pem.write_to_path(str(self.file))

    def issue(self, *names: str, expired: bool = False, early: bool = False) -> KeyPair:
        """Issue a certificate for some names; return it with its key.

        Args:
            expired: whether the certificate expired a day ago. Otherwise it is valid until
                tomorrow.
            early: whether the certificate becomes valid only in an hour.
        """
        now = datetime.now(UTC)
        end = now + timedelta(days=-1 if expired else 1)
        begin = now + timedelta(hours=1) if early else end - timedelta(days=9)
        issued = self.ca.issue_cert(*names, not_before=begin, not_after=end)
        chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        return KeyPair(chain, issued.private_key_pem.bytes())

    def write(self, name: str, *names: str, expired: bool = False, early: bool = False) -> KeyPair:
        return self.write_pair(name, self.issue(*names, expired=expired, early=early))

    def write_pair(self, name: str, pair: KeyPair) -> KeyPair:
        for suffix, content in zip((".pem", ".key"), pair, strict=True):
            path = self.folder / f"{name}{suffix}"
            fresh = path.with_suffix(f"{suffix}.fresh")
            fresh.write_bytes(content)
            fresh.replace(path)
        return pair
