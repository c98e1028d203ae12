"""Shadow: requests repeated to another service in the background, to compare the responses."""

from enum import StrEnum
from typing import NamedTuple

from gateway.base.overrides import VersionKey
from gateway.rollout.differences import NOTHING, Ignored
from gateway.rollout.dry_run import WRITES, DryRun

SAFE = frozenset({"GET", "HEAD"})


class ShadowMode(StrEnum):
    """The ways to compare a request: send it, send it as a dry run, or only validate it."""

    SEND = "send"
    DRY_RUN = "dry_run"
    VALIDATE = "validate"


SEND, DRY_RUN, VALIDATE = ShadowMode
"""The members of ShadowMode. To read one from its class takes ten times as long."""


class Shadow(NamedTuple):
    """The configuration of one shadow.

    The responses of a version's own service are compared with the converted responses of another
    version's service.

    Attributes:
        key: The API and the label of the version that clients get.
        percent: The percentage of requests to repeat, from 0 to 100.
        ignored: The known differences, which are not reported.
        headers: The names of the header fields to compare, in lower case.
        methods: The methods of the requests that may be repeated.
        noise: Whether requests are repeated to the version's own service as well, to find the
            fields that differ from response to response.
        plain: Whether samples show values; otherwise they show types and sizes.
        body: The maximum of bytes of a body to compare; a larger body is not compared.
        dry_run: The mark with which writes are repeated as a dry run; None where the service
            offers none.
        document: The URL or the file path of the OpenAPI document by which writes that are not
            repeated are validated; None validates none.
    """

    key: VersionKey
    percent: float = 100.0
    ignored: Ignored = NOTHING
    headers: tuple[str, ...] = ()
    methods: frozenset[str] = SAFE
    noise: bool = True
    plain: bool = False
    body: int = 64 * 1024
    dry_run: DryRun | None = None
    document: str | None = None

    def mode(self, method: str, path: str) -> ShadowMode | None:
        """Return how requests of a method at the endpoint of a path are compared; None for not.

        A dry run comes first: what can be tried without effect is never sent to take effect.
        """
        if self.dry_run is not None and self.dry_run.applies(method, path):
            return DRY_RUN
        if method in self.methods:
            return SEND
        if self.document is not None and method in WRITES:
            return VALIDATE
        return None

    def falls_on(self, method: str, path: str, draw: float) -> bool:
        """Return whether a request is to be compared in the background, by its draw."""
        return draw * 100 < self.percent and (
            method in self.methods or self.mode(method, path) is not None
        )
