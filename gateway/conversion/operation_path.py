"""Operation path: the operations of one request from the client's to the service's version."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from gateway.conversion.additional import LoadedDocument, OperationShapes
from gateway.conversion.chain import Conversion
from gateway.conversion.conversion_error import ConversionError, ErrorPlace
from gateway.conversion.message import QueryStep
from gateway.conversion.operation import (
    Captures,
    FoundOperation,
    MappedOperation,
    OperationPattern,
    Substitute,
)
from gateway.conversion.parameter_change import (
    LINK,
    QUERY,
    ParameterLines,
    parse_query,
    rewrite_lines,
    write_query,
)
from gateway.conversion.version_step import Direction, OperationChoice, VersionStep
from gateway.versions.version import Version


class OperationPath(NamedTuple):
    """A request as it is sent to the service, and the conversions that apply to it.

    Attributes:
        substitute: The service or refusal that responds if the next version lacks the operation;
            otherwise None.
        meant: The method, in the service's version, that an OPTIONS request asks about. None for
            any other request, or if no operation is declared for the path.
    """

    method: str
    path: str
    query: str | None
    version: Version
    request: Conversion
    response: Conversion
    operations: tuple[MappedOperation | None, ...]
    path_of: Callable[[Version], str]
    substitute: Substitute | None = None
    query_steps: tuple[QueryStep, ...] = ()
    meant: str | None = None


FindDocumented = Callable[[Version, str, str | None], tuple[LoadedDocument, OperationShapes] | None]
"""Finds the operation of a request in the document of a version, by its method and path there.

