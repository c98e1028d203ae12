"""Chains: the conversion between any two versions, composed of links between adjacent versions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import is_
from typing import NamedTuple

from gateway.base.headers import HeaderFields
from gateway.conversion.additional import (
    ANY,
    LoadedDocument,
    MessageFilter,
    OperationShapes,
)
from gateway.conversion.conversion_error import ErrorPlace, same_place
from gateway.conversion.media_filter import RequestMedia, preferred
from gateway.conversion.message import Message, QueryStep
from gateway.conversion.operation import WriteRule
from gateway.conversion.parameter_change import (
    ParameterChange,
    Rewrite,
    rewrite_fields,
    rewrite_query,
)
from gateway.conversion.steps import BodyConverting, BodyStep, Steps, body_steps, composed
from gateway.conversion.version_step import (
    Direction,
    OperationChoice,
    VersionLink,
    applying,
    carrying,
    fitting,
    is_success,
    making,
    message_steps,
    rewrites,
    status_kinds,
    version_steps_of,
)
from gateway.versions.version import Version

_GET, _POST = "GET", "POST"
_PATCH = "PATCH"
# Placeholders for any method, success status or other status that no version step mentions.
_OTHER_METHOD, _SUCCESS, _OTHER_STATUS = "", 299, 0
_OK, _CREATED = 200, 201  # the most frequent statuses, precomputed to speed up the lookup
_NO_ERRORS = frozenset({101, *range(300, 400)})  # statuses that mean neither success nor error
Documented = Mapping[Version, tuple[LoadedDocument, OperationShapes]]
"""The documents of the older versions, with the operation of one request in each of them."""
# Body conversions that already exist. The key has the `id()` of each link.
_Made = dict[tuple[int, ...], "BodyConversion | None"]


class BodyConversion:
    """The conversion of the bodies to which the same links apply.

    Args:
        filters: The filters for what the documents of the older versions lack, in the order in
            which they apply.
        base: The same conversion without filters; None without filters.

    Attributes:
        timeout: The maximum time in seconds for one body: the sum of the links' limits. None sets
            no limit.
        needs_message: Whether a change reads or writes parts of the message besides the body. The
            query and the header fields are then converted together with the body.
        convert: Converts a document. Changes that name fields apply to an object, or to each object
            in an array. Changes of the whole body apply to any document of the expected shape.
            Raises ConversionError if the document does not fit the declared changes. The location
            in the error refers to the original document; see `document.within`.
    """

    __slots__ = (
        *("_carrying", "_of_documents", "_steps", "convert", "direction"),
        *("filters", "groups", "keeps_malformed", "links", "tolerates"),
        *("maps_links", "needs_message", "of_request", "timeout", "varies"),
    )

    def __init__(
        self,
        links: tuple[VersionLink, ...],
        direction: Direction,
        of_request: bool = False,
        filters: tuple[MessageFilter, ...] = (),
        base: "BodyConversion | None" = None,
    ) -> None:
        self.links = links
        self.filters = filters
        self.direction = direction
        self.of_request = of_request
        self.needs_message = any(link.needs_message for link in links)
        self.varies = any(link.varies for link in links)
        self.maps_links = any(link.maps_links for link in links)
        self.timeout: float | None = sum(link.timeout or 0 for link in links) or None
        self.keeps_malformed = {link.keeps_malformed for link in links if link.changes} == {True}
        self.tolerates = any(link.tolerates for link in links)
        self.groups: list[tuple[Version, list[BodyStep]]] = []
        if base is not None:
            self.groups = base.groups
        else:
            # Filters apply between two version steps, so that these are not fused.
            split = any(link.additional is not None for link in links)
            for older, some in groupby(links, lambda link: link.older if split else None):
                self.groups.append((older or links[0].older, self._steps_of(tuple(some))))
        steps = self._filtered_steps() if filters else [s for _, some in self.groups for s in some]
        self._steps: Steps[BodyConverting] = Steps(
            tuple(step.convert for step in steps), tuple(step.origin for step in steps)
        )
        self.convert: BodyConverting = composed(self._steps)
        carried, fitted = tuple(map(carrying, links)), tuple(map(fitting, links))
        if base is not None:
            # A stream may have documents of another shape, which the document does not describe.
            self._carrying: BodyConversion | None = base.carrying
            self._of_documents: BodyConversion | None = base.of_documents
            return
        # None stands for this object itself and avoids a reference cycle. A snapshot without cycles
        # is freed as soon as its last reference is dropped.
        self._carrying = None
        if not all(map(is_, carried, links)):
            self._carrying = BodyConversion(carried, direction, of_request)
        self._of_documents = None
        if not all(map(is_, fitted, links)):
            self._of_documents = BodyConversion(fitted, direction, of_request)

    def _steps_of(self, links: tuple[VersionLink, ...]) -> list[BodyStep]:
        direction, of_request = self.direction, self.of_request
        if self.needs_message:
            return [*message_steps(links, direction, of_request)]
        return body_steps(task for link in links for task in link.tasks(direction, of_request))

    def _filtered_steps(self) -> list[BodyStep]:
        """Return the steps with the filter of each version where a body has its form."""
        up, filters = self.direction is Direction.UP, [*self.filters]
        steps: list[BodyStep] = []
        for older, some in self.groups:
            while filters and (filters[0].version <= older if up else filters[0].version > older):
                steps.append(self._filter_step(filters.pop(0)))
            steps += some
        return [*steps, *map(self._filter_step, filters)]

    def _filter_step(self, one: MessageFilter) -> BodyStep:
        return BodyStep(one.message if self.needs_message else one.body, same_place)

    def filtered(self, filters: tuple[MessageFilter, ...]) -> "BodyConversion":
        return BodyConversion(self.links, self.direction, self.of_request, filters, self)

    def split_at(self, begin: int) -> "tuple[BodyConversion, BodyConversion]":
        """Return the conversions before and from a link, whose filter belongs to the first one."""
        links, older = self.links, self.links[begin].older
        given = self.direction, self.of_request
        up = self.direction is Direction.UP
        first = [
            one for one in self.filters if (one.version <= older if up else one.version > older)
        ]
        return (
            BodyConversion(links[:begin], *given).filtered(tuple(first)),
            BodyConversion(links[begin:], *given).filtered(self.filters[len(first) :]),
        )

    @property
    def carrying(self) -> "BodyConversion":
        return self if self._carrying is None else self._carrying

    @property
    def of_documents(self) -> "BodyConversion":
        return self if self._of_documents is None else self._of_documents

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        """Map a location in the converted body to the location in the original body."""
        return self._steps.origin(place)


class _Part(NamedTuple):
    body: BodyConversion | None
    query: tuple[Rewrite, ...]
    headers: tuple[Rewrite, ...]
    loses_body: bool
    filters: Mapping[Version, MessageFilter] = {}


class _Parts(dict[tuple[str, int | None], _Part]):
    """The parts of a conversion by method and status; the status None stands for requests."""

    def __missing__(self, key: tuple[str, int | None]) -> _Part:
        method, status = key
        if (method, None) not in self:
            method = _GET if method == "HEAD" else _OTHER_METHOD
        if (method, status) not in self:
            status = _SUCCESS if status is not None and is_success(status) else _OTHER_STATUS
        return self[method, status]


class _FilteredParts(_Parts):
    """The parts of a conversion for one operation, with filters; each is created on first use."""

    def __init__(self, whole: "Conversion", documented: Documented) -> None:
        super().__init__()
        self._whole = whole
        self._documented = documented
        self._bodies: dict[tuple[object, ...], BodyConversion] = {}

    def __missing__(self, key: tuple[str, int | None]) -> _Part:
        method, status = key
        whole, part = self._whole, self._whole.parts[key]
        asked = _GET if method == "HEAD" else method
        filters: dict[Version, MessageFilter] = {}
        known: list[object] = [id(part.body)]
        keeps = False
        for step in whole.version_steps:
            after = None if status is None else step.status(method, status)
            policy, found = step.additional(asked, status), self._documented.get(step.older)
            shape = None if found is None or after is None else found[1].response(after)
            if policy is not None and found is not None and shape != ANY:
                filters[step.older] = MessageFilter(*found, policy, shape)
                known += [step.older, shape]
                keeps = all(one.keeps_malformed for one in step.links if one.additional is not None)
            status = after
        if filters:
            query = part.query
            if key[1] is None:
                steps = whole.query_steps(method)
                query = tuple(one for step in steps for one in _filtered_query(step, filters))
            body = self._bodies.get(tuple(known))
            if body is None:
                base = part.body
                if base is None:
                    base = BodyConversion((), whole.direction, key[1] is None)
                    base.keeps_malformed = keeps
                body = self._bodies[tuple(known)] = base.filtered(tuple(filters.values()))
                body.keeps_malformed = base.keeps_malformed
            part = part._replace(body=body, query=query, filters=filters)
        self[key] = part
        return part


_UNNAMED = ParameterChange((), lambda lines, _: lines, lambda lines, _: lines)


def _filtered_query(
    step: QueryStep, filters: Mapping[Version, MessageFilter], *, counts: bool = True
) -> tuple[Rewrite, ...]:
    """Return the changes of a query, after the filter of the version from which they convert."""
    one = filters.get(step.source)
    if one is None:
        return tuple(step.rewrites)
    return Rewrite(one.query if counts else one.silently, _UNNAMED, True), *step.rewrites


class Conversion:
    """The conversion of messages from one version to another, through all links between the two.

    Attributes:
        goes_beyond_bodies: Whether a link reads or converts parts of a response besides its body.
        shows_message: Whether a change of the query or of header fields reads the whole message.
        filters_requests: Whether a link applies only to requests with certain media types; see
            `of_request`.
        filters_responses: Whether a link applies only to responses with certain media types; see
            `of_response`.
        by_request: Whether a plan depends on the operation, the media types or the method of the
            request: operations are declared, links have media types, or writes are merged.
        merges: Whether a link or one of its operations merges writes.
    """

    __slots__ = (
        *("_along", "_by_type", "_filtered", "_made", "_query_steps", "_whole", "by_request"),
        *("_source", "changes_fields", "changes_query", "filters_requests", "filters_responses"),
        *("changes_status", "direction", "drops_body", "goes_beyond_bodies", "has_operations"),
        *("links", "makes_bodies", "needs_message", "parts", "shows_message", "version_steps"),
        "merges",
    )

    def __init__(self, links: tuple[VersionLink, ...], direction: Direction) -> None:
        self.links = links
        self.direction = direction
        self.version_steps = tuple(version_steps_of(links, direction))
        self._along: dict[tuple[tuple[OperationChoice, ...], int], Conversion] = {}
        self._filtered: dict[tuple[OperationShapes, ...], Conversion] = {}
        self._whole: BodyConversion | None = None
        # The conversion without filters, and the documents for the filters.
        self._source: tuple[Conversion, Documented] | None = None
        self.has_operations = any(step.table is not None for step in self.version_steps)
        self.changes_query = any(link.query for link in links)
        self.changes_fields = any(link.headers for link in links)
        self.changes_status = any(link.status for link in links)
        self.filters_requests = any(link.media is not None for link in links)
        self.merges = any(
            link.writes or any(one.writes for one in link.operations or ()) for link in links
        )
        self.by_request = self.has_operations or self.filters_requests or self.merges
        self.filters_responses = any(link.response_type is not None for link in links)
        self._by_type: dict[tuple[bool, ...], Conversion] = {}
        self.needs_message = any(link.needs_message for link in links)
        self.shows_message = any(link.shows_message for link in links)
        self.goes_beyond_bodies = any(link.goes_beyond_bodies for link in links)
        up, bodies = direction is Direction.UP, {link.body_in_newer for link in links}
        self.drops_body = (not up) in bodies
        # Conversions that create a body for a request without a body. The key is True for a request
        # that becomes a PATCH.
        self._made = {
            patch: BodyConversion(
                tuple(making(self.version_steps, newer=up, patch=patch)), direction, True
            )
            for patch in ((False, True) if up in bodies else ())
        }
        self.makes_bodies = bool(self._made)
        kinds = status_kinds(links, (None, _OK, _CREATED, _SUCCESS, _OTHER_STATUS))
        one_of = {kind: status for status, kind in kinds.items()}
        known: _Made = {(False,): None}
        named = (link.methods for link in links if link.methods is not None)
        methods = frozenset({_GET, _PATCH, _POST, _OTHER_METHOD}).union(*named)
        self.parts = _Parts()
        for method in methods:
            alike = {kind: self._part(method, status, known) for kind, status in one_of.items()}
            self.parts |= {(method, status): alike[kind] for status, kind in kinds.items()}
        self._query_steps = {method: tuple(self._steps_of(method)) for method in methods}

    def at(self, path: str) -> "Conversion":
        links = tuple(link for link in self.links if link.paths is None or path in link.paths)
        # Most links apply at every endpoint, and a conversion with many operations is slow to
        # create.
        return self if len(links) == len(self.links) else Conversion(links, self.direction)

    def media_key(self, media: RequestMedia) -> tuple[bool, ...]:
        """Return which of the links with media filters apply to a request."""
        return tuple(link.media.matches(media) for link in self.links if link.media is not None)

    def of_request(self, media: RequestMedia) -> "Conversion":
        """Return a conversion with the links that apply to a request and its response."""
        if not self.filters_requests:
            return self
        return Conversion(tuple(link.of_request(media) for link in self.links), self.direction)

    def of_response(self, fields: HeaderFields) -> "Conversion":
        """Return a conversion with the links that apply to a response with these header fields."""
        if not self.filters_responses:
            return self
        if self._source is not None:
            whole, documented = self._source
            return whole.of_response(fields).filtered(documented)
        found = preferred(
            value.decode("latin-1") for name, value in fields if name.lower() == b"content-type"
        )
        key = tuple(
            link.response_type.match(found) for link in self.links if link.response_type is not None
        )
        if key not in self._by_type:
            links = tuple(link.of_response(found) for link in self.links)
            self._by_type[key] = Conversion(links, self.direction)
        return self._by_type[key]

    def along(self, choices: tuple[OperationChoice, ...], start: int = 0) -> "Conversion":
        """Return a conversion with only the links that apply to one request, or to its response.

        Args:
            choices: The operation of the request in successive version steps.
            start: The index of the version step of the first choice. Version steps before this
                index, and after the last choice, are left out.
        """
        made = self._along.get((choices, start))
        if made is None:
            version_steps = self.version_steps[start : start + len(choices)]
            links = (
                link
                for version_step, choice in zip(version_steps, choices, strict=True)
                for link in version_step.chosen(choice)
            )
            made = self._along[choices, start] = Conversion(tuple(links), self.direction)
        return made

    def filtered(self, documented: Documented) -> "Conversion":
        """Return the conversion with filters for what the documents of the older versions lack.

        Args:
            documented: The operation of one request in each of these documents.
        """
        key = tuple(operation for _, operation in documented.values())
        made = self._filtered.get(key)
        if made is None:
            made = self._filtered[key] = Conversion((), self.direction)
            made.links, made.version_steps = self.links, self.version_steps
            made._made, made.makes_bodies = self._made, self.makes_bodies
            made._query_steps, made.changes_query = self._query_steps, True
            made.changes_fields, made.changes_status = self.changes_fields, self.changes_status
            made.drops_body, made.has_operations = self.drops_body, self.has_operations
            made.needs_message, made.shows_message = self.needs_message, self.shows_message
            made.goes_beyond_bodies = self.goes_beyond_bodies
            made.filters_requests = self.filters_requests
            made.filters_responses = self.filters_responses
            made.merges, made.by_request = self.merges, self.by_request
            made._source = self, documented
            made.parts = _FilteredParts(self, documented)
        return made

    def for_request(self, method: str) -> BodyConversion | None:
        return self.parts[method, None].body

    def for_document(self, method: str) -> BodyConversion | None:
        """Return the conversion of a request with a whole document, also if it is a PATCH."""
        part = self.parts[method, None]
        if method != _PATCH or part.body is None:
            return part.body
        if self._whole is None:
            links = tuple(applying(self.version_steps, method, None)[0])
            asking = any(link.tolerates or not link.unfit.refuses for link in links)
            made = BodyConversion(links, self.direction, asking)
            self._whole = made.filtered(tuple(part.filters.values()))
        return self._whole

    def write_rule(self, method: str) -> WriteRule | None:
        """Return how writes with a method are merged; None if they are not merged.

        If several links merge writes, documents without entity tags are accepted only if each link
        accepts them.
        """
        links = (one for one in self.links if one.methods is None or method in one.methods)
        rules = [one for link in links if (one := link.writes) and method in one.methods]
        if not rules:
            return None
        keys = {at: key for rule in rules for at, key in rule.keys.items()}
        read = next((rule.read for rule in rules if rule.read is not None), None)
        accepts = all(rule.accepts_untagged for rule in rules)
        return WriteRule(frozenset({method}), keys, read, accepts)

    def made(self, method: str) -> BodyConversion | None:
        """Return the conversion that creates a body from `{}` for a request without a body."""
        return None if method == "HEAD" else self._made.get(method == _PATCH)

    def for_response(self, method: str, status: int) -> BodyConversion | None:
        """Return the conversion of the body of a response, or None if no change applies to it.

        Changes describe the bodies of successful responses (2xx). The body of a redirect does not
        describe the resource, and the body of an error has a structure of its own. A link does not
        convert them unless it lists their status.
        """
        return self.parts[method, status].body

    def status(self, method: str, status: int) -> int:
        if self.changes_status:
            for version_step in self.version_steps:
                status = version_step.status(method, status)
        return status

    def loses_body(self, method: str, status: int) -> bool:
        """Return whether the status becomes 204 in a version in between, which removes the body."""
        return self.changes_status and self.parts[method, status].loses_body

    def query(self, method: str, query: str | None, message: object = None) -> str | None:
        """Convert the raw query of a request or of a URL in a response; may raise ConversionError.

        Args:
            message: The request, or LINK for a URL in a response.
        """
        rewrites = self.parts[method, None].query
        return rewrite_query(query, rewrites, message) if rewrites else query

    def query_rewrites(self, method: str) -> tuple[Rewrite, ...]:
        return self.parts[method, None].query

    def query_steps(self, method: str) -> tuple[QueryStep, ...]:
        known = self._query_steps
        steps = known.get(method) or known[_GET if method == "HEAD" else _OTHER_METHOD]
        filters = self.parts[method, None].filters
        if not filters:
            return steps
        return tuple(
            step._replace(rewrites=_filtered_query(step, filters, counts=False)) for step in steps
        )

    def fields(
        self,
        method: str,
        status: int | None,
        fields: list[tuple[bytes, bytes]],
        message: Message | None = None,
    ) -> list[tuple[bytes, bytes]]:
        """Convert the header fields of a message; the status is None for those of a request."""
        # Protocol switches and redirects are not errors. A 304 has the header fields that a 200
        # response would have (RFC 9110, section 15.4.5).
        rewrites = self.parts[method, _OK if status in _NO_ERRORS else status].headers
        return rewrite_fields(fields, rewrites, message) if rewrites else fields

    def _part(self, method: str, status: int | None, made: _Made) -> _Part:
        links, lost = applying(self.version_steps, method, status)
        kept = links[lost or 0 :]
        needs = any(link.needs_message for link in kept)
        bare = (replace(link, changes=(), forms=None, events={}) for link in links[: lost or 0])
        with_bodies = tuple(link for link in (*bare, *kept) if link.changes_bodies or needs)
        if method == _PATCH and status is None:
            with_bodies = tuple(link.for_patch() for link in with_bodies)
        # If unfit values are kept or omitted, requests need a separate conversion.
        asking = status is None and any(
            link.tolerates or not link.unfit.refuses for link in with_bodies
        )
        same = asking, *map(id, with_bodies)  # links can hold JSON values, which have no hash
        if same not in made:
            made[same] = BodyConversion(with_bodies, self.direction, asking)
        return _Part(
            made[same],
            rewrites((link.query for link in links), self.direction),
            rewrites((link.headers for link in links), self.direction, of_request=status is None),
            lost is not None,
        )

    def _steps_of(self, method: str) -> Iterator[QueryStep]:
        for step in self.version_steps:
            links = (link.query for link in step.links if link.applies(method, None))
            yield QueryStep(step.source, step.target, rewrites(links, self.direction))


def compose(
    ascending: Sequence[Version],
    links: Mapping[Version, Sequence[VersionLink]],
    source: Version,
    target: Version,
) -> Conversion:
    """Return the conversion from one version to another, given the versions in ascending order.

    Args:
        links: The declared links by their older version, in the order of an upgrade.

    Raises:
        LookupError: No link is declared between two adjacent versions. The arguments of the error
            are these two versions.
    """
    low, high = sorted((ascending.index(source), ascending.index(target)))
    for older, newer in zip(ascending[low:high], ascending[low + 1 : high + 1], strict=True):
        if older not in links:
            raise LookupError(older, newer)
    chain = tuple(link for older in ascending[low:high] for link in links[older])
    if source < target:
        return Conversion(chain, Direction.UP)
    return Conversion(chain[::-1], Direction.DOWN)
