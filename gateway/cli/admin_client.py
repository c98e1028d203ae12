"""AdminClient: sends requests to the admin port of a running gateway."""

import http.client
import json
import os
from argparse import Namespace
from urllib.parse import quote

import msgspec

from gateway.cli.command import CommandError
from gateway.settings import Settings

# Longer than a worker may take to apply overrides, in seconds.
_TIMEOUT = 15.0


class AdminUnreachableError(CommandError):
    """The admin port cannot be reached; the text names it, the reason, and what would help."""


class AdminRefusedError(CommandError):
    """The gateway refused the request; the text is the detail of its answer."""


class _Problem(msgspec.Struct):
    detail: str


class AdminClient:
    """The admin port of the gateway that the settings name."""

    def __init__(self, settings: Settings) -> None:
        # A gateway that listens on all addresses answers on that of this machine.
        wild = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not listened on
        self._host = wild.get(settings.admin_host, settings.admin_host)
        self._port = settings.admin_port

    def ask(self, method: str, *path: str, query: str = "", content: object = None) -> bytes:
        """Return the body of an answer.

        Args:
            method: GET, PUT or DELETE.
            path: its segments.
            query: the query of the URL, encoded.
            content: a JSON value to send; None sends no body.

        Raises:
            AdminUnreachableError: no gateway answers there.
            AdminRefusedError: the gateway refused the request.
        """
        body = None if content is None else json.dumps(content)
        target = "".join(f"/{quote(segment, safe='')}" for segment in path)
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT)
        try:
            connection.request(method, f"{target}?{query}" if query else target, body)
            response = connection.getresponse()
            answer = response.read()
        except OSError as error:
            raise self._unreachable((error.strerror or str(error)).lower()) from None
        except http.client.HTTPException:
            raise self._unreachable("what listens there does not speak HTTP") from None
        finally:
            connection.close()
        if response.status < 300:
            return answer
        try:
            detail = msgspec.json.decode(answer, type=_Problem).detail
        except msgspec.DecodeError:
            raise self._unreachable(f"not a gateway's: it answers {response.status}") from None
        raise AdminRefusedError(detail)

    def _unreachable(self, reason: str) -> AdminUnreachableError:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return AdminUnreachableError(
            f"the admin port {host}:{self._port} cannot be asked: {reason}; does the gateway run?"
            " GATEWAY_ADMIN_HOST and GATEWAY_ADMIN_PORT say where"
        )


def ask_version(method: str, what: str, arguments: Namespace, content: object = None) -> bytes:
    """Return the answer about one version, which the arguments name."""
    admin = AdminClient(Settings.from_environment(os.environ))
    return admin.ask(method, what, arguments.api, arguments.version, content=content)
