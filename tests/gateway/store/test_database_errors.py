"""Error messages for refusals by a database or by a connection pooler."""

import errno
import ssl

import asyncpg
import pytest

from gateway.store.postgres import translated
from gateway.store.state import StateError, StateUnreachableError

NAME = "postgresql://db:5432/vgw"
URL = "postgresql://vgw:s3cret@db:5432/vgw"
BARE = "postgresql://vgw@db:5432/vgw"
REFUSED = "the user or the password is refused; correct them in 'state'"
ASKED_FOR = (
    "the server requires a password, and 'state' has none; add it:"
    " postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
)
NO_DATABASE = "there is no such database; create it, or name another in 'state'"
NO_SERVER = "the server there is not PostgreSQL; correct the address in 'state'"
NO_TLS = "the server refuses TLS; set it up there, or leave sslmode out of the URL in 'state'"
NO_TLS_SAID = ConnectionError('PostgreSQL server at "db:5432" rejected SSL upgrade')
NO_AUTHORITY = "name the authority of its certificate with sslrootcert=FILE in the URL"
UP = "; is the server running, and is its address right?"


def pooler(said: str) -> asyncpg.PostgresError:
    """Return an error of PgBouncer, which has the same SQLSTATE for all errors."""
    return asyncpg.ProtocolViolationError(said)


@pytest.mark.parametrize(
    ("error", "url", "said"),
    [
        (asyncpg.InvalidPasswordError("for user"), URL, REFUSED),
        (asyncpg.InvalidPasswordError("for user"), f"{BARE}?password=s3cret", REFUSED),
        (asyncpg.InvalidPasswordError("for user"), f"{BARE}?passfile=/p", REFUSED),
        (asyncpg.InvalidPasswordError("for user"), BARE, ASKED_FOR),
        (asyncpg.InvalidPasswordError("for user"), "postgresql://vgw:@db/vgw", ASKED_FOR),
        (pooler('password authentication failed for user "vgw"'), URL, REFUSED),
        (pooler("SASL authentication failed"), URL, REFUSED),
        (pooler("no such user: vgw"), URL, REFUSED),
        (pooler("empty password returned by client"), BARE, ASKED_FOR),
        (pooler("no such database: vgw"), URL, NO_DATABASE),
        (pooler('database "vgw" does not exist'), URL, NO_DATABASE),
        (
            pooler("unsupported startup parameter: options"),
            f"{URL}?options=-cx",
            "unsupported startup parameter: options in the URL; correct or remove it",
        ),
        (NO_TLS_SAID, f"{URL}?sslmode=require", NO_TLS),
        (NO_TLS_SAID, URL, NO_SERVER),
        (ssl.SSLError("broken"), URL, f"TLS with the server failed: ('broken',); {NO_AUTHORITY}"),
    ],
)
def test_the_message_of_a_permanent_error_names_a_remedy(
    error: Exception, url: str, said: str
) -> None:
    found = translated(NAME, url, error)
    assert str(found) == f"{NAME}: {said}"
    assert type(found) is StateError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            pooler("server login has been failing, cached error: down"),
            "the database is not available now: server login has been failing, cached error: down",
        ),
        (
            asyncpg.CannotConnectNowError("the database system is starting up"),
            "the database is not available now: the database system is starting up",
        ),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"),
            f"the database cannot be reached: connection refused{UP}",
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0),"
                " [Errno 111] Connect call failed ('127.0.0.1', 1)"
            ),
            f"the database cannot be reached: connection refused{UP}",
        ),
        (
            OSError(-2, "Name or service not known"),
            f"the database cannot be reached: name or service not known{UP}",
        ),
        (TimeoutError(), f"the database cannot be reached: no answer in time{UP}"),
        (ConnectionError(), f"the database cannot be reached: the connection broke off{UP}"),
        (
            ConnectionError("unexpected connection_lost() call"),
            f"the database cannot be reached: the connection broke off{UP}",
        ),
    ],
)
def test_a_transient_error_is_reported_as_an_unreachable_database(
    error: Exception, said: str
) -> None:
    found = translated(NAME, URL, error)
    assert str(found) == f"{NAME}: {said}"
    assert isinstance(found, StateUnreachableError)


def test_the_message_for_refused_tls_considers_pgsslmode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "require")
    assert str(translated(NAME, URL, NO_TLS_SAID)) == f"{NAME}: {NO_TLS}"
