"""The version that answers an OPTIONS request, as a CORS preflight, which names none."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from gateway.core.context import RequestContext
from gateway.core.conversion.passage import Passage
from gateway.core.errors import Fault
from gateway.core.lifecycle.brownout import Brownout
from gateway.core.request import RequestHead
from gateway.core.versions.chosen_by import ChosenBy
from gateway.core.versions.selection import Selector
from gateway.core.versions.version import Version

PREFLIGHT = "Access-Control-Request-Method"
"""The header field of a preflight that names the method which it asks about."""


class Interrupted(Protocol):
    """What answers in a version, but for brownouts."""

    @property
    def brownout(self) -> Brownout | None:
        """When the version is refused for a while."""


_R = TypeVar("_R", bound=Interrupted)


def answering(
    routes: Mapping[Version | None, _R],
    selector: Selector,
    chosen: tuple[Version, ChosenBy] | None,
    head: RequestHead,
    context: RequestContext,
    asked: Callable[[_R, RequestHead], tuple[object, str | Fault, Passage | None]],
) -> tuple[Version, ChosenBy]:
    """Return the version that answers, and what chose it.

    A preflight cannot carry the header field that it requests permission for (Fetch, section 4.8),
    and the allowed methods are no representation of a version. So the end of a default version, or
    its lack of an operation, must not keep browsers from the others. A version that is known to
    have the operation comes first, one that would refuse it last; of equal ones that which was
    chosen, then the newest.

    Args:
        routes: The routes of the endpoint.
        selector: Its versions.
        chosen: The version of the default or pin, and which of them it is; None without one.
        head: The head of the request.
        context: Who asks, and when.
        asked: Returns what the service of a route would be asked for, and by which operations.
    """
    meant = next(iter(head.fields.getall(PREFLIGHT, ())), None)

    offered = selector.offered(context)

    def rank(choice: tuple[Version, ChosenBy]) -> int:
        route = routes.get(choice[0])
        if route is None or str(choice[0]) not in offered:
            return 2
        if route.brownout is not None and route.brownout.closes(context) is not None:
            return 2
        if meant is None:
            return 1
        _, target, passage = asked(route, head._replace(method=meant))
        if isinstance(target, Fault):
            return 2
        return 1 if passage is None or not any(passage.operations) else 0

    newest = sorted(selector.supported.values(), reverse=True)
    choices = [(version, ChosenBy.NEWEST) for version in newest]
    return min(choices if chosen is None else [chosen, *choices], key=rank)
