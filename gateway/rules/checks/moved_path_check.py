"""A check for operations with a changed path that `operations` does not declare.

Requests for such an operation keep the old path, which the other version does not have.
"""

from collections.abc import Iterator, Mapping, Sequence

from gateway.base.mistakes import Location, Mistakes
from gateway.conversion.chain import compose
from gateway.conversion.declared.conversion import Part
from gateway.conversion.operation import MappedOperation, OperationPattern
from gateway.routing.snapshot import Api
from gateway.verify.located_operation import LocatedOperation, find_operation
from gateway.versions.version import Version


def warn_of_left_out(
    api: Api,
    parts: Sequence[Part],
    documents: Mapping[Version, Sequence[LocatedOperation]],
    mistakes: Mistakes,
) -> None:
    for older, (link, *_) in api.links.items():
        for version, other in ((older, link.newer), (link.newer, older)):
            # Clients of a newer version are rarely served by an older version.
            if version in documents and (version == older or api.served[version] < version):
                for at, text in _left_out(api, parts, documents, version, other):
                    mistakes.warn(f"warning: {text}", *at)


def _left_out(
    api: Api,
    parts: Sequence[Part],
    documents: Mapping[Version, Sequence[LocatedOperation]],
    version: Version,
    other: Version,
) -> Iterator[tuple[Location, str]]:
    ascending = tuple(api.versions.values())
    to_service, to_client = (
        compose(ascending, api.links, version, other),
        compose(ascending, api.links, other, version),
    )
    moved: dict[str, tuple[Location, OperationPattern, OperationPattern]] = {}
    alone: list[tuple[LocatedOperation, str]] = []
    for one in documents[version]:
        for path in one.captures:
            operation_path = find_operation(one, to_service.at(path), to_client.at(path))
            if operation_path is None:
                alone.append((one, path))
                continue
            for operation in operation_path.operations:
                if (way := _way(operation, newer=version > other)) is not None:
                    at = next(
                        part.at for part in parts if operation in (part.link.operations or ())
                    )
                    moved.setdefault(one.operation.shape, (at, *way))
    theirs = documents.get(other)
    for one, path in alone:
        if one.operation.shape not in moved:
            continue
        if any(each.is_counterpart(one, path) for each in theirs or ()):
            continue
        at, here, there = moved[one.operation.shape]
        yield (
            (*at, "operations"),
            (
                f"version {version} has {one.name} too, which is not among these: version {other}"
                f" gets requests for it at the same path, where {here.text} is {there.text};"
                f" declare {_remedy(one.operation.method, here, there, version, other, theirs)}"
            ),
        )


def _remedy(
    method: str,
    here: OperationPattern,
    there: OperationPattern,
    version: Version,
    other: Version,
    theirs: Sequence[LocatedOperation] | None,
) -> str:
    own, their = (side._replace(method=method).text for side in (here, there))
    keys = ("older", "newer") if version < other else ("newer", "older")
    moves = f"{{ {keys[0]}: {_quoted(own)}, {keys[1]}: {_quoted(their)} }}"
    refused = f"{{ {keys[0]}: {_quoted(own)}, refuse: {{}} }}"
    if theirs is None:
        return f"{moves}, or {refused} if version {other} lacks it"
    path = there.path(dict.fromkeys(there.captures, "0"), other)
    known = (one.operation for one in theirs)
    return moves if any(o.method == method and o.takes(path) for o in known) else refused


def _quoted(operation: str) -> str:
    return f'"{operation}"' if "{" in operation else operation


def _way(
    operation: MappedOperation | None, *, newer: bool
) -> tuple[OperationPattern, OperationPattern] | None:
    if operation is None:
        return None
    here, there = operation.side(newer=newer), operation.side(newer=not newer)
    if here is None or there is None or here.template.shape == there.template.shape:
        return None
    return here, there
