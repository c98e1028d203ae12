"""Hops: the part of a conversion between two adjacent versions, and which of it a request takes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from gateway.conversion.change import Whole
from gateway.conversion.changes.kept import fitting_whole
from gateway.conversion.message.carry import is_carry
from gateway.conversion.message.message_step import MessageStep
from gateway.conversion.operations.operation import MappedOperation, converted_status
from gateway.conversion.operations.operation_table import OperationTable
from gateway.conversion.steps import BodyStep, body_steps
from gateway.conversion.version_link import Direction, VersionLink, is_success, rewrites
from gateway.versions.version import Version

_NO_CONTENT = 204


class OperationChoice(NamedTuple):
    """What one request is between two adjacent versions.

    Attributes:
        operation: The operation of the request; None where none is declared for it.
        methods: Its method in both versions, as far as links distinguish methods.
    """

    operation: MappedOperation | None
    methods: frozenset[str]


class Hop(NamedTuple):
    """The part of a conversion between two adjacent versions.

    Attributes:
        source: The version that the hop converts from.
        target: The version that the hop converts to.
        links: The links between the two, in the order of the direction.
        table: The operations as the source has them; None where none are declared.
        lacked: The operations, as the target has them, that the source lacks; None without any.
    """

    source: Version
    target: Version
    links: tuple[VersionLink, ...]
    table: OperationTable | None
    lacked: OperationTable | None = None

    def choice(self, operation: MappedOperation | None, *methods: str) -> OperationChoice:
        """Return what a request with these methods is."""
        known = frozenset().union(*(link.methods for link in self.links if link.methods))
        named = {"GET" if one == "HEAD" and one not in known else one for one in methods}
        return OperationChoice(operation, known & named)

    def chosen(self, choice: OperationChoice) -> Iterator[VersionLink]:
        """Yield the links that apply to a request, for any method and operation."""
        operation, methods = choice
        if operation is not None:
            statuses, body_in_newer = operation.statuses, operation.body_in_newer
            if statuses or body_in_newer is not None:
                older, newer = sorted((self.source, self.target))
                yield VersionLink(older, newer, (), status=statuses, body_in_newer=body_in_newer)
        for link in self.links:
            here = link.operations is None or operation in link.operations
            if here and (link.methods is None or link.methods & methods):
                yield replace(link, methods=None, operations=None)

    def status(self, method: str, status: int) -> int:
        """Return the status of an answer as the target has it."""
        upwards = self.source < self.target
        for link in self.links:
            if link.operations is None and (link.methods is None or method in link.methods):
                made = converted_status(link.status, status, upwards=upwards)
                if made != status:
                    return made
        return status


def hops_of(links: tuple[VersionLink, ...], direction: Direction) -> Iterator[Hop]:
    """Yield the hops of links, which are in the order of the direction."""
    up = direction is Direction.UP
    for (older, newer), some in groupby(links, lambda link: (link.older, link.newer)):
        here = tuple(some)
        declared = dict.fromkeys(each for link in here for each in link.operations or ())
        table = OperationTable(declared, newer=not up) if declared else None
        only = [each for each in declared if each.side(newer=not up) is None]
        lacked = OperationTable(only, newer=up) if only else None
        source, target = (older, newer) if up else (newer, older)
        yield Hop(source, target, here, table, lacked)


def applying(
    hops: Sequence[Hop], method: str, status: int | None
) -> tuple[list[VersionLink], int | None]:
    """Return the links that apply to a message, and how many of them its body does not come to.

    That number is None where the body comes to all of them. An answer that is a 204 in a version on
    the way has no body there, and so none for the versions behind it but what changes make.

    Args:
        hops: The hops.
        method: The method of the request.
        status: The status of an answer; None for a request.
    """
    found: list[VersionLink] = []
    lost: int | None = None
    for index, hop in enumerate(hops):
        if status == _NO_CONTENT and index:
            lost = len(found)
        newer = after = status
        if status is not None:
            after = hop.status(method, status)
            newer = after if hop.source < hop.target else status
        found += [link for link in hop.links if link.applies(method, newer)]
        status = after
    return found, lost


def status_kinds(
    links: Sequence[VersionLink], others: Iterable[int | None]
) -> dict[int | None, object]:
    """Return the statuses that links name, and others, each with its kind.

    The same links apply to all statuses of a kind. None stands for requests.
    """
    moved = frozenset().union(*({*link.status, *link.status.values()} for link in links))
    listed = {link.statuses for link in links}
    return {
        status: status
        if status is None or status in moved
        else (is_success(status), *(status in some for some in listed))
        for status in (*others, *moved, *frozenset().union(*listed))
    }


def path_moved(hops: Sequence[Hop], prefix: str) -> str:
    """Return what the operations below a prefix of paths have above them behind hops.

    It is the same prefix where no operation is declared below it.
    """
    for hop in hops:
        moved = None if hop.table is None else hop.table.above(prefix, hop.source, hop.target)
        prefix = prefix if moved is None else moved
    return prefix


def making(hops: Sequence[Hop], *, newer: bool, patch: bool) -> Iterator[VersionLink]:
    """Yield the links that make the body of a request, which the first version sends without one.

    Until a hop makes a body, there is nothing to change, unless a value is carried into one. What
    that hop makes leaves nothing out, so that it is a patch from the next hop on.

    Args:
        hops: The hops, with the links that apply to the request.
        newer: Whether the hops lead to the newer version.
        patch: Whether the request becomes a PATCH.
    """
    made = False
    for hop in hops:
        makes = any(link.body_in_newer is newer for link in hop.links)
        for link in hop.links:
            if link.applies("", None):
                if made and patch:
                    link = link.for_patch()
                yield link if made or makes else carrying(link)
        made = made or makes


def carrying(link: VersionLink) -> VersionLink:
    """Return a link with those changes alone that move values beside the body, and no defaults."""
    changes = tuple(change.for_patch() for change in link.changes if is_carry(change))
    return link if changes == link.changes else replace(link, changes=changes)


def fitting(link: VersionLink) -> VersionLink:
    """Return a link whose changes of the whole body leave a body without the shape that they need.

    They describe a response as a whole. A stream at the same path may have other documents.
    """
    if not any(isinstance(change, Whole) for change in link.changes):
        return link

    changes = tuple(map(fitting_whole, link.changes))
    return link if changes == link.changes else replace(link, changes=changes)


def message_steps(
    links: Sequence[VersionLink], direction: Direction, of_request: bool
) -> Iterator[BodyStep]:
    """Yield the steps of bodies, with those of the query and the header fields around each link.

    In an upgrade they come first, in a downgrade last, so that changes of bodies find the
    message as the newer version has it.
    """
    up = direction is Direction.UP
    for index, link in enumerate(links):
        source, target = (link.older, link.newer) if up else (link.newer, link.older)
        first = index == 0 or links[index - 1].older != link.older
        last = index == len(links) - 1 or links[index + 1].older != link.older
        changes = (
            rewrites([link.query], direction),
            rewrites([link.headers], direction),
        )
        inner = body_steps(link.tasks(direction, of_request))
        if up:
            yield MessageStep(source, target, *changes, first, last)
            yield from inner
        else:
            yield MessageStep(source, target, (), (), first, is_last=False)
            yield from inner
            yield MessageStep(source, target, *changes, is_first=False, is_last=last)
