"""LoggedRequest: a line of the access log of Envoy, in the format that `export envoy` gives it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from gateway.core.clients import ANONYMOUS, ClientNaming
from gateway.core.request import RequestHead
from gateway.export.access_log.counted_route import counted_route


class LoggedRequest(NamedTuple):
    """A request that went straight to its service.

    Attributes:
        api: The name of the API.
        version: The label of the version; empty if the API has no versions.
        endpoint: The path template of the endpoint.
        client: The name of the client; empty for requests without one.
        failed: Whether it failed with status 5xx or its answer broke off.
        at: When it began, in seconds since 1970, by the clock of the machine of the front proxy.
        seconds: How long it took; None if the line does not have that.
    """

    api: str
    version: str
    endpoint: str
    client: str
    failed: bool
    at: float
    seconds: float | None


class _Line(msgspec.Struct):
    time: str
    status: int
    route: str | None
    path: str = ""
    method: str = ""
    milliseconds: float | None = None
    address: str | None = None
    fields: dict[str, str | None] = {}


class _LoggedFields:
    """The header fields of a line."""

    def __init__(self, values: Mapping[str, str | None]) -> None:
        self._values = values

    def getall(self, key: str, default: tuple[()]) -> Sequence[str]:
        value = self._values.get(key.lower())
        return default if value is None else (value,)

    def items(self) -> Iterable[tuple[str, str]]:
        return [(name, value) for name, value in self._values.items() if value is not None]


_decode = msgspec.json.Decoder(_Line).decode


def read_line(line: bytes, naming: ClientNaming | None) -> LoggedRequest | None:
    """Return the request of a line; None for one that passed the gateway, or that Envoy refused.

    Args:
        line: The line, without its end.
        naming: The rules by which clients are named.

    Raises:
        ValueError: It is not a line of this format; the text has the reason.
    """
    try:
        # What a client sent need not be UTF-8.
        found = _decode(line.decode(errors="replace"))
        at = datetime.fromisoformat(found.time)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:  # objects in objects
        raise ValueError(str(error)) from None
    counted = counted_route(found.route or "")
    if counted is None:
        return None
    client = ANONYMOUS
    if naming is not None:
        head = RequestHead(found.method, found.path, None, _LoggedFields(found.fields))
        client = naming.name(head, found.address or "")
    return LoggedRequest(
        *counted,
        client,
        # Envoy has no status where the client went away before there was an answer.
        found.status >= 500 or not found.status,
        at.replace(tzinfo=at.tzinfo or UTC).timestamp(),
        None if found.milliseconds is None else found.milliseconds / 1000,
    )
