"""Errors of PostgreSQL and its driver, translated to StateErrors with a remedy."""

import os
import re
import ssl
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sqlalchemy.exc import DBAPIError

from gateway.store.state import StateError, StateUnreachableError

# SQLSTATEs that pass: the server starts, stops, is a standby that takes no changes, or has no
# connection or no room left.
_PASSING = ("08", "53", "57", "58", "25006", "25P03", "40", "55P03")
# PgBouncer uses the SQLSTATE of a wrong protocol for all refusals, and for a server that it cannot
# reach, which passes.
_POOLER = "08P01"
_REFUSED = "28P01"
_POOLER_SAYS = {
    "password authentication failed": _REFUSED,
    "SASL authentication failed": _REFUSED,
    "empty password": _REFUSED,
    "no such user": _REFUSED,
    "no such database": "3D000",
    'database "': "3D000",
}
NO_RIGHTS = "42501"
"""The SQLSTATE of a missing privilege."""
REASONS = {
    _REFUSED: "the user or the password is refused; correct them in 'state'",
    "28000": "the user is refused; correct it in 'state', or let it in: pg_hba.conf",
    "3D000": "there is no such database; create it, or name another in 'state'",
    NO_RIGHTS: (
        "the user has no right to keep state there; grant it CREATE on the database, or USAGE on"
        " the schema gateway and its sequences, and SELECT, INSERT, UPDATE and DELETE on its tables"
    ),
}
"""The reason and the remedy of an unusable database, by SQLSTATE."""
# The values of sslmode: https://www.postgresql.org/docs/current/libpq-ssl.html
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# Parameters of a URL with a password or a file of passwords, and those that name files.
_PASSWORDS = ("password", "passfile")
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")


def translated(name: str, url: str, error: Exception) -> StateError:
    """Return the StateError for an error of a library.

    Args:
        name: the database, without user and password.
        url: the URL of the database, of which only names of files are quoted.
        error: of SQLAlchemy, of the driver, or of the system.
    """
    original = (error.orig if isinstance(error, DBAPIError) else None) or error
    said = str(original).strip().partition("\n")[0] or "no answer in time"
    state = str(getattr(original, "sqlstate", None) or "")
    if state == _POOLER:
        state = next(
            (code for begin, code in _POOLER_SAYS.items() if said.startswith(begin)), state
        )
    if state == _REFUSED and not _has_password(url):
        return StateError(
            f"{name}: a password is asked for, and 'state' has none; write it:"
            " postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    reason = REASONS.get(state)
    if reason is not None:
        return StateError(f"{name}: {reason}")
    if "SSL upgrade" in said:
        return StateError(f"{name}: {_no_tls(url)}")
    if isinstance(original, ssl.SSLError):
        return StateError(f"{name}: TLS with the server failed: {said}; {_tls_advice(original)}")
    if isinstance(original, OSError):
        return _unreachable(name, url, original)
    # The driver's error of a wrong parameter is a ValueError; it may quote the URL.
    if "root certificate file" in said:
        return StateError(
            f"{name}: the authority of the server's certificate is not known; name it with"
            " sslrootcert=FILE in the URL, beside sslmode"
        )
    if "sslmode" in said:
        return StateError(f"{name}: no such sslmode; write one of {', '.join(_MODES)}")
    if "configuration parameter" in said or "startup parameter" in said:
        return StateError(f"{name}: {said} in the URL; correct or remove it")
    if isinstance(original, ValueError) or isinstance(original.__cause__, ValueError):
        return StateError(
            f"{name}: not a usable URL; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    if state.startswith(_PASSING) or not state:
        return StateUnreachableError(f"{name}: the database does not serve now: {said}")
    return StateError(f"{name}: the state cannot be kept there: {said}")


def _has_password(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.password) or not parse_qs(parts.query).keys().isdisjoint(_PASSWORDS)


def _no_tls(url: str) -> str:
    if "sslmode" in parse_qs(urlsplit(url).query) or "PGSSLMODE" in os.environ:
        return "the server refuses TLS; set it up there, or leave sslmode out of the URL in 'state'"
    return "what answers there is no PostgreSQL server; correct the address in 'state'"


def _tls_advice(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and "certificate is not valid for" in str(
        error
    ):
        return "have the URL name the server as its certificate does"
    return "name the authority of its certificate with sslrootcert=FILE in the URL"


def _unreachable(name: str, url: str, error: OSError) -> StateError:
    if not isinstance(error, ConnectionError | TimeoutError):
        for parameter, (file, *_) in parse_qs(urlsplit(url).query).items():
            if parameter in _FILES and not Path(file).is_file():
                return StateError(f"{name}: {parameter}={file} is no file; correct it in 'state'")
    return StateUnreachableError(
        f"{name}: the database cannot be reached: {_lower(error)}; is it up, and is its address"
        " right?"
    )


def _lower(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if "connection_lost" in str(error) or not str(error):  # so the driver and asyncio say it
        return "the connection broke off"
    # asyncio says which call failed; of several addresses, all that was said.
    number = re.search(r"\[Errno ([0-9]+)\]", str(error))
    said = os.strerror(int(number[1])) if number else error.strerror or str(error)
    return said[:1].lower() + said[1:]
