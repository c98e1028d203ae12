"""Authentication: identifies the sender of a request and limits attempts with wrong tokens.

The first rule that applies decides:

1. If the configuration has neither tokens nor sign-on, everybody may read. Commands on the same
   machine may also operate. A request counts as a command if it comes from a loopback address
   without headers that only a browser or a proxy sends.
2. A trusted proxy sends the user name and the groups of the single sign-on.
3. `Authorization: Bearer` contains a configured token (RFC 6750).
4. The session cookie is valid.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_network
from math import ceil

from aiohttp import web

from gateway.access.admin import AdminAccess, Right, TokenHolder, TrustedSignOn
from gateway.admin.access.rights import (
    AccessDeniedError,
    KnownBy,
    Principal,
    printable,
)
from gateway.admin.access.sessions import SESSION, session_holder
from gateway.base.addresses import parse_address, trusts
from gateway.base.client_names import UNVERIFIED
from gateway.observe import log

# Headers of browsers (Origin with methods other than GET) and of proxies.
_NOT_LOCAL = ("Origin", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For", "Via")
# The maximum number of wrong tokens that one address may send at once, and the seconds until all of
# these attempts are available again. Tokens have at least 16 characters and cannot be guessed, so
# the limit only restricts work and log lines.
_ATTEMPTS = 20
_SECONDS = 60.0
_INTERVAL = _SECONDS / _ATTEMPTS
_MOST_ADDRESSES = 1024
_OTHERS = "other addresses"


class Authentication:
    def __init__(
        self, rules: Callable[[], AdminAccess], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rules = rules
        self._clock = clock
        self._attempts: dict[str, _Attempts] = {}

    def identify(self, request: web.Request) -> Principal:
        """Return the sender of a request; raise AccessDeniedError if the sender is unknown."""
        rules = self._rules()
        if rules.open:
            return _unproven(request)
        user = None if rules.sign_on is None else _signed_on_user(request, rules.sign_on)
        if user is not None:
            return user
        given = request.headers.get("Authorization")
        if given is not None:
            scheme, _, text = given.partition(" ")
            token = self._holder(request, rules, text.strip() if scheme.lower() == "bearer" else "")
            return Principal(token.name, token.right, KnownBy.TOKEN)
        holder = session_holder(request.cookies.get(SESSION, ""), rules.tokens, time.time())
        if holder is None:
            raise _challenge(
                "send a token listed under 'admin' in the configuration: Authorization: Bearer "
                "TOKEN; commands read the token from GATEWAY_ADMIN_TOKEN"
            )
        return Principal(holder.name, holder.right, KnownBy.SESSION)

    def log_in(self, request: web.Request, text: str) -> TokenHolder:
        """Return the configured token that equals `text`; raise AccessDeniedError without one."""
        rules = self._rules()
        if not rules.tokens:
            instead = "read without one" if rules.open else "use the single sign-on"
            raise _challenge(f"'admin' in the configuration has no tokens; {instead}")
        return self._holder(request, rules, text)

    def _holder(self, request: web.Request, rules: AdminAccess, text: str) -> TokenHolder:
        token = rules.holder(text)
        if token is not None:
            return token
        peer, now = request.remote or "", self._clock()
        attempts = self._attempts_of(_network(peer), now)
        # Rate limiting with the generic cell rate algorithm (GCRA).
        wait = attempts.available - now - _SECONDS + _INTERVAL
        if wait > 1e-9:
            if attempts.refused is None:
                log.event("admin_tries_limited", "warning", peer=attempts.address)
            attempts.refused = (attempts.refused or 0) + 1
            origin = _OTHERS if attempts.address == _OTHERS else "this address"
            detail = (
                "the token is not listed under 'admin' in the configuration, and too many wrong "
                "tokens came"
                f" from {origin}; correct the token, and wait {ceil(wait)} seconds"
            )
            raise AccessDeniedError(429, "too_many_tries", detail, {"Retry-After": str(ceil(wait))})
        attempts.available += _INTERVAL
        more = {"unlogged": attempts.refused} if attempts.refused else {}
        attempts.refused = None if attempts.refused is None else 0
        log.event("admin_token_wrong", "warning", peer=peer, path=request.path, **more)
        # RFC 6750, section 3.1.
        raise _challenge(
            "the token is not listed under 'admin' in the configuration", ', error="invalid_token"'
        )

    def _attempts_of(self, address: str, now: float) -> "_Attempts":
        if address not in self._attempts and len(self._attempts) >= _MOST_ADDRESSES:
            rows = self._attempts.items()
            self._attempts = {name: row for name, row in rows if row.available > now}
            if len(self._attempts.keys() - {_OTHERS}) >= _MOST_ADDRESSES:
                address = _OTHERS
        row = self._attempts.get(address)
        if row is None or row.available <= now:
            row = self._attempts[address] = _Attempts(address, now)
        return row


@dataclass(slots=True)
class _Attempts:
    """`refused` counts the attempts over the limit since the last one within it; None at first."""

    address: str
    available: float
    refused: int | None = None


def _network(address: str) -> str:
    parsed = parse_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    return str(ip_network((parsed, 64), strict=False))  # usually one host owns the whole /64


def _unproven(request: web.Request) -> Principal:
    address = parse_address(request.remote or "")
    if address is None or not address.is_loopback or any(map(request.headers.get, _NOT_LOCAL)):
        return Principal("", Right.READ, KnownBy.NOTHING)
    claimed = printable(request.headers.get("X-Operator", ""))
    return Principal(f"{UNVERIFIED}{claimed}" if claimed else "", Right.OPERATE, KnownBy.COMMAND)


def _signed_on_user(request: web.Request, sign_on: TrustedSignOn) -> Principal | None:
    users = request.headers.getall(sign_on.user, [])
    # If there are two user headers, one of them comes from the client and not from the proxy.
    if len(users) != 1 or not trusts(sign_on.proxies, request.remote or ""):
        return None
    name = printable(users[0])
    groups = ",".join(request.headers.getall(sign_on.groups, []))
    return Principal(name, sign_on.right(groups), KnownBy.SIGN_ON) if name else None


def _challenge(detail: str, error: str = "") -> AccessDeniedError:
    challenge = {"WWW-Authenticate": f'Bearer realm="version-gateway admin"{error}'}
    return AccessDeniedError(401, "unauthorized", detail, challenge)
