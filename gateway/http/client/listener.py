"""`listen` in gateway.yaml: the addresses that clients connect to, and their TLS."""

import ssl
from functools import partial
from typing import Annotated, NamedTuple

from gateway.base.addresses import Network, parse_network
from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Mistakes
from gateway.base.model import NonEmptyText, SectionModel, Some, matching
from gateway.http.certificates import (
    KeyPair,
    listener_context,
    read_pair,
    server_context,
)

Address = Annotated[
    str,
    matching(
        r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$",
        "not an address to listen on; write host:port, as in 0.0.0.0:8443 or [::]:8443",
    ),
]


class Listener(NamedTuple):
    """An address that clients connect to.

    Attributes:
        proxies: the networks of load balancers whose connections begin with a PROXY protocol
            header; empty if the protocol is not used.
    """

    address: str
    context: ssl.SSLContext | None = None
    proxies: tuple[Network, ...] = ()

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The host without the brackets of an IPv6 address, and the port."""
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)


class ListenCertificate(SectionModel):
    """A certificate and its private key. Changed files take effect at once."""

    certificate: NonEmptyText
    """The file of the certificate and its chain, as PEM. Its path starts from the folder of
    gateway.yaml."""
    key: NonEmptyText
    """The file of the certificate's key, as unencrypted PEM. Its path starts from the folder of
    gateway.yaml."""


class ClientCertificates(SectionModel):
    """The check of client certificates (mutual TLS)."""

    ca: NonEmptyText
    """The file of the authorities that sign client certificates, as PEM. Its path starts from the
    folder of gateway.yaml."""
    required: bool = True
    """Whether a client without a certificate is refused. A client whose certificate is not valid
    is refused in any case. The default is true."""


class ListenTls(SectionModel):
    """TLS 1.2 and 1.3 for the connections of clients."""

    certificates: Some[ListenCertificate]
    """The certificates. A client gets the certificate for the host name that it requests (SNI); a
    wildcard such as *.example.com also matches. Without a match, the client gets the first one."""
    client_certificates: ClientCertificates | None = None
    """The check of client certificates. Without it, no client certificate is requested."""

    def compile(self, files: ConfigFiles, mistakes: Mistakes) -> ssl.SSLContext | None:
        ca, required = None, False
        if self.client_certificates is not None:
            read = partial(files.read, self.client_certificates.ca, "ca")
            ca = mistakes.attempt(read, "client_certificates", "ca")
            required = self.client_certificates.required
        pairs: list[KeyPair] = []
        for index, each in enumerate(self.certificates):
            here = mistakes.below("certificates", index)
            pair = here.attempt(partial(read_pair, files, each.certificate, each.key))
            if pair is None:
                continue
            make = partial(server_context, pair, client_ca=ca, client_required=required)
            if here.attempt(make) is not None:
                pairs.append(pair)
        if len(pairs) < len(self.certificates):
            return None
        return listener_context(tuple(pairs), client_ca=ca, client_required=required)


class Listen(SectionModel):
    """An address that clients connect to."""

    address: Address
    """The address or host name and the port, such as 0.0.0.0:8443. 0.0.0.0 and [::] mean all
    addresses of the machine. A change takes effect at a restart."""
    tls: ListenTls | None = None
    """The TLS settings of the connections. Without them, the connections are plain HTTP."""
    proxy_protocol: tuple[str, ...] = ()
    """The networks (CIDR) of load balancers that send a PROXY protocol header with the client's
    address at the start of each connection. Connections from other addresses are then refused. By
    default, the protocol is not used."""

    def compile(self, files: ConfigFiles, mistakes: Mistakes) -> Listener:
        if int(self.address.rpartition(":")[2]) > 65535:
            mistakes.add("no port is above 65535", "address")
        proxies = mistakes.attempt_each(parse_network, self.proxy_protocol, "proxy_protocol")
        context = None
        if self.tls is not None:
            context = self.tls.compile(files, mistakes.below("tls"))
        return Listener(self.address, context, proxies)
