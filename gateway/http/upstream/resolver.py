"""DNS lookups of the services' host names, repeated at intervals.

A name may have several addresses, as of the pods of a headless Service; each is handled separately.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

# aiodns: c-ares returns the time to live of addresses, which getaddrinfo does not. It also reads
# the hosts file and the search domains.
import aiodns

_log = logging.getLogger(__name__)

# The seconds after which a failed lookup is repeated; the known addresses stay in use.
_AGAIN: Final = 1.0
# The minimum seconds between two lookups, however short the time to live is.
_SHORTEST: Final = 1.0
# The maximum seconds of a lookup. By default, c-ares tries each name server three times, 2 s at
# first; /etc/resolv.conf may have other values (timeout and attempts).
_LONGEST: Final = 15.0
# The getaddrinfo errors for a name without addresses: the name does not exist (NXDOMAIN), or it has
# only records of other types. Other errors, such as SERVFAIL, are temporary.
_ABSENT: Final = (socket.EAI_NONAME, socket.EAI_NODATA)
# The errors of connecting to an address to which this machine has no route.
_NO_ROUTE: Final = (
    errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
)
# The number of lookups without addresses after which the known addresses of a name are dropped: a
# name server that has just started may not know all names yet.
_CONFIRMATIONS: Final = 2


class Resolution(NamedTuple):
    """`addresses` are in the order of preference (RFC 6724)."""

    addresses: tuple[str, ...]
    seconds: float


class ResolveError(Exception):
    """A lookup failed; `absent` if the name servers confirmed that the name has no address."""

    def __init__(self, text: str, *, absent: bool = False) -> None:
        super().__init__(text)
        self.absent = absent


Lookup = Callable[[str], Awaitable[Resolution]]
"""Looks up a host name; raises ResolveError."""


async def resolve(host: str) -> Resolution:
    try:
        async with asyncio.timeout(_LONGEST):
            return await _resolve(host)
    except TimeoutError:
        raise ResolveError(f"the DNS lookup of {host} took more than {_LONGEST:g} s") from None


async def _resolve(host: str) -> Resolution:
    try:
        async with aiodns.DNSResolver() as resolver:
            found = await resolver.getaddrinfo(
                host, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM
            )
    except (aiodns.error.DNSError, UnicodeError):
        return await _by_system(host)  # the system has sources that c-ares lacks, such as mDNS
    addresses = dict.fromkeys(node.addr[0].decode() for node in found.nodes)
    if not addresses:
        return await _by_system(host)
    return Resolution(tuple(addresses), float(min(node.ttl for node in found.nodes)))


async def _by_system(host: str) -> Resolution:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResolveError(f"{host}: {reason}", absent=error.args[0] in _ABSENT) from None
    return Resolution(tuple(dict.fromkeys(str(each[4][0]) for each in found)), 0.0)


def has_route(address: str) -> bool:
    """Return whether this machine has a route to an address. No packet is sent."""
    if not needs_no_lookup(address):
        return True
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
    except OSError as error:
        return error.errno not in _NO_ROUTE
    return True


def _with_route(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the addresses without a route, such as IPv6 ones in a container that has only IPv4.

    If no address has a route, all of them are returned. RFC 6724 (section 6, rule 1) sorts such
    addresses last, but here every address gets requests.
    """
    return tuple(address for address in addresses if has_route(address)) or addresses


def needs_no_lookup(host: str) -> bool:
    """Return whether connections use the host as it is written, without a lookup.

    This is the case for an IP address, and for `localhost`: services often listen on only one of
    its two addresses, so connecting tries both.
    """
    if host == "localhost":
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class _Name:
    """A host name that is looked up at intervals.

    Attributes:
        error: why the last lookup failed; None if it succeeded.
        absent: the number of latest consecutive lookups that found no address for the name.
        done: set after the first lookup, successful or not.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.addresses: tuple[str, ...] = ()
        self.error: str | None = None
        self.absent = 0
        self.done = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Resolver:
    """Looks up host names at intervals, and reports changed addresses.

    `failed` is called with a name and the reason when its lookups start to fail, and with None when
    they succeed again.
    """

    def __init__(
        self,
        changed: Callable[[str], None],
        failed: Callable[[str, str | None], None],
        lookup: Lookup,
    ) -> None:
        self._changed = changed
        self._failed = failed
        self._lookup = lookup
        self._names: dict[str, _Name] = {}

    def addresses(self, host: str) -> tuple[str, ...]:
        """Return the known addresses of a host; empty before the first successful lookup."""
        if needs_no_lookup(host):
            return (host,)
        name = self._names.get(host)
        return () if name is None else name.addresses

    def error(self, host: str) -> str | None:
        name = self._names.get(host)
        return None if name is None else name.error

    def follow(self, hosts: Mapping[str, float]) -> None:
        """From now on, look up exactly these names, with the maximum seconds between lookups."""
        for host in self._names.keys() - hosts.keys():
            self._stop(self._names.pop(host))
        for host, seconds in hosts.items():
            self.add(host, seconds)

    def add(self, host: str, seconds: float) -> None:
        """Look up a name from now on, with at most these seconds between two lookups."""
        if needs_no_lookup(host):
            return
        name = self._names.get(host)
        if name is None:
            name = self._names[host] = _Name(seconds)
            name.task = asyncio.get_running_loop().create_task(self._repeat(host, name))
        name.seconds = seconds

    async def wait(self, host: str) -> str | None:
        """Wait for the first lookup; return why the last lookup failed, or None if it succeeded."""
        name = self._names.get(host)
        if name is None:
            return None
        await name.done.wait()
        return name.error

    def close(self) -> None:
        for name in self._names.values():
            self._stop(name)

    def _stop(self, name: _Name) -> None:
        if name.task is not None:
            name.task.cancel()

    async def _repeat(self, host: str, name: _Name) -> None:
        while True:
            try:
                wait = await self._look(host, name)
            except Exception:  # after any error in a callback, later changes are still followed
                _log.exception("the addresses of %s could not be followed", host)
                wait = _AGAIN
            name.done.set()
            await asyncio.sleep(wait)

    async def _look(self, host: str, name: _Name) -> float:
        """Look up a name; return the seconds until the next lookup."""
        try:
            found = await self._lookup(host)
        except Exception as error:  # after any error, the next lookup may succeed
            reason = str(error)
            if not isinstance(error, ResolveError):
                reason = f"{host}: {type(error).__name__}: {error}"
            if name.error is None:
                self._failed(host, reason)
            name.error = reason
            absent = isinstance(error, ResolveError) and error.absent
            name.absent = name.absent + 1 if absent else 0
            if name.absent >= _CONFIRMATIONS and name.addresses:
                name.addresses = ()
                self._changed(host)
            return min(_AGAIN, name.seconds)
        name.absent = 0
        if name.error is not None:
            name.error = None
            self._failed(host, None)
        addresses = _with_route(found.addresses)
        if {*addresses} != {*name.addresses}:
            name.addresses = addresses
            self._changed(host)
        if not found.seconds:  # from the hosts file, or from the system, which has no time to live
            return name.seconds
        return min(max(found.seconds, _SHORTEST), name.seconds)
