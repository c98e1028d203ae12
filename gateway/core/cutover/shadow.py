"""Shadow: what the rules say of asking another service in the background, to compare."""

from dataclasses import dataclass

from gateway.core.context import RequestContext
from gateway.core.cutover.differences import NOTHING, Ignored
from gateway.core.overrides import VersionKey

SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Shadow:
    """How the answers of one version are compared with those of another one, converted.

    Attributes:
        key: the API, and the label of the version that clients get.
        percent: of the requests are asked once more, from 0 to 100.
        ignored: the known differences.
        headers: the names of the header fields to compare, in lower case.
        methods: the methods that may be asked again.
        noise: whether the version's own service is asked once more as well, to learn which fields
            are never twice the same.
        plain: whether samples show values; otherwise they show types and sizes.
        body: of a larger body, nothing is compared; in bytes.
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
        """Whether a request is asked once more."""
        return method in self.methods and context.shadow_draw * 100 < self.percent
