"""MessageStep: converts the query and the header fields of a message together with its body."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from gateway.conversion.change import Whole
from gateway.conversion.changes.kept import fitting_whole
from gateway.conversion.conversion_error import ErrorPlace
from gateway.conversion.document import Document, JsonForm
from gateway.conversion.message.carry import is_carry
from gateway.conversion.message.message import Message, message_of
from gateway.conversion.operations.operation import MappedOperation, converted_status
from gateway.conversion.operations.operation_table import OperationTable
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    Rewrite,
    place_before,
    rewrite_lines,
)
from gateway.conversion.steps import BodyStep, body_steps
from gateway.conversion.version_link import Direction, VersionLink, is_success, rewrites
from gateway.versions.version import Version


class MessageStep(NamedTuple):
    """A step at the begin or at the end of a link, which leaves the body as it is.

    Attributes:
        source: The version before the link.
        target: The version after the link.
        query: The changes of the query to apply here.
        headers: The changes of the header fields to apply here.
        is_first: Whether the step is the first one between the two versions.
        is_last: Whether the step is the last one between the two versions.
    """

    source: Version
    target: Version
    query: tuple[Rewrite, ...]
    headers: tuple[Rewrite, ...]
    is_first: bool
    is_last: bool

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        """Return where a place was before the step."""
        place = place_before(place, self.headers, FIELDS)
        return place_before(place, self.query, QUERY)

    def convert(self, document: Document, form: JsonForm) -> Document:
        """Convert the message of the form, if there is one, and return the body unchanged."""
        message = message_of(form)
        if message is not None:
            # Changes are shown the message as it was given, as they are where no body is converted.
            given = message.given if self.headers or self.query else None
            if self.headers:
                message.headers[:] = rewrite_lines(message.headers, self.headers, FIELDS.of(given))
            if message.status is None:
                self._convert_query(message, given)
            else:
                message.query[:] = message.way.at(max(self.source, self.target))
        return document

    def _convert_query(self, message: Message, given: Message | None) -> None:
        version_step, lines = message.way.version_step(self.source, self.target), message.query
        if self.is_first:
            lines = version_step.without(lines)
        if self.query:
            lines = rewrite_lines(lines, self.query, QUERY.of(given))
        message.query[:] = [*version_step.added, *lines] if self.is_last else lines


_NO_CONTENT = 204


class OperationChoice(NamedTuple):
    """What one request is between two adjacent versions.

    Attributes:
        operation: The operation of the request; None where none is declared for it.
        methods: Its method in both versions, as far as links distinguish methods.
    """

    operation: MappedOperation | None
    methods: frozenset[str]


class VersionStep(NamedTuple):
    """The part of a conversion between two adjacent versions.

    Attributes:
        source: The version that the version step converts from.
        target: The version that the version step converts to.
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


def version_steps_of(links: tuple[VersionLink, ...], direction: Direction) -> Iterator[VersionStep]:
    """Yield the version steps of links, which are in the order of the direction."""
    up = direction is Direction.UP
    for (older, newer), some in groupby(links, lambda link: (link.older, link.newer)):
        here = tuple(some)
        declared = dict.fromkeys(each for link in here for each in link.operations or ())
        table = OperationTable(declared, newer=not up) if declared else None
        only = [each for each in declared if each.side(newer=not up) is None]
        lacked = OperationTable(only, newer=up) if only else None
        source, target = (older, newer) if up else (newer, older)
        yield VersionStep(source, target, here, table, lacked)


def applying(
    version_steps: Sequence[VersionStep], method: str, status: int | None
) -> tuple[list[VersionLink], int | None]:
    """Return the links that apply to a message, and how many of them its body does not come to.

    That number is None where the body comes to all of them. An answer that is a 204 in a version on
    the way has no body there, and so none for the versions behind it but what changes make.

    Args:
        version_steps: The version steps.
        method: The method of the request.
        status: The status of an answer; None for a request.
    """
    found: list[VersionLink] = []
    lost: int | None = None
    for index, version_step in enumerate(version_steps):
        if status == _NO_CONTENT and index:
            lost = len(found)
        newer = after = status
        if status is not None:
            after = version_step.status(method, status)
            newer = after if version_step.source < version_step.target else status
        found += [link for link in version_step.links if link.applies(method, newer)]
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


def path_moved(version_steps: Sequence[VersionStep], prefix: str) -> str:
    """Return what the operations below a prefix of paths have above them behind version steps.

    It is the same prefix where no operation is declared below it.
    """
    for version_step in version_steps:
        moved = (
            None
            if version_step.table is None
            else version_step.table.above(prefix, version_step.source, version_step.target)
        )
        prefix = prefix if moved is None else moved
    return prefix


def making(
    version_steps: Sequence[VersionStep], *, newer: bool, patch: bool
) -> Iterator[VersionLink]:
    """Yield the links that make the body of a request, which the first version sends without one.

    Until a step makes a body, there is nothing to change, unless a value is carried into one. What
    that step makes leaves nothing out, so that it is a patch from the next step on.

    Args:
        version_steps: The version steps, with the links that apply to the request.
        newer: Whether the version steps lead to the newer version.
        patch: Whether the request becomes a PATCH.
    """
    made = False
    for version_step in version_steps:
        makes = any(link.body_in_newer is newer for link in version_step.links)
        for link in version_step.links:
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
