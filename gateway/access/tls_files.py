"""TLS files: the certificate and the key of a port, for `check` and for serving alike."""

import ssl
from pathlib import Path

from gateway.access.admin_rules import TlsFiles
from gateway.base.regular_file import read_regular


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the TLS context of a server; raises ValueError if the files cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    for what, path in (("certificate", files.certificate), ("key", files.key)):
        try:
            read_regular(Path(path))
        except OSError as error:
            raise ValueError(f"the {what} cannot be read: {error.strerror}") from None
    try:
        # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ValueError(
            f"the certificate and the key cannot be used: {getattr(error, 'reason', error)}; both"
            " are PEM files, and the key is that of the certificate and not encrypted"
        ) from None
    return context
