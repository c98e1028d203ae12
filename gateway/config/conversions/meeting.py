"""Meeting: whether there are messages to which two links between the same versions apply.

A link names endpoints and methods, or operations. An endpoint is of an operation if a request that
comes to it is asked of the service at the path that the operation has there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gateway.core.conversion.operations.operation import MappedOperation, OperationPattern
from gateway.core.conversion.operations.operation_table import OperationTable
from gateway.core.conversion.version_link import MessageKind, VersionLink
from gateway.core.routing import Router, Segment, Template
from gateway.core.versions.version import Version

AskedPaths = Iterable[tuple[Template, Template]]
"""The paths of endpoints, each with the path that services are asked for there."""

# What stands in a path for a capture. It is no text that a path of the rules has.
_ANY = "~any~"


class Meeting:
    """Tells whether two links of an API apply to the same messages.

    Args:
        asked: the paths of its endpoints.
        links: all its links, by the older version.
    """

    def __init__(self, asked: AskedPaths, links: Mapping[Version, Sequence[VersionLink]]) -> None:
        self._asked = {public.text: (public, path) for public, path in asked}
        shapes = {public.shape: public for public, _ in self._asked.values()}
        self._router = Router((public, public) for public in shapes.values())
        self._operations = {
            older: tuple(dict.fromkeys(each for link in some for each in link.operations or ()))
            for older, some in links.items()
        }
        self._tables: dict[tuple[Version, bool], OperationTable] = {}

    def meet(self, one: VersionLink, other: VersionLink) -> bool:
        """Return whether there are messages to which both apply."""
        # Errors of different statuses are different messages.
        if not (one.on & other.on - {MessageKind.ERROR} or one.statuses & other.statuses):
            return False
        for link, beside in ((one, other), (other, one)):
            if link.operations is not None:
                return any(self._has(beside, operation) for operation in link.operations)
        return (
            one.methods is None or other.methods is None or bool(one.methods & other.methods)
        ) and (one.paths is None or other.paths is None or bool(one.paths & other.paths))

    def _has(self, link: VersionLink, operation: MappedOperation) -> bool:
        """Return whether a link applies to some requests of an operation."""
        if link.operations is not None:
            return operation in link.operations
        sides = [side for side in (operation.newer, operation.older) if side is not None]
        methods = link.methods
        if methods is not None and not any(side.takes(one) for side in sides for one in methods):
            return False
        return link.paths is None or any(
            path in self._asked and self._leads(path, operation, link) for path in link.paths
        )

    def _leads(self, path: str, operation: MappedOperation, link: VersionLink) -> bool:
        """Return whether requests that come to an endpoint can be of an operation."""
        public, own = self._asked[path]
        return any(
            asked is not own or self._comes_to(public, own, shared)
            for newer in (True, False)
            if (side := operation.side(newer=newer)) is not None
            for asked in self._asked_between(own, link.older)
            if (shared := shared_path(asked, side.template)) is not None
            if self._is_found(operation, side, shared, link, newer=newer)
        )

    def _asked_between(self, own: Template, older: Version) -> Iterator[Template]:
        """Yield the path that an endpoint asks for, and what it becomes between other versions."""
        others = [each for one, some in self._operations.items() if one != older for each in some]
        found = [own]
        for asked in found:
            yield asked
            for newer, older_side in ((each.newer, each.older) for each in others):
                if newer is None or older_side is None:
                    continue
                sides = newer.template, older_side.template
                if sides[0] != sides[1] and any(shared_path(asked, side) for side in sides):
                    found += [side for side in sides if side not in found]

    def _is_found(
        self,
        operation: MappedOperation,
        side: OperationPattern,
        path: str,
        link: VersionLink,
        *,
        newer: bool,
    ) -> bool:
        """Return whether no other operation comes before one at a path that it has."""
        table = self._tables.get((link.older, newer))
        if table is None:
            table = OperationTable(self._operations[link.older], newer=newer)
            self._tables[link.older, newer] = table
        query = side.written(dict.fromkeys(side.captures, _ANY), [])
        methods = [side.method] if side.method is not None else link.methods or [_ANY]
        found = (table.find(method, path, query) for method in methods)
        return any(one is not None and one.operation is operation for one in found)

    def _comes_to(self, public: Template, own: Template, path: str) -> bool:
        """Return whether what becomes a path at a service is no request of another endpoint."""
        _, captures = Router([(own, own)]).find(path) or (own, {})
        asked = public.fill({**dict.fromkeys(public.captures, _ANY), **captures})
        found = self._router.find(asked)
        return found is not None and found[0].shape == public.shape


def shared_path(one: Template, other: Template) -> str | None:
    """Return a path that two templates match, as general as it can be; None if there is none."""
    count = max(len(one.segments), len(other.segments))
    segments = _stretched(one, count), _stretched(other, count)
    if len(segments[0]) != len(segments[1]):
        return None
    texts = [_shared(*pair) for pair in zip(*segments, strict=True)]
    return None if None in texts else "".join(f"/{text}" for text in texts)


def _stretched(template: Template, count: int) -> tuple[Segment, ...]:
    """Return the segments of a template, with those that the rest of a path stands for."""
    *others, last = template.segments
    if not last.tail:
        return template.segments
    return (*others, *[last._replace(tail=False)] * (count - len(others)))


def _shared(one: Segment, other: Segment) -> str | None:
    literal = next((each.prefix for each in (one, other) if each.capture is None), None)
    if literal is None:
        prefix = max(one.prefix, other.prefix, key=len)
        literal = f"{prefix}{_ANY}{max(one.suffix, other.suffix, key=len)}"
    return literal if _takes(one, literal) and _takes(other, literal) else None


def _takes(segment: Segment, text: str) -> bool:
    return text == segment.prefix if segment.capture is None else segment.match(text) is not None
