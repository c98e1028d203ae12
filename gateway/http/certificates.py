"""Certificates and the TLS contexts made from them: for clients, services and the admin port.

Every error is a ValueError. Callers put the name of the setting and a colon before its message.
"""

import os
import re
import ssl
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from tempfile import NamedTemporaryFile
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec
from weakref import WeakValueDictionary

from gateway.base.dates import format_date
from gateway.base.files import ConfigFiles

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_P = ParamSpec("_P")
# A certificate in a file, which may also contain comments in any encoding (RFC 7468, section 2).
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_HTTP_1_1: Final = ["http/1.1"]


class KeyPair(NamedTuple):
    certificate: bytes
    key: bytes


def read_pair(files: ConfigFiles, certificate: str, key: str) -> KeyPair:
    return KeyPair(files.read(certificate, "certificate"), files.read(key, "key"))


def _chain(pem: bytes) -> "list[Certificate]":
    """Return the certificates in a file, the first one first; raises ValueError without any."""
    # The cryptography package is needed because `ssl` shows only the certificate of a peer. It is
    # imported only if certificates are configured, since it takes 8 MB.
    from cryptography import x509

    try:
        with warnings.catch_warnings():  # about old authorities, whose serial number is negative
            warnings.simplefilter("ignore")
            return x509.load_pem_x509_certificates(b"\n".join(_PEM.findall(pem)))
    except ValueError:
        raise ValueError("the certificate is not a PEM certificate") from None


def host_names(pem: bytes) -> tuple[str, ...]:
    """Return the host names of the first certificate, in lower case; some may begin with `*.`.

    Without a subjectAltName extension, this is the common name (RFC 6125, section 6.4.4).
    """
    from cryptography import x509  # imported here for the reason in `_chain`

    first = _chain(pem)[0]
    try:
        extension = first.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        common = first.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        names = [str(each.value) for each in common]
    else:
        names = extension.value.get_values_for_type(x509.DNSName)
    return tuple(name.lower() for name in names)


class Validity(NamedTuple):
    """The period in which a file of certificates can be used, in seconds since 1970."""

    begins: float
    ends: float


def validities(files: ConfigFiles) -> dict[str, Validity]:
    """Return the validity of each file of certificates, by path.

    All certificates of a chain must be valid. A file of authorities expires with its last
    certificate: bundles contain expired ones.
    """
    found = {}
    for path, content in files.contents.items():
        if not _PEM.search(content):
            continue
        chain = _chain(content)
        begins = [each.not_valid_before_utc.timestamp() for each in chain]
        ends = [each.not_valid_after_utc.timestamp() for each in chain]
        if files.names[path] == "ca":
            found[path] = Validity(min(begins), max(ends))
        else:
            found[path] = Validity(max(begins), min(ends))
    return found


def outdated(files: ConfigFiles, found: Mapping[str, Validity]) -> Iterator[tuple[str, str]]:
    """Yield each API key and file that is expired or not valid yet, and the reason."""
    yield from files.expired_keys
    now = time()
    for path, validity in found.items():
        if validity.ends <= now:
            yield path, f"it expired at {format_date(validity.ends)}; replace the file"
        elif validity.begins > now:
            begin = format_date(validity.begins)
            yield path, f"it is not valid before {begin}; check the clock, or replace the file"


def _shared(make: Callable[_P, ssl.SSLContext]) -> Callable[_P, ssl.SSLContext]:
    """Return the same context for equal arguments, as long as the context is in use.

    After a reload, TLS sessions, which need the ticket keys of their context, and connections to
    services are thus still used.
    """
    made = WeakValueDictionary[object, ssl.SSLContext]()

    @wraps(make)
    def shared(*args: _P.args, **kwargs: _P.kwargs) -> ssl.SSLContext:
        key = args, tuple(sorted(kwargs.items()))
        context = made.get(key)
        if context is None:
            context = made[key] = make(*args, **kwargs)
        return context

    return shared


