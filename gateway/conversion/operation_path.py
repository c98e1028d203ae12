"""Operation path: the operations of one request from the client's to the service's version."""

from collections.abc import Callable, Iterable, Sequence
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
    OperationTable,
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
    lines = given = parse_query(query)
    about: Iterable[str] = ()
    if method == _OPTIONS:
        about, meant = (_OPTIONS, *_METHODS) if meant is None else (meant,), None
    version, asked = request.version_steps[0].source, path
    upwards = request.direction is Direction.UP
    choices: list[OperationChoice] = []
    query_steps: list[QueryStep] = []
    substitute: Substitute | None = None
    documented: dict[Version, tuple[LoadedDocument, OperationShapes]] = {}
    for version_step in request.version_steps:
        before, added = lines, []
        found, target, substitute = _found(
            version_step, about or (method,), method, asked, lines, newer=upwards
        )
        if substitute is not None:
            break
        if found is None or target is None:
            choice, after = version_step.choice(None, method), method
        else:
            lines = found.rest
            if about and target.method is not None:
                choice, after, meant = version_step.choice(None, method), method, target.method
                about = (target.method,)
            else:
                after = method if method == "HEAD" else target.method or method
                choice = version_step.choice(found.operation, method, after)
        one, here = request.along((choice,), len(choices)), None
        if find is not None and upwards:
            moved = None if asked is path else asked(version_step.source)
            here = find(version_step.source, method, moved)
        if here is not None:
            documented[version_step.source] = here
            one = one.filtered({version_step.source: here})
        changes, steps = one.query_rewrites(method), one.query_steps(method)
        try:
            lines = rewrite_lines(lines, changes, QUERY.of(message))
        except ConversionError as error:
            raise error.moved(partial(_sent, query_steps)) from None
        dropped: frozenset[str] = frozenset()
        captures: Captures = {}
        if found is not None and target is not None:
            dropped = frozenset(line.key for line in before) - {line.key for line in found.rest}
            added = target.written(found.captures, [])
            lines = added + lines
            asked, captures = partial(target.path, found.captures), found.captures
        query_steps.append(
            QueryStep(
                version_step.source,
                version_step.target,
                steps[0].rewrites if here and steps else changes,
                dropped,
                tuple(added),
                captures,
            )
        )
        method, version = after, version_step.target
        choices.append(choice)
    way, back = tuple(choices), tuple(reversed(choices))
    to_service = request.along(way)
    to_client = response.along(back, len(response.version_steps) - len(back))
    if documented:
        to_service, to_client = to_service.filtered(documented), to_client.filtered(documented)
    return OperationPath(
        method,
        asked(version),
        query if lines == given else write_query(lines),
        version,
        to_service,
        to_client,
        tuple(choice.operation for choice in way),
        asked,
        substitute,
        tuple(query_steps),
        meant,
    )


def _found(
    version_step: VersionStep,
    methods: Iterable[str],
    method: str,
    asked: Callable[[Version], str],
    lines: ParameterLines,
    *,
    newer: bool,
) -> tuple[FoundOperation | None, OperationPattern | None, Substitute | None]:
    path, found, target = asked(version_step.source), None, None
    if version_step.table is not None:
        found = _about(version_step.table, methods, path, lines)
    if found is not None:
        target = found.operation.side(newer=newer)
    if version_step.lacked is not None and (found is None or target is not None):
        to = version_step.target
        foreign = _foreign(version_step.lacked, to, method, asked, lines, found, target)
        if foreign is not None:
            substitute = _of_another_version(foreign, version_step, path, lines, found)
            return found, target, substitute
    if found is not None and target is None:
        return found, None, _lacking(version_step, found, path, lines)
    return found, target, None


def _sent(version_steps: Sequence[QueryStep], place: ErrorPlace) -> ErrorPlace:
    for version_step in reversed(version_steps):
        place = version_step.origin(place)
    return place


def _about(
    table: OperationTable, methods: Iterable[str], path: str, lines: ParameterLines
) -> FoundOperation | None:
    """Return the operation for the first of the methods that has one.

    Operations that exist in the next version are preferred.
    """
    lacking = None
    for method in methods:
        found = table.find(method, path, lines)
        if found is not None and found.operation.substitute is None:
            return found
        lacking = lacking or found
    return lacking


def _foreign(
    lacked: OperationTable,
    version: Version,
    method: str,
    asked: Callable[[Version], str],
    lines: ParameterLines,
    found: FoundOperation | None,
    target: OperationPattern | None,
) -> MappedOperation | None:
    """Return an operation that exists only in the next version and that the request would reach.

    The value of a capture may turn a path into the path of another operation. For example,
    `/orders/7:cancel` matches `/orders/{id}` in the client's version, and another operation in the
    next version.
    """
    if found is None or target is None:
        foreign = lacked.find(method, asked(version), lines)
        return None if foreign is None else foreign.operation
    after = method if method == "HEAD" else target.method or method
    path = target.path(found.captures, version)
    foreign = lacked.find(after, path, target.written(found.captures, found.rest))
    if foreign is None or foreign.template.literal <= target.template.literal:
        return None
    return foreign.operation


def _of_another_version(
    operation: MappedOperation,
    version_step: VersionStep,
    path: str,
    lines: ParameterLines,
    found: FoundOperation | None,
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
    methods = version_step.table.methods(path, lines)
    if given.status == 405:
        return given._replace(methods=methods)
    return Substitute(None, 405, methods=methods) if methods else given


def _lacking(
    version_step: VersionStep, found: FoundOperation, path: str, lines: ParameterLines
) -> Substitute:
    """Return the substitute for an operation that the next version lacks.

    The refusal is a 405 with the allowed methods if the configuration refuses everything below a
    path, as with `/rest/{rest*}`, but declares operations with other methods there.
    """
    given, table = found.operation.substitute or Substitute(None), version_step.table
    if given.service is not None or table is None:
        return given
    if given.status == 405:
        return given._replace(methods=table.methods(path, lines))
    methods = table.methods(path, lines, found.template)
    return Substitute(None, 405, methods=methods) if methods else given


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
