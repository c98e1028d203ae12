"""Session cookies: the login of a browser, signed with the token that it was made for.

A cookie has the name of the holder, its end in seconds since 1970, and a signature (HMAC-SHA256)
whose key is the digest of the token. So no gateway has to keep sessions, each replica with the same
rules takes them, and they end with their token.

The end is by the clock of the machine, as that of a token with `exp`: a monotonic clock begins anew
with each start and differs between machines, while a session outlives a start and is of the whole
fleet.
"""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac

from gateway.access.admin_rules import AdminToken

SESSION = "gateway_session"
"""The name of the cookie."""
SECONDS = 12 * 3600
"""How long a session lasts."""


def new_session(token: AdminToken, now: float) -> str:
    """Return the cookie of a session that begins now."""
    subject = f"{token.name}.{int(now) + SECONDS}"
    return f"{subject}.{_signature(subject, token)}"


def session_holder(cookie: str, tokens: Iterable[AdminToken], now: float) -> AdminToken | None:
    """Return the token whose session a cookie has, or None if it is not in force."""
    subject, _, signature = cookie.rpartition(".")
    name, _, end = subject.rpartition(".")
    given = signature.encode(errors="surrogateescape")
    for token in tokens:
        if token.name == name and compare_digest(_signature(subject, token).encode(), given):
            return token if now < int(end) else None
    return None


def _signature(subject: str, token: AdminToken) -> str:
    return hmac(token.digest, b"session " + subject.encode(), sha256).hexdigest()
