"""The scheme and the authority that a client used, if a trusted proxy forwards its requests."""

import re
from collections.abc import Sequence

from gateway.base.addresses import trusts
from gateway.http.client.message import LONGEST_AUTHORITY, ClientExchange, is_authority

# The host and the scheme that the client used, from a trusted proxy (RFC 7239, section 4).
_FORWARDED = re.compile(r"[;, \t](host|proto)=(?:\"([^\"]*)\"|([^;, \t\"]*))", re.IGNORECASE)
_DEFAULT_PORT = {"http": "80", "https": "443"}
# The default port of the other scheme is also omitted: in a chain of proxies, the scheme may come
# from the first proxy and the port from the last.
_DEFAULT_PORTS = frozenset(_DEFAULT_PORT.values())
_PORT = re.compile(r"[1-9][0-9]{0,4}\Z")
_ITS_PORT = re.compile(r"(?::[0-9]*)?\Z")


def public_origin(exchange: ClientExchange) -> tuple[str, str]:
    scheme, authority = exchange.connection.scheme, exchange.authority
    if trusts(exchange.trusted_proxies, exchange.peer):
        fields = exchange.message.headers
        given = dict.fromkeys(("host", "proto"), "")
        for name, quoted, token in _FORWARDED.findall(f";{fields.get('Forwarded', '')}"):
            given[name.lower()] = given[name.lower()] or quoted or token
        scheme = _first(fields.getall("X-Forwarded-Proto", ())) or given["proto"] or scheme
        named = _first(fields.getall("X-Forwarded-Host", ())) or given["host"]
        # A proxy may forward a value from a client that is not a valid authority.
        forwarded = len(named) <= LONGEST_AUTHORITY and is_authority(named)
        authority = named if forwarded else authority
        scheme = scheme.lower() if scheme.lower() in _DEFAULT_PORT else exchange.connection.scheme
        host = _ITS_PORT.sub("", authority)
        if forwarded and (port := authority[len(host) + 1 :]):
            return scheme, host if port == _DEFAULT_PORT[scheme] else authority
        port = _first(fields.getall("X-Forwarded-Port", ()))
        if _PORT.match(port):
            authority = host if port in _DEFAULT_PORTS else f"{host}:{port}"
    return scheme, authority


def _first(values: Sequence[str]) -> str:
    return values[0].partition(",")[0].strip(" \t") if values else ""