def server_context(
    pair: KeyPair, *, client_ca: bytes | None = None, client_required: bool = False
) -> ssl.SSLContext:
    """Return the TLS context of a server, for TLS 1.2 and later.

    Args:
        client_ca: the authorities that sign client certificates, in PEM format; None to request no
            client certificates.

    Raises:
        ValueError: the certificate, the key or the authorities cannot be used.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    _load(context, pair)
    if client_ca is not None:
        _trust(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED if client_required else ssl.CERT_OPTIONAL
    return context


@_shared
def listener_context(
    pairs: Sequence[KeyPair], *, client_ca: bytes | None = None, client_required: bool = False
) -> ssl.SSLContext:
    """Like `server_context`; a client gets the certificate for the host name it requests (SNI)."""
    contexts = [
        server_context(pair, client_ca=client_ca, client_required=client_required) for pair in pairs
    ]
    names = [host_names(pair.certificate) for pair in pairs]
    choose = choose_by_name(list(zip(names, contexts, strict=True)))

    def by_name(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        tls.context = choose(name)

    if len(contexts) > 1:
        contexts[0].sni_callback = by_name
    return contexts[0]


@_shared
def client_context(
    *, ca: bytes | None = None, pair: KeyPair | None = None, verify: bool = True
) -> ssl.SSLContext:
    """Return the TLS context of a client, for TLS 1.2 and later.

    Args:
        ca: the trusted authorities, in PEM format; None to trust those of the system.

    Raises:
        ValueError: the certificate, the key or the authorities cannot be used.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is not None:
        _trust(context, ca)
    else:
        context.load_default_certs()
    if pair is not None:
        _load(context, pair)
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # cheap for a client, expensive for us
    context.set_alpn_protocols(_HTTP_1_1)
    return context


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    with _memory_file(b"\n".join(pair)) as path:
        try:
            # Without a password, OpenSSL would prompt for the password of an encrypted key on the
            # terminal.
            context.load_cert_chain(path, password="")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ValueError(
                f"the certificate and the key cannot be used: {_mistake(pair, error)}; use PEM"
                " files of a certificate and of its key, which is not encrypted"
            ) from None


def _mistake(pair: KeyPair, error: Exception) -> str:
    # The texts of OpenSSL, such as "PEM lib", do not name the file.
    if b"-----BEGIN CERTIFICATE-----" not in pair.certificate:
        return "the certificate file contains no certificate"
    if b"PRIVATE KEY-----" not in pair.key:
        return "the key file contains no key"
    if b"ENCRYPTED" in pair.key:
        return "the key is encrypted"
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return "the key belongs to another certificate"
    return f"a file is damaged ({getattr(error, 'reason', None) or error})"


@contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    """Yield the path of a temporary file with this content, which no other user can read.

    `ssl` loads a key only from a file, and the original file may have changed since it was read.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("key"), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
    else:  # macOS
        with NamedTemporaryFile(buffering=0) as file:
            file.write(content)
            yield file.name


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    certificates = b"\n".join(_PEM.findall(ca))
    try:
        context.load_verify_locations(cadata=certificates.decode("ascii"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ValueError(f"the ca cannot be used: {reason}; use PEM certificates") from None


def choose_by_name(
    contexts: Sequence[tuple[tuple[str, ...], ssl.SSLContext]],
) -> Callable[[str | None], ssl.SSLContext]:
    """Return a function that selects the TLS context for the server name (SNI) of a client.

    An exact name takes precedence over a wildcard, which matches one label (RFC 6125, section
    6.4.3). For any other name, and for clients without SNI, the function returns the first context.

    Args:
        contexts: pairs of the names of a certificate, in lower case, and its context.
    """
    first = contexts[0][1]
    by_name: dict[str, ssl.SSLContext] = {}
    for names, context in contexts:
        for name in names:
            by_name.setdefault(name, context)

    def choose(name: str | None) -> ssl.SSLContext:
        if not name:
            return first
        exact = name.lower()
        parent = exact.partition(".")[2]
        return by_name.get(exact) or by_name.get(f"*.{parent}") or first

    return choose
