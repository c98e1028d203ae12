"""The names of header fields in the fields of CORS, where the versions have other names.

A browser asks for the names of the client's version, and a service knows those of its own.
"""

from collections.abc import Collection, Iterator, Sequence

from gateway.conversion.chain import Conversion
from gateway.conversion.message.carry import carried_names
from gateway.conversion.version_link import Direction, MessageKind, VersionLink

_ALL = "*"
NamePair = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of header fields before a conversion and after it; empty where there are none."""


def name_pairs(conversion: Conversion, method: str, kind: MessageKind) -> tuple[NamePair, ...]:
    """Return the names of header fields that a conversion changes, in its order.

    Args:
        conversion: The conversion.
        method: The method of the request.
        kind: Whether requests or answers are converted.
    """
    up = conversion.direction is Direction.UP
    known = "GET" if method == "HEAD" else method
    return tuple(
        (older, newer) if up else (newer, older)
        for link in conversion.links
        if kind in link.on and (link.methods is None or {known, method} & link.methods)
        for newer, older in (_moved(link) if up else reversed([*_moved(link)]))
    )


def _moved(link: VersionLink) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for rewritten in link.headers:
        yield from rewritten.moved
    for change in link.changes:
        yield from carried_names(change)


def requested(names: Sequence[str], pairs: Sequence[NamePair]) -> list[str]:
    """Return the names that a service is asked for, for those of a client's version."""
    found = _lower(names)
    for client, service in pairs:
        found = _replaced(found, client, service, whole=False)
    return found


def allowed(names: Sequence[str], pairs: Sequence[NamePair]) -> list[str]:
    """Return the names that a client may send, for those that a service allows.

    A name that becomes several is allowed where all of them are. One that no header field of the
    service's version has is the gateway's to allow.
    """
    found = _lower(names)
    if _ALL in found:
        return found
    for client, service in reversed(pairs):
        found = _replaced(found, service, client, whole=True) if service else [*found, *client]
    return _lower(found)


def exposed(names: Sequence[str], pairs: Sequence[NamePair], present: Collection[str]) -> list[str]:
    """Return the names that a script may read, for those that a service exposes.

    Args:
        names: The names that the service exposes.
        pairs: The names of the service and those of the client.
        present: The names of the fields of the answer, in lower case; those that the conversion
            has made of something else are exposed as well.
    """
    found = _lower(names)
    if _ALL in found:
        return found
    for service, client in pairs:
        if service:
            found = _replaced(found, service, client, whole=False)
        else:
            found += (name for name in client if name.lower() in present)
    return _lower(found)


def _replaced(
    names: list[str], source: tuple[str, ...], target: tuple[str, ...], *, whole: bool
) -> list[str]:
    """Return names with those of the target in the place of those of the source.

    Args:
        names: The names, in lower case.
        source: The names to replace.
        target: The names that replace them.
        whole: Whether all names of the source have to be there, or one of them.
    """
    gone = {name.lower() for name in source}
    here = gone.intersection(names)
    if not here or (whole and here != gone):
        return names
    place = min(names.index(name) for name in here)
    kept = [name for name in names if name not in gone]
    return _lower([*kept[:place], *target, *kept[place:]])


def _lower(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.lower() for name in names if name))
