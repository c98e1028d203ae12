"""An authority that signs certificates for tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

# trustme: certificates of an authority of its own; the gateway itself signs none.
import trustme

from gateway.http.certificates import KeyPair


class Authority:
    """An authority whose certificate is in `file`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.ca = trustme.CA()
        self.file = folder / "ca.pem"
        self.pem = self.ca.cert_pem.bytes()
        self.ca.cert_pem.write_to_path(str(self.file))

    def issue(self, *names: str, expired: bool = False) -> KeyPair:
        """Return a certificate for some names, valid until tomorrow or yesterday, and its key."""
        end = datetime.now(UTC) + timedelta(days=-1 if expired else 1)
        issued = self.ca.issue_cert(*names, not_before=end - timedelta(days=9), not_after=end)
        chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        return KeyPair(chain, issued.private_key_pem.bytes())

    def write(self, name: str, *names: str, expired: bool = False) -> KeyPair:
        """Issue a certificate and write it to NAME.pem and NAME.key."""
        pair = self.issue(*names, expired=expired)
        for suffix, content in zip((".pem", ".key"), pair, strict=True):
            path = self.folder / f"{name}{suffix}"
            fresh = path.with_suffix(f"{suffix}.fresh")
            fresh.write_bytes(content)
            fresh.replace(path)
        return pair
