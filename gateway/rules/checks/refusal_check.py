"""A check for changes that can refuse a whole response because of one value.

Bodies without a document may have any values.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.base.mistakes import Location, Mistakes
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.message_option import unfit_policy
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.declared.conversion import Part
from gateway.conversion.declared.groups import DeclaredChange
from gateway.conversion.parameter_change import FIELDS, ParameterLine
from gateway.conversion.schema import Misfit, Schema
from gateway.conversion.unfit import Unfit
from gateway.conversion.version_step import MessageKind
from gateway.routing.snapshot import Api, Endpoint
from gateway.rules.checks.fields import asked_operations, listed_names, path_of
from gateway.rules.checks.overwriting_check import parts_between
from gateway.verify.located_operation import LocatedOperation
from gateway.verify.openapi.body_fields import BodyFields
from gateway.versions.version import Version

# The maximum number of operations, of values and of fields that a warning lists.
_OPERATIONS, _VALUES, _FIELDS = 3, 10, 20
_REMEDY = "set unfit to keep, omit or refuse such values"
_INTENDED = "set unfit: refuse if this is intended"
# A header value that has no usual form.
_UNUSUAL = "?"
_UNKNOWN = BuildContext(Mistakes())


class _Bodies(NamedTuple):
    schema: Schema
    parts: tuple[Part, ...]
    operations: dict[str, None]


@dataclass(slots=True)
class _Refusals:
    """The reasons why a change can refuse responses, and the operations with these responses."""

    keyword: str
    fields: str
    at: Location
    remedy: str
    misfits: list[Misfit]
    operations: dict[str, None] = field(default_factory=dict)

    @property
    def text(self) -> tuple[str, str]:
        """The parts of the warning before and after the fields."""
        words = list(dict.fromkeys(str(word) for one in self.misfits for word in one.words))
        if words and all(one.words for one in self.misfits):
            reason = f"a value may be {listed_names(words, _VALUES)}"
        else:
            found = sorted(self.misfits, key=lambda one: not one.partial)
            reason = found[0].reason.partition(", found")[0]
        operations = listed_names(list(self.operations), _OPERATIONS)
        rest = f"can refuse the whole response of {operations}: {reason}; {self.remedy}"
        return f"warning: {self.keyword} of", rest


def warn_of_refusals(
    api: Api,
    parts: Sequence[Part],
    described: Mapping[Version, Sequence[LocatedOperation]],
    mistakes: Mistakes,
) -> None:
    """Warn of changes without `unfit` that can refuse responses, and check `unfit: omit`."""
    found: dict[Location, _Refusals] = {}
    for (service, upwards), ends in _ends(api).items():
        for client in ends:
            between = _responding(parts_between(parts, client, service))
            if client in described and any(map(_omits, between)):
                own = _bodies(api, described[client], client, service, between[::-1])
                for one in own:
                    _check_omissions(one, client, mistakes, upwards=upwards)
        # The parts for the most distant client include those for all others.
        client = (max if upwards else min)(ends)
        between = _responding(parts_between(parts, client, service))
        bodies = _bodies(api, described.get(service, ()), service, client, between)
        known = {part.at for one in bodies for part in one.parts}
        endpoints = [endpoint for some in ends.values() for endpoint in some]
        bodies += [
            _Bodies({}, (part,), _operations(part, endpoints, upwards=upwards))
            for part in between
            if part.at not in known
        ]
        for one in bodies:
            for refusals in _refusals(one, upwards=upwards):
                first = found.setdefault(refusals.at, refusals)
                first.misfits += refusals.misfits if first is not refusals else []
                first.operations |= one.operations
    grouped: dict[tuple[str, str], dict[str, Location]] = {}
    for at in sorted(found):
        grouped.setdefault(found[at].text, {}).setdefault(found[at].fields, at)
    for (begin, rest), fields in grouped.items():
        names = list(fields)
        for index in range(0, len(names), _FIELDS):
            listed = ", ".join(names[index : index + _FIELDS])
            mistakes.warn(f"{begin} {listed} {rest}", *fields[names[index]])


def _ends(api: Api) -> dict[tuple[Version, bool], dict[Version, list[Endpoint]]]:
    """Return the versions of clients and their endpoints, by the version of the service.

    The second part of the key is true for clients of newer versions than the service.
    """
    found: dict[tuple[Version, bool], dict[Version, list[Endpoint]]] = {}
    for endpoint in api.endpoints:
        for client, service in endpoint.converted:
            ends = found.setdefault((service, client > service), {})
            ends.setdefault(client, []).append(endpoint)
    return found


def _responding(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.link.on - {MessageKind.REQUEST}]


def _bodies(
    api: Api,
    located: Sequence[LocatedOperation],
    version: Version,
    other: Version,
    parts: Sequence[Part],
) -> list[_Bodies]:
    found: dict[object, _Bodies] = {}
    for asked in asked_operations(api, version, located, (other,)):
        operation = asked.operation
        for key, schema in operation.responses.items():
            for status in () if schema is None else asked.statuses.of(operation, key):
                applied = tuple(part for part in parts if asked.is_changed_by(part.link, status))
                if schema is not None and applied:
                    same = (id(schema), *(part.at for part in applied))
                    bodies = found.setdefault(same, _Bodies(schema, applied, {}))
                    bodies.operations[f"{operation.method} {operation.path}"] = None
    return list(found.values())


def _operations(part: Part, endpoints: Iterable[Endpoint], *, upwards: bool) -> dict[str, None]:
    link, found = part.link, dict[str, None]()
    if link.operations is not None:
        sides = (operation.side(newer=upwards) for operation in link.operations)
        return {side.text: None for side in sides if side is not None}
    for endpoint in endpoints:
        path = endpoint.template.text
        if link.paths is None or path in link.paths:
            named = sorted({*(link.methods or endpoint.methods or ())} - {"HEAD", "OPTIONS"})
            found |= dict.fromkeys([f"{method} {path}" for method in named] or [path])
    return found


def _refusals(bodies: _Bodies, *, upwards: bool) -> Iterator[_Refusals]:
    fields = BodyFields(bodies.schema)
    for part in bodies.parts:
        is_open = "unfit" not in part.config.model_fields_set
        changes = list(part.changes())
        for change in changes if upwards else reversed(changes):
            compiled, place = change.change(part.link)
            misfits = fields.apply(compiled, place, upwards=upwards)
            if misfits and is_open and change.unfit is None:
                remedy = _INTENDED if compiled is not None and compiled.whole else _REMEDY
                label = _label(change, upwards=upwards)
                yield _Refusals(change.section.keyword, label, change.at, remedy, misfits)
        yield from _of_headers(part, upwards=upwards) if is_open else ()


def _of_headers(part: Part, *, upwards: bool) -> Iterator[_Refusals]:
    for index, entry in enumerate(part.config.headers):
        ((keyword, section),) = entry.named().items()
        change, use = section.parameter_change(_UNKNOWN), section.parameter_use
        assert change is not None  # otherwise, `compile` refuses the configuration
        names = use.takes if upwards else use.makes
        lines = [ParameterLine(name.lower(), name, _UNUSUAL) for name in names]
        try:
            (change.up if upwards else change.down)(lines, FIELDS)
        except ConversionError as error:
            label, at = f"the header {_quoted(names)}", (*part.at, "headers", index, keyword)
            if entry.unfit is None:
                yield _Refusals(keyword, label, at, _REMEDY, [Misfit(error.reason)])


def _label(change: DeclaredChange, *, upwards: bool) -> str:
    """Return the fields of a change, relative to the object that it applies to."""
    own = getattr(change.section, "field", None)
    if isinstance(own, str) and not upwards:
        return _quoted((own,))
    names = [name for name in _names(change._replace(place=""), upwards=upwards) if name]
    return _quoted(names) or ("the object" if change.place else "the body")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _names(change: DeclaredChange, *, upwards: bool) -> tuple[str, ...]:
    return change.field_use.takes if upwards else change.field_use.makes


def _omits(part: Part) -> bool:
    unfits = [part.config.unfit, *(change.unfit for change in part.changes())]
    return any(one and unfit_policy(one, "").responses is Unfit.OMIT for one in unfits)


def _check_omissions(
    bodies: _Bodies, client: Version, mistakes: Mistakes, *, upwards: bool
) -> None:
    """Report fields that `unfit: omit` can remove although the client's document requires them."""
    fields = BodyFields(bodies.schema, exact=True)
    for part in bodies.parts:
        changes = list(part.changes())
        for change in reversed(changes) if upwards else changes:
            compiled, place = change.change(part.link)
            unfit = part.config.unfit if change.unfit is None else change.unfit
            omits = unfit_policy(unfit, "").responses is Unfit.OMIT
            if omits and BodyFields({}).apply(compiled, "", upwards=upwards):
                is_own = change.entry is not None and change.entry.unfit is not None
                used = change.used and not is_own
                names = (change.used_place,) if used else _names(change, upwards=not upwards)
                for name in names:
                    path = path_of(name)
                    if path is not None and fields.requires(path):
                        mistakes.add(
                            f"can omit '{name}', which responses of version {client} require; set"
                            " unfit: refuse or keep for this change",
                            *change.at,
                        )
            fields.apply(compiled, place, upwards=not upwards)
