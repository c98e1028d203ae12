"""Shadow: requests repeated to another service in the background, to compare the responses."""

from dataclasses import dataclass

from gateway.core.context import RequestContext
from gateway.core.cutover.differences import NOTHING, Ignored
from gateway.core.overrides import VersionKey

SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Shadow:
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
    """

    key: VersionKey
    percent: float = 100.0
    ignored: Ignored = NOTHING
    headers: tuple[str, ...] = ()
    methods: frozenset[str] = SAFE
    noise: bool = True
    plain: bool = False
    body: int = 64 * 1024

    def falls_on(self, method: str, context: RequestContext) -> bool:
        """Return whether a request is to be repeated in the background."""
        return method in self.methods and context.shadow_draw * 100 < self.percent
