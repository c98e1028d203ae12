"""A trace: one body after each change of a conversion, as live bodies are converted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gateway.config.conversions.part import Part
from gateway.config.text.mistakes import Location, place
from gateway.core.conversion.chain import BodyConversion
from gateway.core.conversion.change import Change
from gateway.core.conversion.conversion_error import ConversionError
from gateway.core.conversion.document import PLAIN
from gateway.core.conversion.message.message import Message
from gateway.core.conversion.shapes.use import GroupUse
from gateway.core.conversion.version_link import Direction, VersionLink
from gateway.core.versions.version import Version
from gateway.proxy.body import json_body
from gateway.proxy.body.slow_thread import run_now


@dataclass(frozen=True, slots=True)
class TracedChange:
    """A body after one change.

    Attributes:
        name: the place of the change in gateway.yaml.
        target: the version that the change leads to.
        body: after the change; None if it cannot be converted.
        reason: why it cannot be converted, as the live conversion says, which names the place in
            the first body; empty if it can.
        changed: whether the change had anything to do.
        beside: what it has put beside the body: header fields and query parameters, as texts.
    """

    name: str
    target: Version
    body: bytes | None
    reason: str = ""
    changed: bool = True
    beside: tuple[str, ...] = ()


def trace(
    body: bytes, conversion: BodyConversion, parts: Sequence[Part], message: Message | None = None
) -> Iterator[TracedChange]:
    """Yield a body after each change, up to the one that cannot convert it.

    Args:
        body: as JSON.
        conversion: of one message.
        parts: of the conversions of the API, which have the places of the changes.
        message: that has the body, and is converted with it.
    """
    upwards = conversion.direction is Direction.UP
    given = body, None if message is None else message.copied()
    for link in conversion.links:
        if not link.changes:
            continue
        part = next(part for part in parts if _is_of(part.link, link))
        target = link.newer if upwards else link.older
        entries = zip(part.config.changes, link.changes, strict=True)
        changes = [
            named
            for index, (entry, change) in enumerate(entries)
            for named in _each(change, (*part.at, "changes", index, *entry.named()), part, ())
        ]
        rest = BodyConversion((replace(link, changes=()),), conversion.direction)
        if upwards:
            rest.convert(None, replace(PLAIN, message=message))
        for at, change in changes if upwards else reversed(changes):
            alone = replace(link, changes=(change,), query=(), headers=())
            before = _beside(message)
            try:
                made = _converted(body, _alone(alone, conversion), message)
            except ConversionError as error:
                yield TracedChange(place(at), target, None, _reason(error, conversion, *given))
                return
            changed = json_body.parse(made) != json_body.parse(body)
            beside = tuple(text for text in _beside(message) if text not in before)
            yield TracedChange(
                place(at), target, made, changed=changed or bool(beside), beside=beside
            )
            body = made
        if not upwards:
            rest.convert(None, replace(PLAIN, message=message))


def _alone(link: VersionLink, conversion: BodyConversion) -> BodyConversion:
    return BodyConversion((link,), conversion.direction, conversion.of_request)


def _converted(body: bytes, conversion: BodyConversion, message: Message | None) -> bytes:
    return run_now(partial(json_body.convert, body, conversion, message), conversion.timeout)


def _reason(
    error: ConversionError, conversion: BodyConversion, body: bytes, message: Message | None
) -> str:
    """Return why a body cannot be converted; `error` is that of one change."""
    try:
        _converted(body, conversion, message)
    except ConversionError as whole:
        error = whole
    return f"{error} ({error.cause})" if error.cause else str(error)


def _beside(message: Message | None) -> list[str]:
    if message is None:
        return []
    fields = [f"{line.name}: {line.value}" for line in message.headers]
    query = message.query if message.status is None else ()  # an answer does not change it
    return [*fields, *(f"?{line.name}={line.value or ''}" for line in query)]


def _is_of(declared: VersionLink, used: VersionLink) -> bool:
    """Return whether a link is the declared one, as a request or an operation has narrowed it."""
    bare = replace(declared, methods=None, operations=None)
    return used in (declared, declared.for_patch(), bare, bare.for_patch())


def _each(
    change: Change, at: Location, part: Part, inside: tuple[str, ...]
) -> Iterator[tuple[Location, Change]]:
    """Yield a change, or each of those of a group, with the place where it is declared."""
    if not isinstance(change, GroupUse) or change.name in inside:
        yield at, change
        return
    declared = zip(part.groups[change.name], change.changes, strict=True)
    for index, (entry, inner) in enumerate(declared):
        there = (*part.at[:2], "groups", change.name, index, *entry.named())
        for where, one in _each(inner, there, part, (*inside, change.name)):
            yield where, replace(change, name="", groups={"": (one,)})
