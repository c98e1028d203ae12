"""AdminClient: sends requests to the admin port of a running gateway."""

import getpass
import http.client
import json
import os
import ssl
from argparse import Namespace
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from gateway.base.errors import FaultCode
from gateway.base.files import system_reason
from gateway.cli.shared.arguments import CommandError
from gateway.process.settings import Settings

T = TypeVar("T")
Query = Mapping[str, str | None]
"""The parameters of a request; those that are None are not sent."""
NO_QUERY: Query = MappingProxyType({})

# The time limit in seconds. It is longer than workers take to apply overrides, and longer than the
# gateway waits for a webhook.
_TIMEOUT = 20.0


# The hints for an unreachable gateway and for an untrusted certificate.
_RUNS = "start the gateway, or correct GATEWAY_ADMIN_HOST and GATEWAY_ADMIN_PORT"
_CERTIFIED = (
    "set GATEWAY_ADMIN_CA to the file of its authority, and GATEWAY_ADMIN_HOST to a host name of"
    " the certificate"
)
# The title of a 404 response from the client port. On the admin port, the title is HTTP's "Not
# Found".
_FOR_CLIENTS = FaultCode.NOT_FOUND.problem_title


class AdminUnreachableError(CommandError):
    """The admin port cannot be reached. The message has its address, the reason and a hint."""


class _AdminRefusedError(CommandError):
    """The gateway refused the request. The message is the detail of its response."""


class _Problem(msgspec.Struct):
    detail: str
    title: str = ""


class AdminClient:
    """A client for the admin port; raises CommandError if a configured file is invalid."""

    def __init__(self, settings: Settings) -> None:
        # If the gateway listens on all addresses, connect to the loopback address.
        wild = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not listened on
        self._host = wild.get(settings.admin_host, settings.admin_host)
        self._port = settings.admin_port
        self._headers = {"X-Operator": _operator(), **_authorization(settings)}
        self._tls = _tls(settings)

    def ask(
        self, method: str, *path: str, query: Query = NO_QUERY, content: object = None
    ) -> bytes:
        """Return the body of the response; raises AdminUnreachableError or AdminRefusedError.

        `path` has the segments of the path, and `content` a JSON value for the request body.
        """
        body = None if content is None else json.dumps(content)
        target = "".join(f"/{quote(segment, safe='')}" for segment in path)
        try:
            connection = self._connection()
        except http.client.InvalidURL:
            raise self._unreachable("the host name is invalid") from None
        try:
            given = urlencode({name: text for name, text in query.items() if text is not None})
            url = f"{target}?{given}" if given else target
            connection.request(method, url, body, self._headers)
            response = connection.getresponse()
            answer = response.read()
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate is not accepted: {error.verify_message}"
            raise self._unreachable(reason, _CERTIFIED) from None
        except ssl.SSLError as error:
            reason = f"TLS with it fails: {error.reason}; if it uses none, unset GATEWAY_ADMIN_CA"
            raise self._unreachable(reason) from None
        except http.client.RemoteDisconnected:
            hint = "" if self._tls else "; if it uses TLS, set GATEWAY_ADMIN_CA"
            raise self._unreachable(f"it closed the connection{hint}") from None
        except UnicodeError:  # a label of the host name is empty or too long
            raise self._unreachable("the host name is invalid") from None
        except OSError as error:
            raise self._unreachable(system_reason(error)) from None
        except http.client.HTTPException:
            raise self._unreachable("the server there does not use HTTP") from None
        finally:
            connection.close()
        if response.status < 300:
            return answer
        try:
            problem = msgspec.json.decode(answer, type=_Problem)
        except msgspec.DecodeError:
            raise self._unreachable(
                f"it is not an admin port: its status is {response.status}"
            ) from None
        if problem.title == _FOR_CLIENTS:
            raise self._unreachable("it is the port for clients of a gateway")
        raise _AdminRefusedError(problem.detail)

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=_TIMEOUT, context=self._tls
        )

    def _unreachable(self, reason: str, hint: str = _RUNS) -> AdminUnreachableError:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return AdminUnreachableError(
            f"the admin port {host}:{self._port} cannot be used: {reason}; {hint}"
        )


def ask_version(method: str, what: str, arguments: Namespace, content: object = None) -> bytes:
    """`what` is the first segment of the path, such as `cutovers`."""
    admin = AdminClient(Settings.from_environment(os.environ))
    path = (what, arguments.api, arguments.version)
    replica = getattr(arguments, "replica", None)
    query = reason_query(arguments) if replica is None else {"replica": replica}
    return admin.ask(method, *path, query=query, content=content)


def read_answer(answer: bytes, kind: type[T]) -> T:
    """Decode a response; raises AdminUnreachableError if it has another type."""
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as error:
        raise AdminUnreachableError(
            f"the response does not come from an admin port of this release: {error}; {_RUNS}"
        ) from None


def reason_query(arguments: Namespace) -> Query:
    return {"why": getattr(arguments, "why", None) or None}


def _authorization(settings: Settings) -> dict[str, str]:
    token, path = settings.admin_token, settings.admin_token_file
    if not token and path is not None:
        try:
            token = path.read_text().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise CommandError(
                f"GATEWAY_ADMIN_TOKEN_FILE={path}: {reason}; name a file with a token in one line"
            ) from None
    if not token:
        return {}
    if not (token.isascii() and token.isprintable()):
        raise CommandError("GATEWAY_ADMIN_TOKEN: a token is printable ASCII, in one line")
    return {"Authorization": f"Bearer {token}"}


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if not settings.admin_ca:
        return None
    try:
        file = None if settings.admin_ca == "system" else settings.admin_ca
        return ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        reason = "it contains no PEM certificate"
    except OSError as error:
        reason = str(error.strerror or error)
    right = "name the file of the authority, or 'system'"
    raise CommandError(f"GATEWAY_ADMIN_CA={settings.admin_ca}: {reason}; {right}")


def _operator() -> str:
    try:
        return quote(getpass.getuser(), safe="")
    except (KeyError, OSError):  # the user has no name
        return str(os.getuid())
