"""The query parameters and header fields that changes name, looked up in OpenAPI documents.

A document that declares no parameter of a kind, or no header field of an answer, in any operation
to which a conversion applies does not describe them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gateway.base.mistakes import Location, Mistakes, suggest
from gateway.conversion.changes.to_header import CarrySection
from gateway.conversion.declared.conversion import Part
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.rules.checks.bodies import AskedOperation, renamed, swapped
from gateway.verify.openapi.openapi import statuses_of
from gateway.versions.version import Version

_TERMS = {"query": "parameter", "header": "field"}
# OpenAPI 3.1.0, sections 4.8.12.1 and 4.8.17.1: declarations of these have no meaning.
_UNDECLARED = frozenset({"accept", "content-type", "authorization"})


def look_up_parameters(
    version: Version,
    parts: Sequence[Part],
    asked: Sequence[AskedOperation],
    beside: Sequence[AskedOperation],
    mistakes: Mistakes,
    *,
    upwards: bool,
) -> None:
    """Warn of parameters that no message of a version has where changes look for them.

    Args:
        version: the version whose document it is.
        parts: of the conversions to a neighbouring version, in the order of the direction.
        asked: the operations of the document.
        beside: those of the neighbouring version's; empty without one.
        mistakes: takes the warnings.
        upwards: whether the neighbouring version is the newer one.
    """
    for key, place in (("query", "query"), ("headers", "header")):
        made: set[str] = set()
        for part in parts:
            declared = _declared(part.link, asked, place)
            # Changes of bodies name parameters as the newer version does: see `BodyConversion`.
            groups = [_listed(part, key, upwards=upwards), _carried(part, place, upwards=upwards)]
            for look_up in (
                each for some in (groups if upwards else groups[::-1]) for each in some
            ):
                names = declared.names | made
                known = names | _UNDECLARED if place == "header" else names
                missing = [one for one in look_up.wanted if _key(one, place) not in known]
                # One of several is enough: the others may be left out in any request.
                if declared.names and missing and len(missing) == len(look_up.wanted):
                    hint = suggest(missing[0], names)
                    others = _declared(part.link, beside, place).names
                    if _key(look_up.renamed, place) in names and _key(missing[0], place) in others:
                        hint = swapped(missing[0], look_up.renamed, upwards=upwards)
                    mistakes.warn(
                        f"warning: no {declared.messages} of version {version} has the {place}"
                        f" {_TERMS[place]} '{missing[0]}'; {hint}{look_up.use}",
                        *look_up.at,
                    )
                made |= {_key(one, place) for one in look_up.left}


@dataclass(frozen=True, slots=True)
class _LookUp:
    """The parameters that one change looks for, and those that it leaves."""

    at: Location
    wanted: tuple[str, ...]
    left: tuple[str, ...] = ()
    use: str = ""
    renamed: str = ""


@dataclass(frozen=True, slots=True)
class _Declared:
    """The names that a document has; none where it does not describe them."""

    messages: str
    names: set[str]


def _listed(part: Part, key: str, *, upwards: bool) -> Iterator[_LookUp]:
    """Yield the changes of query parameters or of header fields."""
    entries = list(enumerate(getattr(part.config, key)))
    for index, entry in entries if upwards else reversed(entries):
        for name, section in entry.named().items():
            use = section.parameter_use
            wanted, left = use.takes, use.makes
            if not upwards:
                wanted, left = left, wanted
            given = renamed(section, use, upwards=upwards)
            yield _LookUp((*part.at, key, index, name), wanted, left, renamed=given)


def _carried(part: Part, place: str, *, upwards: bool) -> Iterator[_LookUp]:
    """Yield the changes of bodies whose value this version has in a parameter."""
    for change in part.changes():
        section = change.section
        if isinstance(section, CarrySection) and section.inverse is not upwards:
            kind, name = section.beside
            if kind == place:
                yield _LookUp(change.at, (name,), use=change.use)


def _declared(link: VersionLink, asked: Iterable[AskedOperation], place: str) -> _Declared:
    of_requests, of_answers = set[str](), set[str]()
    for one in asked:
        if one.is_changed_by(link, None):
            parameters = one.operation.parameters
            of_requests |= {_key(each.name, place) for each in parameters if each.place == place}
        for key, names in one.operation.answer_fields.items():
            if any(one.is_changed_by(link, status) for status in statuses_of(key)):
                of_answers |= {_key(name, place) for name in names}
    requests, answers = MessageKind.REQUEST in link.on, bool(link.on - {MessageKind.REQUEST})
    if place == "query" or not answers:
        return _Declared("request", of_requests)
    if not requests:
        return _Declared("answer", of_answers)
    # What one kind of messages does not describe may be there.
    described = of_requests and of_answers
    return _Declared("message", of_requests | of_answers if described else set())


def _key(name: str, place: str) -> str:
    return name.lower() if place == "header" else name
