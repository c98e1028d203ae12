"""Operations of an OpenAPI document, with the endpoints of the gateway that route to them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Generic, TypeVar
from urllib.parse import urlencode

from gateway.base.path_templates import Router, Segment, Template, parse_template
from gateway.conversion.additional import OperationShapes
from gateway.conversion.chain import Conversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.operation_path import (
    FindDocumented,
    OperationPath,
    find_operation_path,
)
from gateway.conversion.version_step import Direction
from gateway.routing.snapshot import Endpoint
from gateway.verify.live.document_jobs import DocumentedEndpoint, documented_endpoint
from gateway.verify.openapi.openapi import Operation
from gateway.verify.unchecked import Unchecked
from gateway.versions.version import Version

_Described = TypeVar("_Described", Operation, OperationShapes)


@dataclass(frozen=True, slots=True)
class Located(Generic[_Described]):
    """An operation in a version's document, with the endpoints that route to it.

    Attributes:
        captures: for each endpoint path, the strings in the operation's path that the captures of
            the endpoint match; `{}` for a parameter.
        twin: an earlier operation with the same method and path shape; empty without one.
    """

    operation: _Described
    captures: Mapping[str, Mapping[str, str]]
    reason: str = ""
    twin: str = ""

    @property
    def name(self) -> str:
        return f"{self.operation.method} {self.operation.path}"

    def is_counterpart(self, other: "Located[_Described]", endpoint: str) -> bool:
        if self.operation.method != other.operation.method or endpoint not in self.captures:
            return False
        own, others = self.captures[endpoint], other.captures[endpoint]
        return all(own[name] == others[name] for name in own.keys() & others.keys())


LocatedOperation = Located[Operation]


class Counterparts:
    """The operations of another version's document, found by method and path."""

    def __init__(self, operations: Sequence[LocatedOperation]) -> None:
        self._operations = operations
        self._tables: dict[object, dict[object, list[LocatedOperation]]] = {}

    def of(
        self, operation: LocatedOperation, endpoint: str, moved: OperationPath | None
    ) -> Sequence[LocatedOperation]:
        """Return the counterparts of an operation at an endpoint.

        Args:
            moved: the declared path of the operation in both versions, if there is one.
        """
        if moved is not None:
            taken = (
                one
                for one in self._operations
                if one.operation.method == moved.method and one.operation.takes(moved.path)
            )
            best = min(taken, key=lambda one: one.operation.path.count("{"), default=None)
            return [] if best is None else [best]
        names = tuple(operation.captures[endpoint])
        table = self._tables.get((endpoint, names))
        if table is None:
            table = self._tables[endpoint, names] = {}
            for one in self._operations:
                if endpoint in one.captures:
                    table.setdefault(_key(one, endpoint, names), []).append(one)
        return table.get(_key(operation, endpoint, names), ())


def _key(one: LocatedOperation, endpoint: str, names: Iterable[str]) -> object:
    captures = one.captures[endpoint]
    return one.operation.method, *(captures.get(name) for name in names)


def find_operation(
    located: Located[_Described],
    request: Conversion,
    response: Conversion,
    find: FindDocumented | None = None,
) -> OperationPath | None:
    if not request.has_operations:
        return None
    for path, query in _samples(located.operation.shape, request):
        operation_path = _found_path(request, response, located.operation.method, path, query, find)
        if operation_path is not None and (
            operation_path.substitute is not None or any(operation_path.operations)
        ):
            return operation_path
    return None


def _found_path(
    request: Conversion,
    response: Conversion,
    method: str,
    path: str,
    query: str | None,
    find: FindDocumented | None,
) -> OperationPath | None:
    try:
        return find_operation_path(request, response, method, lambda _: path, query, find=find)
    except ConversionError:
        return None


def _samples(shape: str, request: Conversion) -> Iterator[tuple[str, str | None]]:
    """Yield the path and query of sample requests for an operation.

    In a document, a parameter is a whole segment. In the configuration, a segment may also have a
    literal part, as in `C-{id}`, or its value may come from the query.
    """
    yield shape.replace("{}", "0"), None
    first, newer = request.version_steps[0], request.direction is Direction.DOWN
    declared = (each for link in first.links for each in link.operations or ())
    for side in dict.fromkeys(operation.side(newer=newer) for operation in declared):
        if side is not None:
            own = (
                (part.name, part.filled("" if part.capture is None else "0")) for part in side.query
            )
            yield _filled_in(shape, side.template).replace("{}", "0"), urlencode([*own]) or None


