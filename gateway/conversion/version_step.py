"""Version steps: the declared changes between two adjacent versions, and which of them apply."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from gateway.conversion.additional import Additional, AdditionalPolicy
from gateway.conversion.change import Change, for_patch
from gateway.conversion.conversion_error import ConversionError, ErrorPlace
from gateway.conversion.document import PLAIN, Document, JsonForm, JsonObject
from gateway.conversion.media_filter import MediaFilter, MediaRanges, RequestMedia
from gateway.conversion.message import Message, message_of
from gateway.conversion.operation import (
    MappedOperation,
    OperationTable,
    WriteRule,
    converted_status,
)
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    ParameterChange,
    Rewrite,
    in_direction,
    place_before,
    rewrite_lines,
)
from gateway.conversion.scalars import NUMBER_TEXT
from gateway.conversion.steps import BodyStep, ConversionTask, body_steps
from gateway.conversion.unfit import REFUSE_UNFIT, Unfit, UnfitPolicy
from gateway.versions.mechanisms.media_range import MediaRange
from gateway.versions.version import Version

# Form fields are strings. Browsers send `on` for a checked box (WHATWG HTML, section 4.10.5.4).
_BOOLEANS = {"true": True, "1": True, "on": True, "false": False, "0": False}
# Python raises ValueError for integers with more than 4300 digits (sys.set_int_max_str_digits).
_MOST_DIGITS = 400


@dataclass(frozen=True, slots=True)
class FormTypes:
    """The form fields that are not plain strings. Every other field is a single string.

    Attributes:
        in_newer: Whether the newer version accepts forms. If false, the older version does.
        lists: The names of fields that are lists even if they occur only once.
    """

    in_newer: bool
    numbers: Collection[str] = ()
    booleans: Collection[str] = ()
    lists: Collection[str] = ()

    def typed(self, fields: JsonObject, *, keeps: bool = False) -> JsonObject:
        """Return the fields of a form, converted from strings to their declared types.

        A string that cannot be converted raises ConversionError, or stays a string with `keeps`.
        """
        return {name: self._value(name, value, keeps) for name, value in fields.items()}

    def _value(self, name: str, value: Document, keeps: bool) -> Document:
        if isinstance(value, list):
            return [self._scalar(name, one, keeps) for one in value]
        scalar = self._scalar(name, value, keeps)
        return [scalar] if name in self.lists else scalar

    def _scalar(self, name: str, value: Document, keeps: bool) -> Document:
        if not isinstance(value, str):
            return value
        if name in self.numbers:
            if NUMBER_TEXT.match(value) and len(value) <= _MOST_DIGITS:
                return PLAIN.number(value)
            expected = "a number"
        elif name in self.booleans:
            if value in _BOOLEANS:
                return _BOOLEANS[value]
            expected = "a boolean"
        else:
            return value
        if keeps:
            return value
        raise ConversionError(f"expected {expected}, found another string", (name,))


class Direction(Enum):
    UP = "up"
    DOWN = "down"


class MessageKind(Enum):
    REQUEST = "requests"
    RESPONSE = "responses"
    ERROR = "errors"


BOTH = frozenset({MessageKind.REQUEST, MessageKind.RESPONSE})


@dataclass(frozen=True, slots=True)
class VersionLink:
    """One entry of `conversions`: declared changes between two adjacent versions of an API.

    Attributes:
        changes: The changes of bodies, in the order of an upgrade. A downgrade reverses the order.
        status: Maps statuses of the newer version to different statuses of the older version.
        varies: Whether equal bodies may be converted to different bodies, because a change depends
            on the request or on a Python function.
        timeout: The maximum time in seconds for the changes of one body; None sets no limit.
        body_in_newer: True if only requests of the newer version have a body, False if only
            requests of the older version have a body. None if the versions do not differ.
        forms: The types of form fields if one version accepts forms and the other version JSON.
            None if forms are not converted to JSON.
        events: Maps names of server-sent events in the newer version to different names in the
            older version.
        media: The media types of the requests that the link applies to, with their responses; None
            without a restriction.
        response_type: The media types of the responses that the link applies to; None without a
            restriction.
        additional: What happens to parts of messages that the older version's document lacks; None
            leaves the decision to other links.
        writes: How writes are merged into the service's document; None if they are not merged.
    """

    older: Version
    newer: Version
    changes: tuple[Change, ...]
    statuses: frozenset[int] = frozenset()
    on: frozenset[MessageKind] = BOTH
    methods: frozenset[str] | None = None
    paths: frozenset[str] | None = None
    query: tuple[ParameterChange, ...] = ()
    headers: tuple[ParameterChange, ...] = ()
    operations: tuple[MappedOperation, ...] | None = None
    status: Mapping[int, int] = field(default_factory=dict, hash=False)
    maps_links: bool = False
    digest: str = ""
    varies: bool = False
    needs_message: bool = False
    shows_message: bool = False
    timeout: float | None = None
    body_in_newer: bool | None = None
    forms: "FormTypes | None" = None
    unfit: UnfitPolicy = REFUSE_UNFIT
    additional: AdditionalPolicy | None = None
    keeps_malformed: bool = False
    events: Mapping[str, str] = field(default_factory=dict, hash=False)
    media: MediaFilter | None = None
    response_type: MediaRanges | None = None
    allow_loss: str = ""
    writes: WriteRule | None = None

    @property
    def changes_bodies(self) -> bool:
        return bool(self.changes or self.forms or self.events)

    @property
    def goes_beyond_bodies(self) -> bool:
        return bool(self.headers or self.status or self.needs_message or self.maps_links)

    def applies(self, method: str, status: int | None) -> bool:
        """Return whether the link applies to a request (the status is None) or response.

        The result is False for a link with `operations`; `VersionStep.chosen` selects such links.
        """
        if self.operations is not None or (self.methods is not None and method not in self.methods):
            return False
        if status is None:
            return MessageKind.REQUEST in self.on
        if is_success(status):
            return MessageKind.RESPONSE in self.on
        return status in self.statuses

    def of_request(self, media: RequestMedia) -> "VersionLink":
        """Return the link for a request and its response, without changes if it does not apply."""
        if self.media is None:
            return self
        return replace(self, media=None) if self.media.matches(media) else self._unchanging()

    def of_response(self, media_type: MediaRange | None) -> "VersionLink":
        if self.response_type is None:
            return self
        applies = self.response_type.match(media_type)
        return replace(self, response_type=None) if applies else self._unchanging()

    def _unchanging(self) -> "VersionLink":
        # The operations stay, since an operation that one entry declares is declared for the API.
        return VersionLink(self.older, self.newer, (), operations=self.operations)

    def for_patch(self) -> "VersionLink":
        return replace(self, changes=for_patch(self.changes))

    def tasks(self, direction: Direction, of_request: bool = False) -> Iterator[ConversionTask]:
        upwards = direction is Direction.UP
        for one in self.ordered(direction, of_request):
            keeps = one.unfit.of(of_request) is not Unfit.REFUSE
            yield one.task(upwards=upwards, keeps=keeps)

    def ordered(self, direction: Direction, of_request: bool = False) -> Iterable[Change]:
        changes: Iterable[Change] = self.changes
        if direction is Direction.DOWN:
            changes = reversed(self.changes)
        return [change.fitted(of_request) for change in changes] if self.tolerates else changes

    def decides(self, method: str, status: int | None) -> bool:
        """Return whether `additional` of the link applies to a message.

        Unlike changes, it also applies to errors whose status is not in `statuses`, since the
        document describes them.
        """
        if self.additional is None or status is None or is_success(status):
            return self.additional is not None and self.applies(method, status)
        if self.operations is not None or (self.methods is not None and method not in self.methods):
            return False
        return MessageKind.RESPONSE in self.on or status in self.statuses

    @property
    def tolerates(self) -> bool:
        policies = [change.unfit for change in self.changes]
        policies += [change.unfit for change in (*self.query, *self.headers)]
        return not all(policy.refuses for policy in policies)


def event_names(links: Sequence[VersionLink], direction: Direction) -> Callable[[str], str] | None:
    """Return a function that renames server-sent events, or None if no link renames events.

    If several names of the newer version map to the same older name, an upgrade uses the first.
    """

    def named(name: str) -> str:
        for link in links:
            if direction is Direction.DOWN:
                name = link.events.get(name, name)
            else:
                name = next((newer for newer, older in link.events.items() if older == name), name)
        return name

    return named if any(link.events for link in links) else None


def is_success(status: int) -> bool:
    return 200 <= status <= 299


def rewrites(
    changes: Iterable[Sequence[ParameterChange]], direction: Direction, *, of_request: bool = True
) -> tuple[Rewrite, ...]:
    upwards = direction is Direction.UP
    return tuple(
        one
        for some in changes
        if some
        for one in in_direction([each.fitted(of_request) for each in some], upwards=upwards)
    )


class _MessageStep(NamedTuple):
    source: Version
    target: Version
    query: tuple[Rewrite, ...]
    headers: tuple[Rewrite, ...]
    is_first: bool
    is_last: bool

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        place = place_before(place, self.headers, FIELDS)
        return place_before(place, self.query, QUERY)

    def convert(self, document: Document, form: JsonForm) -> Document:
        message = message_of(form)
        if message is not None:
            # Changes of the query and header fields read the message as it was before its
            # conversion, whether or not it has a body.
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
    operation: MappedOperation | None
    methods: frozenset[str]


class VersionStep(NamedTuple):
    """The part of a conversion between two adjacent versions.

    Attributes:
        table: The operations in the source version; None if no operations are declared.
        lacked: The operations that only the target version has; None if there are none.
    """

    source: Version
    target: Version
    links: tuple[VersionLink, ...]
    table: OperationTable | None
    lacked: OperationTable | None = None

    def choice(self, operation: MappedOperation | None, *methods: str) -> OperationChoice:
        known = frozenset().union(*(link.methods for link in self.links if link.methods))
        named = {"GET" if one == "HEAD" and one not in known else one for one in methods}
        return OperationChoice(operation, known & named)

    def chosen(self, choice: OperationChoice) -> Iterator[VersionLink]:
        """Yield the links that apply to one request, without their `methods` and `operations`.

        If the operation itself declares different statuses, a body in only one version, or
        `writes`, a link with these declarations comes first.
        """
        operation, methods = choice
        if operation is not None:
            statuses, in_newer = operation.statuses, operation.body_in_newer
            writes = operation.writes
            if statuses or in_newer is not None or writes is not None:
                older, newer = sorted((self.source, self.target))
                yield VersionLink(
                    older, newer, (), status=statuses, body_in_newer=in_newer, writes=writes
                )
        for link in self.links:
            here = link.operations is None or operation in link.operations
            if here and (link.methods is None or link.methods & methods):
                yield replace(link, methods=None, operations=None)

    @property
    def older(self) -> Version:
        return min(self.source, self.target)

    def additional(self, method: str, status: int | None) -> AdditionalPolicy | None:
        """Return what the last link that applies to a message decides; None if it passes.

        It applies only to requests from clients of the older version and to responses to them. The
        status is that of the newer version, or None for a request.
        """
        upwards = self.source < self.target
        if upwards != (status is None):
            return None
        # A downgrade has the links in reverse order.
        links = reversed(self.links) if upwards else self.links
        policy = next((link.additional for link in links if link.decides(method, status)), None)
        if policy is None:
            return None
        result = policy.requests if status is None else policy.responses
        return None if result is Additional.PASS else policy

    def status(self, method: str, status: int) -> int:
        upwards = self.source < self.target
        for link in self.links:
            if link.operations is None and (link.methods is None or method in link.methods):
                made = converted_status(link.status, status, upwards=upwards)
                if made != status:
                    return made
        return status


def version_steps_of(links: tuple[VersionLink, ...], direction: Direction) -> Iterator[VersionStep]:
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
    """Return the links that apply to a message, and how many of them do not convert its body.

    A response whose status becomes 204 in a version between source and target loses its body there.
    The links up to that version do not convert the body, and later links start without a body. The
    number is None if no version has the status 204.
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
    """Return groups of statuses to which the same links apply; None stands for requests."""
    moved = frozenset().union(*({*link.status, *link.status.values()} for link in links))
    listed = {link.statuses for link in links}
    return {
        status: status
        if status is None or status in moved
        else (is_success(status), *(status in some for some in listed))
        for status in (*others, *moved, *frozenset().union(*listed))
    }


