"""Writes the first gateway.yaml of APIs from the outlines of their documents."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from gateway.verify.initial.comparison import Comparison, Difference, Part, Use, flow, joined
from gateway.verify.initial.outline import (
    Data,
    Outline,
    OutlinedOperation,
    OutlinedVersion,
    followed,
)
from gateway.verify.openapi.openapi import shape

_JSON = re.compile(r"application/(?:json|[^;\s]+\+json)\s*(?:;.*)?\Z|\*/\*\Z", re.IGNORECASE)
# A schema in a comment is truncated to this length.
_LONGEST = 240
# A component with fewer differences has its own group, or none.
_FEWEST_SHARED = 2
_FIRST_PORT = 8001
_NO_BODY = ("GET", "HEAD", "DELETE")


class _Entry(NamedTuple):
    """An entry of `conversions`, without its operations."""

    part: Part
    on: str = ""
    statuses: tuple[str, ...] = ()


def configuration(outlines: Sequence[Outline]) -> Iterator[str]:
    """Yield the lines of a configuration that serves each version from its own service."""
    services: dict[str, str] = {}
    taken: dict[str, str] = {}
    apis = [list(_api(outline, services, taken)) for outline in outlines]
    yield "services:"
    yield from services.values()
    yield "apis:"
    for lines in apis:
        yield from (f"  {line}" for line in lines)


def _api(outline: Outline, services: dict[str, str], taken: dict[str, str]) -> Iterator[str]:
    name, versions = outline.name, outline.versions
    yield f"{name}:"
    if outline.mechanism is None:
        yield f"  service: {_service(services, name, versions[0].target)}"
    else:
        if len(versions) > 1:
            yield "  # When the conversions are complete, replace `service` by `via: VERSION`,"
            yield "  # so that the service of the newer version also serves the older one."
        yield "  versions:"
        for one in versions:
            target = one.target
            own = re.sub(r"[^A-Za-z0-9_]", "_", f"{name}_v{one.label}")
            shared = sum(target == other.target for other in versions) > 1 and target is not None
            service = _service(services, name if shared else own, target)
            schema = f", schema: {flow(one.given.location)}"
            yield f"    {_quoted(one.label)}: {{ service: {service}{schema} }}"
    for older, newer in pairwise(versions):
        media, other = _error_types(older), _error_types(newer)
        if media and other and media.isdisjoint(other):
            named = f"version {newer.label} have another media type. Add to version {older.label}:"
            yield f"  # TODO Errors of {named}"
            yield f"  # errors: {{ content_type: {min(media)} }}"
    if outline.guessed:
        yield "  # TODO No document shows where requests name the version; correct `version`."
    yield "  endpoints:"
    yield from _endpoints(outline, taken)
    mechanism = "" if outline.mechanism is None else outline.mechanism.written
    comparisons = [
        _Changes(*pair, f"_{pair[1].label}" if len(versions) > 2 else "", mechanism)
        for pair in pairwise(versions)
    ]
    groups = [line for one in comparisons for line in one.group_lines()]
    if groups:
        yield "  groups:"
        yield from groups
    if comparisons:
        yield "  conversions:"
        for comparison in comparisons:
            yield from comparison.lines()


def _error_types(version: OutlinedVersion) -> set[str]:
    """Return the JSON media types of the documented errors, without their parameters."""
    responses = (
        followed(version.given.data, response)
        for operation in version.operations.values()
        for status, response in operation.declared.get("responses", {}).items()
        if str(status)[0] in "45d"
    )
    return {
        media.partition(";")[0].strip().lower()
        for response in responses
        for media in map(str, response.get("content") or ())
        if _JSON.match(media) and not media.startswith("*")
    }


def _service(services: dict[str, str], name: str, target: str | None) -> str:
    """Add the line of a service, and return its name."""
    address = target or f"http://127.0.0.1:{_FIRST_PORT + len(services)}"
    unknown = "" if target else "   # TODO correct the address"
    services.setdefault(name, f"  {name}: {{ targets: [{flow(address)}] }}{unknown}")
    return name


def _endpoints(outline: Outline, taken: dict[str, str]) -> Iterator[str]:
    mechanism, labels = outline.mechanism, [one.label for one in outline.versions]
    paths: dict[str, str] = {}
    methods: dict[str, dict[str, list[str]]] = {}
    for version in outline.versions:
        for operation in version.operations.values():
            paths.setdefault(shape(operation.path), operation.path)
            known = methods.setdefault(shape(operation.path), {})
            known.setdefault(version.label, []).append(operation.method)
        yield from (f"    # left out: {text}" for text in version.unusable)
    for key, path in paths.items():
        found = methods[key]
        public = path
        if mechanism is not None and mechanism.adds_segment:
            public = f"/{mechanism.segment}{path}"
        if taken.setdefault(shape(public), outline.name) != outline.name:
            yield f"    # left out: {public}: API {taken[shape(public)]} has this path"
            continue
        allowed = ", ".join(dict.fromkeys(one for some in found.values() for one in some))
        if mechanism is None:
            yield f"    - {{ path: {_quoted(path)}, methods: [{allowed}] }}"
            continue
        has = [label for label in labels if label in found]
        text = f"path: {_quoted(public)}"
        named = mechanism.position is None or mechanism.segment in path.split("/")
        if mechanism.adds_segment:
            text += f", upstream_path: {_quoted(path)}"
        if named:
            text += f", version: {mechanism.written}"
        if len(has) < len(labels) or not named:
            text += f", versions: [{', '.join(map(_quoted, has if named else has[-1:]))}]"
        yield f"    - {{ {text}, methods: [{allowed}] }}"


class _Changes:
    """The differences between two neighbouring versions, as groups and conversions."""

    def __init__(
        self, older: OutlinedVersion, newer: OutlinedVersion, suffix: str, mechanism: str
    ) -> None:
        self._older, self._newer, self._mechanism = older, newer, mechanism
        self._comparison = Comparison(older.given.data, newer.given.data)
        self._common = [
            (older.operations[key], one)
            for key, one in newer.operations.items()
            if key in older.operations
        ]
        self._entries = self._messages()
        self._affected = self._comparison.affected()
        self._shared = self._shared_groups()
        uses = Counter(
            self._shared.get(use.part, use.part)
            for part in (*self._affected, *(one.part for one in self._entries))
            for use in part.uses
        )
        # A component in one place needs no group, unless it contains itself.
        self._inline = {
            part
            for part in self._affected
            if uses[part] == 1 and not any(use.part in self._affected for use in part.uses)
        } - {*self._shared}
        names = Counter[str]()
        self._names: dict[Part, str] = {}
        for part in self._affected - self._inline - {*self._shared}:
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", part.name)
            name = name if name[:1].isalpha() or name.startswith("_") else f"_{name}"
            names[name] += 1
            self._names[part] = f"{name}{suffix}{'' if names[name] == 1 else f'_{names[name]}'}"

    def _shared_groups(self) -> dict[Part, Part]:
        """Return the components whose changes another one has too, such as those of its input."""
        found: dict[Part, Part] = {}
        some = [part for part in self._comparison.components.values() if part in self._affected]
        some.sort(key=lambda part: len(part.differences), reverse=True)
        for part in some:
            if part.uses or len(part.differences) < _FEWEST_SHARED:
                continue
            larger = (one for one in some if one not in found and one is not part)
            group = next((one for one in larger if part.is_covered_by(one)), None)
            if group is not None:
                found[part] = group
        return found

    def group_lines(self) -> Iterator[str]:
        for part in self._comparison.components.values():
            if part in self._names:
                yield f"    {self._names[part]}: ["
                yield from (f"      {line}" for line in self._part_lines(part))
                yield "    ]"

    def lines(self) -> Iterator[str]:
        """Yield the entries of `conversions`, each with its differences as comments."""
        between = f'between: ["{self._older.label}", "{self._newer.label}"]'
        yield f"    - {between}"
        newer = self._newer.label
        yield f"      # Older clients also get fields that only version {newer} has. To hide them:"
        yield "      # additional: { requests: refuse, responses: drop }"
        yield "      changes: []"
        yield from self._missing_operations(between)
        every = {new.name for _, new in self._common}
        merged: dict[tuple[str, tuple[str, ...]], tuple[dict[str, None], dict[str, None]]] = {}
        for entry, operations in self._entries.items():
            lines = tuple(self._part_lines(entry.part))
            known = merged.setdefault((entry.on, lines), ({}, {}))
            known[0].update(dict.fromkeys(operations))
            known[1].update(dict.fromkeys(entry.statuses))
        for (on, lines), (named, statuses) in merged.items():
            if not lines:
                continue
            yield f"    - {between}"
            if named.keys() != every:
                yield f"      operations: [{', '.join(map(_quoted, named))}]"
            if on:
                yield f"      on: {on}"
            if statuses:
                yield f"      statuses: [{', '.join(statuses)}]"
            yield "      changes: ["
            yield from (f"        {line}" for line in lines)
            yield "      ]"
        yield from self._parameters(between)

    def _part_lines(self, part: Part, prefix: str = "") -> Iterator[str]:
        yield from self._differences(part.differences, prefix)
        places: dict[Part, list[Use]] = {}
        for use in part.uses:
            if use.part in self._inline:
                yield from self._part_lines(use.part, joined(prefix, use.at))
            elif use.part in self._affected:
                places.setdefault(self._shared.get(use.part, use.part), []).append(use)
        for target, uses in places.items():
            at, doubtful = (
                [joined(prefix, use.at) for use in uses if use.sure is sure]
                for sure in (True, False)
            )
            name = self._names[target]
            if at:
                where = f", at: [{', '.join(map(flow, at))}]" if any(at) else ""
                yield f"{{ use: {{ group: {name}{where} }} }},"
            if doubtful:
                where = f", at: [{', '.join(map(flow, doubtful))}]" if any(doubtful) else ""
                yield f"# TODO {', '.join(doubtful) or 'the body'}: several schemas; add"
                yield "# `when` with the field that distinguishes them: when: { field: F, is: V }"
                yield f"# {{ use: {{ group: {name}{where} }} }},"

    def _differences(self, some: Sequence[Difference], prefix: str = "") -> Iterator[str]:
        before = None
        for one in some:
            if one.field != before:  # a renamed field may also have another type
                note = one.note.replace("OLDER", self._older.label)
                note = note.replace("NEWER", self._newer.label)
                name = joined(prefix, one.field) or "the body"
                yield f"# TODO {name}{f': {note}' if note else ''}"
                for version, schema in ((self._older, one.older), (self._newer, one.newer)):
                    yield f"#   {version.label}: {'absent' if schema is None else _short(schema)}"
            before = one.field
            if one.change is not None:
                yield f"# {one.change.below(prefix)},"

    def _messages(self) -> dict[_Entry, list[str]]:
        found: dict[_Entry, list[str]] = {}
        roots: dict[object, Part] = {}

        def root(older: object, newer: object) -> Part:
            key = json.dumps([older, newer], sort_keys=True, default=str)
            if key not in roots:
                roots[key] = self._comparison.message(older, newer)
            return roots[key]

        for old, new in self._common:
            bodies = [self._request(one, side) for side, one in enumerate((old, new))]
            request = root(*bodies) if None not in bodies else None
            successes: dict[Part, None] = {}
            errors: dict[Part, list[str]] = {}
            answers = [self._responses(one, side) for side, one in enumerate((old, new))]
            for status in answers[1]:
                if status in answers[0]:
                    part = root(answers[0][status], answers[1][status])
                    if status.startswith("2"):
                        successes[part] = None
                    elif status == "default":
                        errors.setdefault(part, []).extend(("4xx", "5xx"))
                    elif status[0] in "45":
                        errors.setdefault(part, []).append(status.lower())
            both = request in successes or (request is None and bodies == [None, None])
            for part in successes:
                entry = _Entry(part, "" if both else "responses")
                found.setdefault(entry, []).append(new.name)
            if request is not None and request not in successes:
                found.setdefault(_Entry(request, "requests"), []).append(new.name)
            for part, statuses in errors.items():
                found.setdefault(_Entry(part, "errors", tuple(statuses)), []).append(new.name)
        return found

    def _request(self, one: OutlinedOperation, side: int) -> object:
        return _body(self._data(side), one.declared.get("requestBody"))

    def _responses(self, one: OutlinedOperation, side: int) -> Mapping[str, object]:
        data = self._data(side)
        bodies = (
            (str(status), _body(data, response))
            for status, response in one.declared.get("responses", {}).items()
        )
        return {status: body for status, body in bodies if body is not None}

    def _data(self, side: int) -> Data:
        return (self._older, self._newer)[side].given.data

    def _missing_operations(self, between: str) -> Iterator[str]:
        olds, news = (
            [one for key, one in mine.operations.items() if key not in others.operations]
            for mine, others in ((self._older, self._newer), (self._newer, self._older))
        )
        by_id = {one.declared.get("operationId"): one for one in olds}
        by_id.pop(None, None)
        lines = []
        for new in news:
            old = by_id.pop(new.declared.get("operationId"), None)
            if old is None:
                lines.append(f"{{ newer: {_quoted(new.name)}, refuse: {{}} }}")
            else:
                olds.remove(old)
                lines.append(f"{{ newer: {_quoted(new.name)}, older: {_quoted(old.name)} }}")
        lines += [f"{{ older: {_quoted(old.name)}, refuse: {{}} }}" for old in olds]
        if lines:
            yield "    # TODO Operations that differ, or that only one version has. Instead of"
            yield "    # `refuse`, `service` names a service that has the operation:"
            yield f"    # - {between}"
            yield "    #   operations:"
            yield from (f"    #     - {line}" for line in lines)

    def _parameters(self, between: str) -> Iterator[str]:
        found: dict[tuple[str, ...], list[str]] = {}
        for old, new in self._common:
            lines = []
            for place, key in (("query", "query"), ("header", "headers")):
                older, newer = (
                    {
                        name: parameter
                        for name, parameter in _parameters(self._data(side), one, place).items()
                        if f"name: {name} " not in self._mechanism
                    }
                    for side, one in enumerate((old, new))
                )
                shown = [*self._differences(self._comparison.parameters(older, newer))]
                lines += [f"{key}: [", *(f"  {line}" for line in shown), "]"] if shown else []
            if lines:
                found.setdefault(tuple(lines), []).append(new.name)
        for shared, operations in found.items():
            yield f"    - {between}"
            yield f"      operations: [{', '.join(map(_quoted, operations))}]"
            yield from (f"      {line}" for line in shared)


def _parameters(data: Data, operation: OutlinedOperation, place: str) -> dict[str, Data]:
    raw: list[object] = []
    for source in (operation.item, operation.declared):
        raw += source.get("parameters") or ()
    found = (followed(data, one) for one in raw)
    return {str(one["name"]): one for one in found if one.get("in") == place and "name" in one}


def _body(data: Data, message: object) -> object:
    content = followed(data, message).get("content") or {}
    found = (one for kind, one in content.items() if _JSON.match(str(kind)))
    return next((one.get("schema", {}) for one in found if isinstance(one, Mapping)), None)


def _short(schema: object) -> str:
    text = json.dumps(schema, ensure_ascii=False, default=str)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


def _quoted(text: str) -> str:
    """Return a text as YAML in quotes; a dollar sign would begin a variable."""
    if "${" in text or "$$" in text:
        text = text.replace("$", "$$")
    return json.dumps(text, ensure_ascii=False)


def count_differences(lines: Iterable[str]) -> int:
    return sum(line.lstrip().startswith("# TODO") for line in lines)