def _filled_in(shape: str, template: Template) -> str:
    written = [
        text
        if text != "{}" or part is None or part.capture is None
        else f"{part.prefix}{{}}{part.suffix}"
        for text, part in zip_longest(shape.split("/")[1:], template.segments)
        if text is not None
    ]
    return "".join(f"/{text}" for text in written)


def locate(
    endpoints: Iterable[Endpoint], version: Version | None, operations: Iterable[_Described]
) -> list[Located[_Described]]:
    """Return every operation of a version's document, in the order of the document.

    See `locate_at`.
    """
    documented = (documented_endpoint(endpoint, version) for endpoint in endpoints)
    return locate_at(documented, str(version), operations)


def locate_at(
    endpoints: Iterable[DocumentedEndpoint], version: str, operations: Iterable[_Described]
) -> list[Located[_Described]]:
    """Return every operation of a version's document, in the order of the document.

    A path belongs to the endpoint to which the gateway routes requests for this path. If several
    endpoints match, the endpoint with the most literal text is chosen. A document may use the paths
    of the service (`upstream_path`), or the public paths with or without the version. Each path is
    tried first with the path of the document's server, and then without it. For `{id}` in the
    document, an endpoint may have a literal prefix, as in `mtr_{id}`.
    """
    places = list(_places(endpoints, version))
    router = _router(places)
    # Paths that differ only in parameter names are identical (OpenAPI 3.1.0, section 4.8.8.1).
    first: dict[tuple[str, str], str] = {}
    found = []
    for one in operations:
        path = first.setdefault((one.method, one.shape), one.path)
        if path == one.path:
            found.append(_located(one, router, places))
        else:
            twin = f"{one.method} {path}"
            reason = Unchecked.TWIN.reason.format(twin)
            found.append(Located(one, {}, reason, twin))
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """A path that a document may use for an endpoint. Paths with a lower `form` are preferred."""

    form: int
    endpoint: DocumentedEndpoint
    template: Template


def _places(endpoints: Iterable[DocumentedEndpoint], version: str) -> Iterator[_Place]:
    for endpoint in endpoints:
        if endpoint.serves:
            for form, template in enumerate(_forms(endpoint, version)):
                yield _Place(form, endpoint, template)


def _router(places: Iterable[_Place]) -> Router[list[_Place]]:
    by_shape: dict[object, list[_Place]] = {}
    for place in places:
        by_shape.setdefault(place.template.shape, []).append(place)
    preferred = (
        [place for place in some if place.form == min(each.form for each in some)]
        for some in by_shape.values()
    )
    return Router((some[0].template, some) for some in preferred)


def _forms(endpoint: DocumentedEndpoint, version: str) -> Iterator[Template]:
    public = parse_template(endpoint.path).segments
    unversioned = tuple(part for part in public if part.capture != "version")
    if endpoint.upstream_path is None:
        yield _filled(public, version)
    else:
        yield _filled(parse_template(endpoint.upstream_path).segments, version)
    yield _filled(public, version)
    yield _filled(unversioned or (Segment(""),), version)


def _filled(segments: Iterable[Segment], version: str) -> Template:
    filled = tuple(
        Segment(f"{part.prefix}{version}{part.suffix}") if part.capture == "version" else part
        for part in segments
    )
    captures = tuple(part.capture for part in filled if part.capture is not None)
    return Template("".join(f"/{part.prefix}" for part in filled), filled, captures)


def _located(
    operation: _Described, router: Router[list[_Place]], places: Sequence[_Place]
) -> Located[_Described]:
    shapes = (operation.shape, operation.bare_shape)
    filled = (_filled_in(shape, place.template) for shape in shapes for place in places)
    found = next(filter(None, map(router.find, chain(shapes, filled))), None)
    if found is None:
        return Located(operation, {}, Unchecked.NO_ENDPOINT.reason)
    there, texts = found
    captures = {
        place.endpoint.path: dict(zip(place.template.captures, texts.values(), strict=True))
        for place in there
        if place.endpoint.methods is None or operation.method in place.endpoint.methods
    }
    reason = "" if captures else Unchecked.NO_METHOD.reason.format(operation.method)
    return Located(operation, captures, reason)
