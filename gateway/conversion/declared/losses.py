"""Warnings about the data that conversions lose, in the directions that messages take."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.base.mistakes import LOSSY, Mistakes
from gateway.conversion.declared.conversion import Part, compile_statuses, operation_entries
from gateway.conversion.declared.groups import DeclaredChange, listed_changes
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.versions.version import Version

_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_METHODS = _BODILESS | {"POST", "PUT", "PATCH", "DELETE"}


class EndpointUse(NamedTuple):
    """The requests of one endpoint.

    Attributes:
        methods: The allowed methods; None for all methods.
        pairs: The versions of a client and of the service that serves it, if they differ.
    """

    path: str
    methods: Sequence[str] | None
    pairs: Sequence[tuple[Version, Version]]

    def converted(self, link: VersionLink, *, up: bool) -> frozenset[str]:
        """Return the methods of requests that a link converts to the newer version if `up`."""
        methods = frozenset(self.methods or _METHODS)
        if link.paths is not None and self.path not in link.paths:
            return frozenset()
        if link.operations is None:
            return methods & (link.methods or methods)
        sides = [one.side(newer=not up) for one in link.operations if one.substitute is None]
        return frozenset(one for one in methods if any(side and side.takes(one) for side in sides))


def warn_of_losses(part: Part, endpoints: Sequence[EndpointUse], mistakes: Mistakes) -> None:
    config, link = part.config, part.link
    taken = {newer: _taken(link, endpoints, newer=newer) for newer in (True, False)}
    for key, change in _changes(part):
        filtered = change.section.filter_losses() if key == "query" else ()
        for loss in (*change.section.losses(), *filtered):
            # A client that cannot see a value does not overwrite it.
            keeps = None if config.writes is None or loss.newer else "writes are merged"
            reason = change.allow_loss or config.allow_loss or keeps
            if key in taken[loss.newer]:
                version = config.between[loss.newer]
                mistakes.warn_of_loss(f"{LOSSY} version {version}: {loss.text}", reason, *change.at)
    located = ((config, part.at), *operation_entries(config, part.at))
    for entry, at in located if "status" in taken[True] else ():
        statuses = {} if isinstance(entry, str) else compile_statuses(entry.status, Mistakes())
        for older in dict.fromkeys(statuses.values()):
            same = [str(newer) for newer, each in statuses.items() if each == older]
            text = f"status {older} becomes {same[0]}, whichever of {', '.join(same)} it was"
            text = f"{LOSSY} version {config.between[1]}: {text}"
            if same[1:]:
                mistakes.warn_of_loss(text, config.allow_loss, *at, "status")


def _changes(part: Part) -> Iterator[tuple[str, DeclaredChange]]:
    config, at = part.config, part.at
    groups_at = (*at[:-2], "groups")
    for change in listed_changes(config.changes, (*at, "changes"), part.groups, groups_at):
        yield "changes", change
    for key, entries in (("query", config.query), ("headers", config.headers)):
        for index, entry in enumerate(entries):
            for name, section in entry.named().items():
                here = (*at, key, index, name)
                yield key, DeclaredChange(here, section, allow_loss=entry.allow_loss)


def _taken(link: VersionLink, endpoints: Sequence[EndpointUse], *, newer: bool) -> set[str]:
    """Return the keys of an entry that apply to a message, by the direction of the conversion."""
    served = [
        (endpoint, client < service)
        for endpoint in endpoints
        for client, service in endpoint.pairs
        if min(client, service) <= link.older < max(client, service)
    ]
    # Before one of the versions is served through the conversion, both directions are possible.
    found = set[str]()
    for endpoint, up in served or [(one, up) for one in endpoints for up in (True, False)]:
        methods = endpoint.converted(link, up=up)
        if methods and MessageKind.REQUEST in link.on:
            found |= (
                {"query", "headers"} if up == newer else {"query"}
            )  # links in responses have queries too
            found |= (
                {"changes"}
                if up == newer and (methods - _BODILESS or link.needs_message)
                else set()
            )
        if methods and up != newer and link.on - {MessageKind.REQUEST}:
            found |= {"changes", "headers", "status"}
    return found
