"""Authentication: identifies the sender of a request, and bounds attempts with wrong tokens.

In this order:

1. Without tokens and sign-on in the configuration, everybody may read, and commands on the same
   machine may operate: requests from a loopback address without the fields of a browser or a proxy.
2. A trusted proxy names the user of the single sign-on, and groups.
3. `Authorization: Bearer` has a token of the configuration (RFC 6750).
4. A cookie has a session.
"""

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_network
from math import ceil

from aiohttp import web

from gateway.access.admin import AdminAccess, Right, TokenHolder, TrustedSignOn
from gateway.admin.access.problems import AccessDeniedError
from gateway.admin.access.rights import KnownBy, Principal, printable
from gateway.admin.access.sessions import SESSION, session_holder
from gateway.base.addresses import parse_address, trusts
from gateway.base.client_names import UNVERIFIED
from gateway.observe import log

# Fields that a browser sends (Origin for other methods than GET), or a proxy that passes a request.
_NOT_LOCAL = ("Origin", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For", "Via")
# Attempts of one address at once, and the time until they are available again. Tokens have at least
# 16 characters, so the bound is on work and log lines.
_ATTEMPTS = 20
_SECONDS = 60.0
_MOST_ADDRESSES = 1024
_OTHERS = "other addresses"


class Authentication:
    """Identifies the senders of requests.

    Args:
        rules: returns the access rules in force.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, rules: Callable[[], AdminAccess], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rules = rules
        self._clock = clock
        self._attempts: dict[str, _Attempts] = {}

    def identify(self, request: web.Request) -> Principal:
        """Return the sender of a request; raise AccessDeniedError if nothing identifies them."""
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
                "send a token of 'admin' in the rules: Authorization: Bearer TOKEN; commands take"
                " it from GATEWAY_ADMIN_TOKEN"
            )
        return Principal(holder.name, holder.right, KnownBy.SESSION)

    def log_in(self, request: web.Request, text: str) -> TokenHolder:
        """Return the token with a text; raise AccessDeniedError if there is none."""
        rules = self._rules()
        if not rules.tokens:
            instead = "read without one" if rules.open else "come by the single sign-on"
            raise _challenge(
                f"the rules name no tokens in 'admin', so that none is right; {instead}"
            )
        return self._holder(request, rules, text)

    def _holder(self, request: web.Request, rules: AdminAccess, text: str) -> TokenHolder:
        token = rules.holder(text)
        if token is not None:
            return token
        peer = request.remote or ""
        attempts, now = self._attempts_of(_network(peer)), self._clock()
        wait = attempts.wait(now)
        if wait:
            if attempts.refused is None:
                log.event("admin_tries_limited", "warning", peer=attempts.address)
            attempts.refused = (attempts.refused or 0) + 1
            origin = _OTHERS if attempts.address == _OTHERS else "this address"
            detail = (
                f"the token is none of 'admin' in the rules, and too many wrong ones came from"
                f" {origin}; correct it, and wait {wait} seconds"
            )
            fields = {"Retry-After": str(wait)}
            raise AccessDeniedError(429, "too_many_tries", detail, fields)
        more = {"unlogged": attempts.refused} if attempts.refused else {}
        attempts.refused = None if attempts.refused is None else 0
        log.event("admin_token_wrong", "warning", peer=peer, path=request.path, **more)
        # RFC 6750, section 3.1.
        raise _challenge("the token is none of 'admin' in the rules", ', error="invalid_token"')

    def _attempts_of(self, address: str) -> "_Attempts":
        now = self._clock()
        if address not in self._attempts and len(self._attempts) >= _MOST_ADDRESSES:
            rows = self._attempts.items()
            self._attempts = {name: row for name, row in rows if row.all_available > now}
            if len(self._attempts.keys() - {_OTHERS}) >= _MOST_ADDRESSES:
                address = _OTHERS
        row = self._attempts.get(address)
        if row is None or row.all_available <= now:
            row = self._attempts[address] = _Attempts(address, now)
        return row


class _Attempts:
    """The attempts of an address with wrong tokens (GCRA).

    Attributes:
        address: an address, an IPv6 network, or all addresses after the first 1,024.
        all_available: when all attempts are available again.
        refused: how many were refused since the last one that was not; None if none was so far.
    """

    def __init__(self, address: str, now: float) -> None:
        self.address = address
        self.all_available = now
        self.refused: int | None = None

    def wait(self, now: float) -> int:
        """Take an attempt, and return 0; or return the seconds until one is available."""
        interval = _SECONDS / _ATTEMPTS
        over = self.all_available - now - _SECONDS + interval
        if over > 1e-9:
            return ceil(over)
        self.all_available += interval
        return 0


def _network(address: str) -> str:
    parsed = parse_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    return str(ip_network((parsed, 64), strict=False))  # usually all of one host


def _unproven(request: web.Request) -> Principal:
    address = parse_address(request.remote or "")
    if address is None or not address.is_loopback or any(map(request.headers.get, _NOT_LOCAL)):
        return Principal("", Right.READ, KnownBy.NOTHING)
    claimed = printable(request.headers.get("X-Operator", ""))
    return Principal(f"{UNVERIFIED}{claimed}" if claimed else "", Right.OPERATE, KnownBy.COMMAND)


def _signed_on_user(request: web.Request, sign_on: TrustedSignOn) -> Principal | None:
    users = request.headers.getall(sign_on.user, [])
    # A second name would be the client's own.
    if len(users) != 1 or not trusts(sign_on.proxies, request.remote or ""):
        return None
    name = printable(users[0])
    groups = ",".join(request.headers.getall(sign_on.groups, []))
    return Principal(name, sign_on.right(groups), KnownBy.SIGN_ON) if name else None


def _challenge(detail: str, error: str = "") -> AccessDeniedError:
    challenge = {"WWW-Authenticate": f'Bearer realm="version-gateway admin"{error}'}
    return AccessDeniedError(401, "unauthorized", detail, challenge)