Without a path, the request has the path of its endpoint."""


def find_operation_path(
    request: Conversion,
    response: Conversion,
    method: str,
    path: Callable[[Version], str],
    query: str | None,
    message: object = None,
    meant: str | None = None,
    find: FindDocumented | None = None,
) -> OperationPath:
    """Return the operation path of a request.

    An OPTIONS request is sent to the path of the operation that it asks about. The changes of that
    operation do not apply to the OPTIONS request itself.

    Args:
        path: Returns the path of a request without a declared operation, for a service that
            implements the given version.
        meant: The method that an OPTIONS request asks about (Fetch, section 4.8). If it is None,
            the first method with an operation at the path is used.
        find: Finds the operation in the documents of the older versions; None without documents.

    Raises:
        ConversionError: The request does not fit the operations or the changes of its query.
    """
    walk = _Walk(request, method, path, parse_query(query), message, meant, find)
    given, substitute = walk.lines, None
    for version_step in request.version_steps:
        substitute = walk.step(version_step)
        if substitute is not None:
            break
    way, back = tuple(walk.choices), tuple(reversed(walk.choices))
    to_service = request.along(way)
    to_client = response.along(back, len(response.version_steps) - len(back))
    if walk.documented:
        to_service = to_service.filtered(walk.documented)
        to_client = to_client.filtered(walk.documented)
    return OperationPath(
        walk.method,
        walk.path(walk.version),
        query if walk.lines == given else write_query(walk.lines),
        walk.version,
        to_service,
        to_client,
        tuple(choice.operation for choice in way),
        walk.path,
        substitute,
        tuple(walk.query_steps),
        walk.meant,
    )


class _Walk:
    """A request on its way to the service's version: method, path and query as of `version`.

    Attributes:
        about: The methods among which the operation of an OPTIONS request is looked up.
        documented: The operation of the request in the documents of the older versions.
    """

    def __init__(
        self,
        request: Conversion,
        method: str,
        path: Callable[[Version], str],
        lines: ParameterLines,
        message: object,
        meant: str | None,
        find: FindDocumented | None,
    ) -> None:
        self.method, self.path, self.lines = method, path, lines
        self.version = request.version_steps[0].source
        self.about: Iterable[str] = ()
        self.meant = meant
        if method == _OPTIONS:
            self.about = (_OPTIONS, *_METHODS) if meant is None else (meant,)
            self.meant = None
        self.choices: list[OperationChoice] = []
        self.query_steps: list[QueryStep] = []
        self.documented: dict[Version, tuple[LoadedDocument, OperationShapes]] = {}
        self._request = request
        self._upwards = request.direction is Direction.UP
        self._endpoint_path = path
        self._message = message
        self._find_documented = find if self._upwards else None

    def step(self, version_step: VersionStep) -> Substitute | None:
        """Convert method, path and query to the next version; raises ConversionError.

        If that version lacks the operation, the request is unchanged, and the result is what
        responds instead.
        """
        found = self._find(version_step)
        target = None if found is None else found.operation.side(newer=self._upwards)
        substitute = self._substitute(version_step, found, target)
        if substitute is None:
            self._convert(version_step, found, target)
        return substitute

    def _find(self, version_step: VersionStep) -> FoundOperation | None:
        """Return the operation for the first of the methods that has one.

        Operations that exist in the next version are preferred.
        """
        if version_step.table is None:
            return None
        path, lacking = self.path(version_step.source), None
        for method in self.about or (self.method,):
            found = version_step.table.find(method, path, self.lines)
            if found is not None and found.operation.substitute is None:
                return found
            lacking = lacking or found
        return lacking

    def _substitute(
        self,
        version_step: VersionStep,
        found: FoundOperation | None,
        target: OperationPattern | None,
    ) -> Substitute | None:
        if found is not None and target is None:
            return self._lacking(version_step, found)
        foreign = self._foreign(version_step, found, target)
        return None if foreign is None else self._of_another_version(version_step, foreign, found)

    def _foreign(
        self,
        version_step: VersionStep,
        found: FoundOperation | None,
        target: OperationPattern | None,
    ) -> MappedOperation | None:
        """Return an operation that only the next version has and that the request would reach.

        The value of a capture may turn a path into the path of another operation. For example,
        `/orders/7:cancel` matches `/orders/{id}` in the client's version, and another operation in
        the next version.
        """
        lacked, version = version_step.lacked, version_step.target
        if lacked is None:
            return None
        if found is None or target is None:
            foreign = lacked.find(self.method, self.path(version), self.lines)
            return None if foreign is None else foreign.operation
        after = self.method if self.method == "HEAD" else target.method or self.method
        path = target.path(found.captures, version)
        foreign = lacked.find(after, path, target.written(found.captures, found.rest))
        if foreign is None or foreign.template.literal <= target.template.literal:
            return None
        return foreign.operation

    def _of_another_version(
        self, version_step: VersionStep, operation: MappedOperation, found: FoundOperation | None
    ) -> Substitute:
        """Return the refusal of an operation that the client's version never had.

        The refusal is a 405 with the allowed methods if the configuration refuses all methods at a
        path, but the client's version has operations at the path.
        """
        given = operation.substitute or Substitute(None)
        given = given._replace(service=None, usual="This operation belongs to another version.")
        side = operation.newer or operation.older
        whole = found is None and side is not None and side.method is None
        if version_step.table is None or not (whole or given.status == 405):
            return given
        methods = version_step.table.methods(self.path(version_step.source), self.lines)
        if given.status == 405:
            return given._replace(methods=methods)
        return Substitute(None, 405, methods=methods) if methods else given

    def _lacking(self, version_step: VersionStep, found: FoundOperation) -> Substitute:
        """Return the substitute for an operation that the next version lacks.

        The refusal is a 405 with the allowed methods if the configuration refuses everything below
        a path, as with `/rest/{rest*}`, but declares operations with other methods there.
        """
        given, table = found.operation.substitute or Substitute(None), version_step.table
        if given.service is not None or table is None:
            return given
        path = self.path(version_step.source)
        if given.status == 405:
            return given._replace(methods=table.methods(path, self.lines))
        methods = table.methods(path, self.lines, found.template)
        return Substitute(None, 405, methods=methods) if methods else given

    def _convert(
        self,
        version_step: VersionStep,
        found: FoundOperation | None,
        target: OperationPattern | None,
    ) -> None:
        choice, method = self._choose(version_step, found, target)
        step, source = self._request.along((choice,), len(self.choices)), version_step.source
        documented = None
        if self._find_documented is not None:
            own = None if self.path is self._endpoint_path else self.path(source)
            documented = self._find_documented(source, self.method, own)
        if documented is not None:
            self.documented[source] = documented
            step = step.filtered({source: documented})
        rewrites, filtered = step.query_rewrites(self.method), step.query_steps(self.method)
        before = self.lines
        try:
            lines = rewrite_lines(
                before if target is None or found is None else found.rest,
                rewrites,
                QUERY.of(self._message),
            )
        except ConversionError as error:
            raise error.moved(self._sent) from None
        added: ParameterLines = []
        dropped: frozenset[str] = frozenset()
        captures: Captures = {}
        if found is not None and target is not None:
            dropped = frozenset(line.key for line in before) - {line.key for line in found.rest}
            captures = found.captures
            added = target.written(captures, [])
            lines = added + lines
            self.path = partial(target.path, captures)
        self.query_steps.append(
            QueryStep(
                source,
                version_step.target,
                filtered[0].rewrites if documented is not None and filtered else rewrites,
                dropped,
                tuple(added),
                captures,
            )
        )
        self.choices.append(choice)
        self.method, self.lines, self.version = method, lines, version_step.target

    def _choose(
        self,
        version_step: VersionStep,
        found: FoundOperation | None,
        target: OperationPattern | None,
    ) -> tuple[OperationChoice, str]:
        """Return the changes that apply in this step, and the method after it."""
        if found is None or target is None:
            return version_step.choice(None, self.method), self.method
        if self.about and target.method is not None:
            self.meant, self.about = target.method, (target.method,)
            return version_step.choice(None, self.method), self.method
        method = self.method if self.method == "HEAD" else target.method or self.method
        return version_step.choice(found.operation, self.method, method), method

    def _sent(self, place: ErrorPlace) -> ErrorPlace:
        for query_step in reversed(self.query_steps):
            place = query_step.origin(place)
        return place


def find_link(
    conversion: Conversion, back: Conversion, path: Callable[[Version], str], query: str | None
) -> OperationPath | None:
    """Return the operation path of a URL in a response.

    Returns None if the target version lacks the operation. Clients usually request a URL with GET.
    Another method is used if more version steps declare an operation for that method, or if its
    operation has more literal text in the path.

    Raises:
        ConversionError: The URL does not fit the operations or the changes of queries.
    """
    tables = [
        (version_step.table, version_step.source)
        for version_step in conversion.version_steps
        if version_step.table is not None
    ]
    first = _METHODS[0]
    for table, source in tables[:1]:
        first = table.method_of_link(partial(path, source))
    asked = find_operation_path(conversion, back, first, path, query, LINK)
    if asked.substitute is None and all(asked.operations):
        return asked  # no other method can have more operations
    others = [
        find_operation_path(conversion, back, method, path, query, LINK)
        for method in _METHODS
        if method != first
    ]
    found = [asked, *others]
    best = max(found, key=lambda one: sum(each is not None for each in one.operations))
    return None if found[0].substitute or best.substitute else best


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_OPTIONS = "OPTIONS"
