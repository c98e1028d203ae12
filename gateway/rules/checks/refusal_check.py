"""A check for changes that can refuse a whole response because of one value.

Bodies without a document may have any values.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.base.mistakes import Location, Mistakes
from gateway.conversion.changes.change_section import BuildContext, ParameterSection
from gateway.conversion.changes.unfit_option import policy_of
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.declared.conversion import Part
from gateway.conversion.declared.groups import DeclaredChange
from gateway.conversion.parameter_change import FIELDS, ParameterLine
from gateway.conversion.schema import Misfit, Schema
from gateway.conversion.unfit import Unfit
from gateway.conversion.version_step import MessageKind
from gateway.routing.snapshot import Api, Endpoint
from gateway.rules.checks.fields import asked_operations, path_of
from gateway.rules.checks.overwriting_check import converted_pairs
from gateway.verify.located_operation import LocatedOperation
from gateway.verify.openapi.body_fields import BodyFields
from gateway.verify.openapi.openapi import statuses_of
from gateway.versions.version import Version

# The maximum number of operations, of values and of fields that a warning lists.
_OPERATIONS, _VALUES, _FIELDS = 3, 10, 20
_REMEDY = "set unfit to keep, omit or refuse such values"
_INTENDED = "set unfit: refuse if this is intended"
# A header value that has no usual form.
_UNUSUAL = "?"


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
    misfits: list[Misfit]
    remedy: str
    operations: dict[str, None] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        words = dict.fromkeys(str(word) for one in self.misfits for word in one.words)
        if words and all(one.words for one in self.misfits):
            return f"a value may be {_listed(list(words), _VALUES)}"
        found = sorted(self.misfits, key=lambda one: not one.partial)
        return found[0].reason.partition(", found")[0]


def warn_of_refusals(
    api: Api,
    parts: Sequence[Part],
    described: Mapping[Version, Sequence[LocatedOperation]],
    mistakes: Mistakes,
) -> None:
    """Warn of changes without `unfit` that can refuse responses, and check `unfit: omit`."""
    found: dict[tuple[Location, str], _Refusals] = {}
    for (client, service), endpoints in _pairs(api).items():
        upwards = client > service
        between = _between(parts, client, service)
        if client in described:
            own = _bodies(api, described[client], client, service, between[::-1])
            for one in own:
                _check_omissions(one, client, mistakes, upwards=upwards)
        bodies = _bodies(api, described.get(service, ()), service, client, between)
        known = {part.at for one in bodies for part in one.parts}
        bodies += [
            _Bodies({}, (part,), _operations(part, endpoints, upwards=upwards))
            for part in between
            if part.at not in known
        ]
        for one in bodies:
            for refusals in _refusals(one, upwards=upwards):
                first = found.setdefault((refusals.at, refusals.fields), refusals)
                first.misfits += refusals.misfits if first is not refusals else []
                first.operations |= one.operations
    grouped: dict[tuple[str, str, str, str], dict[str, Location]] = {}
    for each in sorted(found.values(), key=lambda refusals: refusals.at):
        operations = _listed(list(each.operations), _OPERATIONS)
        key = each.keyword, each.reason, operations, each.remedy
        grouped.setdefault(key, {}).setdefault(each.fields, each.at)
    for (keyword, reason, operations, remedy), fields in grouped.items():
        names = list(fields)
        for index in range(0, len(names), _FIELDS):
            listed = ", ".join(names[index : index + _FIELDS])
            mistakes.warn(
                f"warning: {keyword} of {listed} can refuse the whole response of"
                f" {operations}: {reason}; {remedy}",
                *fields[names[index]],
            )


def _pairs(api: Api) -> dict[tuple[Version, Version], list[Endpoint]]:
    found: dict[tuple[Version, Version], list[Endpoint]] = {}
    for endpoint in api.endpoints:
        for pair in converted_pairs(endpoint):
            found.setdefault(pair, []).append(endpoint)
    return found


def _between(parts: Sequence[Part], client: Version, service: Version) -> list[Part]:
    low, high = sorted((client, service))
    found = [
        part
        for part in parts
        if low <= part.link.older < high and part.link.on - {MessageKind.REQUEST}
    ]
    found.sort(key=lambda part: part.link.older)
    return found if client > service else found[::-1]


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
            for status in () if schema is None else statuses_of(key):
                applied = tuple(part for part in parts if asked.is_changed_by(part.link, status))
                if applied and operation.key(status) == key:
                    assert schema is not None
                    same = (id(schema), *(part.at for part in applied))
                    bodies = found.setdefault(same, _Bodies(schema, applied, {}))
                    bodies.operations[f"{operation.method} {operation.path}"] = None
    return list(found.values())


def _operations(part: Part, endpoints: Iterable[Endpoint], *, upwards: bool) -> dict[str, None]:
    link = part.link
    if link.operations is not None:
        sides = (operation.side(newer=upwards) for operation in link.operations)
        return {side.text: None for side in sides if side is not None}
    found: dict[str, None] = {}
    for endpoint in endpoints:
        path = endpoint.template.text
        if link.paths is None or path in link.paths:
            methods = link.methods or endpoint.methods
            named = [] if methods is None else sorted({*methods} - {"HEAD", "OPTIONS"})
            found |= dict.fromkeys([f"{method} {path}" for method in named] or [path])
    return found


def _refusals(bodies: _Bodies, *, upwards: bool) -> Iterator[_Refusals]:
    fields = BodyFields(bodies.schema)
    for part in bodies.parts:
        changes = list(part.changes())
        for change in changes if upwards else reversed(changes):
            compiled = change.change(part.link)
            misfits = fields.apply(compiled, change.place, upwards=upwards)
            if misfits and change.unfit is None and "unfit" not in part.config.model_fields_set:
                keyword, label = change.section.keyword, _label(change, upwards=upwards)
                remedy = _INTENDED if compiled is not None and compiled.whole else _REMEDY
                yield _Refusals(keyword, label, change.at, misfits, remedy)
        if "unfit" not in part.config.model_fields_set:
            yield from _of_headers(part, upwards=upwards)


def _of_headers(part: Part, *, upwards: bool) -> Iterator[_Refusals]:
    for index, entry in enumerate(part.config.headers):
        for keyword, section in entry.named().items() if entry.unfit is None else ():
            reason = _header_refusal(section, upwards=upwards)
            if reason:
                names = ", ".join(f"'{name}'" for name in section.parameter_use.makes)
                at = (*part.at, "headers", index, keyword)
                yield _Refusals(keyword, f"the header {names}", at, [Misfit(reason)], _REMEDY)


def _header_refusal(section: ParameterSection, *, upwards: bool) -> str:
    use = section.parameter_use
    names = use.takes if upwards else use.makes
    change = section.parameter_change(BuildContext((), Mistakes(), header=True))
    if change is None:
        return ""
    lines = [ParameterLine(name.lower(), name, _UNUSUAL) for name in names]
    try:
        (change.up if upwards else change.down)(lines, FIELDS)
    except ConversionError as error:
        return error.reason
    return ""


def _label(change: DeclaredChange, *, upwards: bool) -> str:
    names = [name for name in _names(change, upwards=upwards) if name]
    holders = tuple(f"{name}{sign}" for name in names for sign in ".[")
    return ", ".join(f"'{name}'" for name in names if not name.startswith(holders)) or "the body"


def _names(change: DeclaredChange, *, upwards: bool) -> tuple[str, ...]:
    return change.field_use.takes if upwards else change.field_use.makes


def _check_omissions(
    bodies: _Bodies, client: Version, mistakes: Mistakes, *, upwards: bool
) -> None:
    """Report fields that `unfit: omit` can remove although the client's document requires them."""
    fields = BodyFields(bodies.schema, exact=True)
    for part in bodies.parts:
        changes = list(part.changes())
        for change in reversed(changes) if upwards else changes:
            compiled = change.change(part.link)
            unfit = part.config.unfit if change.unfit is None else change.unfit
            omits = policy_of(unfit, "").responses is Unfit.OMIT
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
            fields.apply(compiled, change.place, upwards=not upwards)


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if names[most:] else ""
    return f"{', '.join(names[:most])}{more}"
