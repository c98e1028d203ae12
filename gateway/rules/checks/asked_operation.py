"""The operations of a version's OpenAPI document, as `check` looks at them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import compose
from gateway.conversion.operations.operation import MappedOperation
from gateway.conversion.version_link import VersionLink
from gateway.routing.snapshot import Api
from gateway.verify.located_operation import LocatedOperation, find_operation
from gateway.verify.openapi.openapi import Operation
from gateway.versions.version import Version

# A warning lists so many operations.
_LISTED = 5


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """An operation of a document, at one endpoint that leads to it.

    Attributes:
        operation: as the document has it.
        path: of the endpoint.
        mapped: the operations that the rules declare for it, towards the neighbouring versions.
    """

    operation: Operation
    path: str
    mapped: frozenset[MappedOperation] = frozenset()

    def is_changed_by(self, link: VersionLink, status: int | None) -> bool:
        """Whether a link applies to the request, or to the answer with a status."""
        if link.operations is not None:
            if self.mapped.isdisjoint(link.operations):
                return False
            link = replace(link, operations=None)
        here = link.paths is None or self.path in link.paths
        return here and link.applies(self.operation.method, status)


def asked_operations(
    api: Api, version: Version, located: Iterable[LocatedOperation]
) -> Iterator[AskedOperation]:
    """Yield the operations of a version's document to which endpoints lead."""
    ladder = list(api.versions.values())
    place = ladder.index(version)
    ways = [
        (compose(ladder, api.links, version, other), compose(ladder, api.links, other, version))
        for other in (*ladder[max(0, place - 1) : place], *ladder[place + 1 : place + 2])
        if min(version, other) in api.links
    ]
    for one in located:
        for path in one.captures:
            found = (
                find_operation(one, asking.at(path), answering.at(path))
                for asking, answering in ways
            )
            mapped = (
                each
                for operation_path in found
                if operation_path
                for each in operation_path.operations
            )
            declared = frozenset(each for each in mapped if each is not None)
            yield AskedOperation(one.operation, path, declared)


def warn_of_unreached(
    api: Api, version: Version, located: Iterable[LocatedOperation], mistakes: Mistakes
) -> None:
    """Warn of the operations of a version's document to which no endpoint leads."""
    at = ("apis", api.name, "versions", str(version), "schema")
    names = []
    for one in located:
        if one.twin:
            mistakes.warn(
                f"warning: {one.name} of this document is {one.twin} but for the names of its"
                " parameters, so that no request is for it; keep one of the two",
                *at,
            )
        elif one.reason:
            names.append(one.name)
    if names:
        more = f" and {len(names) - _LISTED} more" if names[_LISTED:] else ""
        listed = ", ".join(names[:_LISTED])
        mistakes.warn(f"warning: no endpoint leads to {listed}{more} of this document", *at)