def path_moved(version_steps: Sequence[VersionStep], prefix: str) -> str:
    """Convert a path prefix; a step without an operation below the prefix does not change it."""
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
    """Yield the links that create a body for a request that has no body in the first version.

    Up to the version step that creates the body, only changes that move a value into the body
    apply. The created body is complete. If the request becomes a PATCH (`patch`), later links treat
    the body as a patch.
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
    """Return a link with only the changes that move values out of or into the body.

    The returned changes fill in no defaults.
    """
    changes = tuple(change.for_patch() for change in link.changes if change.carried)
    return link if changes == link.changes else replace(link, changes=changes)


def fitting(link: VersionLink) -> VersionLink:
    """Return a link for the documents of a stream.

    A change of the whole body describes a complete response. A stream at the same path may contain
    documents of another shape, which the changes of the returned link leave unchanged.
    """
    changes = tuple(change.of_documents or change for change in link.changes)
    return link if changes == link.changes else replace(link, changes=changes)


def message_steps(
    links: Sequence[VersionLink], direction: Direction, of_request: bool
) -> Iterator[BodyStep]:
    """Yield the steps that convert the body, the query and the header fields, link by link.

    An upgrade converts the query and the header fields before the body; a downgrade converts them
    after the body. Changes of bodies therefore always read the query and the header fields of the
    newer version.
    """
    up = direction is Direction.UP
    for index, link in enumerate(links):
        source, target = (link.older, link.newer) if up else (link.newer, link.older)
        first = index == 0 or links[index - 1].older != link.older
        last = index == len(links) - 1 or links[index + 1].older != link.older
        changes = (
            rewrites([link.query], direction),
            rewrites([link.headers], direction, of_request=of_request),
        )
        inner = body_steps(link.tasks(direction, of_request))
        if up:
            step = _MessageStep(source, target, *changes, first, last)
            yield BodyStep(step.convert, step.origin)
            yield from inner
        else:
            step = _MessageStep(source, target, (), (), first, is_last=False)
            yield BodyStep(step.convert, step.origin)
            yield from inner
            step = _MessageStep(source, target, *changes, is_first=False, is_last=last)
            yield BodyStep(step.convert, step.origin)
