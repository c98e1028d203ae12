"""A check for writes that lose data.

If a conversion removes data from a response, a client that writes the resource back with PUT or
PATCH does not send this data.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.base.mistakes import Location, Mistakes
from gateway.base.path_templates import shared_path
from gateway.conversion.additional import Additional, AdditionalPolicy, DocumentShapes
from gateway.conversion.changes.field_use import FieldUse
from gateway.conversion.declared.conversion import NOT_MERGED, Part
from gateway.conversion.declared.writes_option import WritesConfig
from gateway.conversion.field_path import parse_path
from gateway.conversion.schema import Schema
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.routing.endpoint import asked_paths
from gateway.routing.snapshot import Api, Endpoint
from gateway.rules.checks.fields import listed_names, presence_of, sought
from gateway.verify.additional_parts import HiddenFields, hidden_fields
from gateway.verify.located_operation import LocatedOperation
from gateway.verify.openapi.body_fields import BodyFields, Presence
from gateway.versions.version import Version

_OVERWRITING = ("PUT", "PATCH")
_LISTED = 5
_HIDES = "additional: drop hides"
_KEEP, _PASS = "keep: true", "additional: pass"


def warn_of_overwriting(
    api: Api,
    parts: Sequence[Part],
    described: Mapping[Version, Sequence[LocatedOperation]],
    shapes: Mapping[Version, DocumentShapes],
    mistakes: Mistakes,
) -> None:
    """Warn about endpoints where a version's PUT or PATCH loses data of another version.

    It is a mistake if a chain that merges writes has a change that reads more than the body.
    """
    unmerged: dict[Location, None] = {}
    hidden = {
        older: [*hidden_fields(api, (older, shapes[older]), (newer, shapes[newer]))]
        for older, (link, *_) in api.links.items()
        if older in shapes and (newer := link.newer) in shapes
    }
    for index, endpoint in enumerate(api.endpoints):
        for client, service in endpoint.converted:
            check = _Check(api, endpoint, client, service, parts, described, hidden)
            methods_of: dict[tuple[str, str | None, tuple[str, ...]], list[str]] = {}
            for method in _OVERWRITING:
                unmerged |= check.unmerged(method)
                for at, unknown in check.unknown_keys(method):
                    mistakes.warn_of_loss(unknown, None, *at)
                for (path, reason), lost in check.losses(method).items():
                    methods_of.setdefault((path, reason, tuple(lost)), []).append(method)
            for (path, reason, losses), methods in methods_of.items():
                more = f"; and {len(losses) - _LISTED} more" if losses[_LISTED:] else ""
                named = " or ".join(methods)
                ways = {_PASS if text.startswith(_HIDES) else _KEEP: None for text in losses}
                remedy = (
                    f". Set writes: merge, keep the field in version {client}"
                    f" ({' or '.join(ways)}), or refuse {named} of version {client} here"
                )
                mistakes.warn_of_loss(
                    f"warning: a {named} to {path} by a client of version"
                    f" {client} destroys data of version {service}: {'; '.join(losses[:_LISTED])}"
                    f"{more}{remedy if reason is None else ''}",
                    reason,
                    *("apis", api.name, "endpoints", index),
                )
    for at in unmerged:
        mistakes.add(NOT_MERGED, *at)


def parts_between(parts: Iterable[Part], client: Version, service: Version) -> list[Part]:
    """Return the parts of the conversions to a client's version, in the order of an upgrade.

    If the client's version is older than that of the service, the order is that of a downgrade.
    """
    low, high = sorted((client, service))
    found = [part for part in parts if low <= part.link.older < high]
    found.sort(key=lambda part: part.link.older)
    return found if client > service else found[::-1]


class _Check(NamedTuple):
    api: Api
    endpoint: Endpoint
    client: Version
    service: Version
    parts: Sequence[Part]
    described: Mapping[Version, Sequence[LocatedOperation]]
    hidden: Mapping[Version, Sequence[HiddenFields]]

    def losses(self, method: str) -> dict[tuple[str, str | None], list[str]]:
        """Describe the data that requests with a method can lose.

        Each key has a path and, if the configuration allows the loss, its reason from `allow_loss`.
        """
        if self.endpoint.methods is not None and method not in self.endpoint.methods:
            return {}
        here = self.endpoint.template
        client_bodies, service_bodies = (
            self._bodies(one, method) for one in (self.client, self.service)
        )
        if client_bodies is not None and not client_bodies:
            return {}
        parts = self._applied(method)
        if self._merged(method):
            return {}
        if service_bodies is None or any(part.link.operations for part in self.parts):
            service_bodies = [(here.text, None)]
        found: dict[tuple[str, str | None], list[str]] = {}
        for path, schema in service_bodies:
            # An endpoint with a tail capture may have many operations, so each path is listed.
            shown = path if here.segments[-1].tail else here.text
            for text, reason in self._lost(parts, schema):
                lost = found.setdefault((shown, reason), [])
                if text not in lost:
                    lost.append(text)
        for path, text, reason in self._hidden(method) if service_bodies else ():
            shown = path if here.segments[-1].tail else here.text
            found.setdefault((shown, reason), []).append(text)
        return found

    def _hidden(self, method: str) -> Iterator[tuple[str, str, str | None]]:
        """Yield the losses because `additional` hides fields, each with a path and a reason."""
        deciding: dict[Version, tuple[AdditionalPolicy, str | None]] = {}
        for part, _ in () if self._upwards else self._applied("GET"):
            link = part.link
            if link.additional is not None and MessageKind.RESPONSE in link.on:
                # The parts of a downgrade are in reverse order, and the last one decides.
                deciding.setdefault(link.older, (link.additional, part.config.allow_loss))
        here = self.endpoint.template.text
        for older, (policy, reason) in deciding.items():
            if policy.responses is not Additional.DROP:
                continue
            if older not in self.hidden:
                if method == "PUT":
                    what = f"the fields that the document of version {older} lacks"
                    yield here, f"{_HIDES} {what}", reason
                continue
            for one in self.hidden[older]:
                if (one.endpoint, one.method) == (here, method):
                    names = listed_names([f"'{name}'" for name in one.names], _LISTED)
                    yield one.operation, f"{_HIDES} {names}", reason

    def unmerged(self, method: str) -> dict[Location, None]:
        changes = (change for part in self._merged(method) for change in part.changes())
        beyond = (change for change in changes if change.section.needs_message)
        return dict.fromkeys(change.used or change.at for change in beyond)

    def unknown_keys(self, method: str) -> Iterator[tuple[Location, str]]:
        known = [
            BodyFields(schema)
            for version in (self.client, self.service)
            for one in self.described.get(version, ())
            if self.endpoint.template.text in one.captures
            for schema in (one.operation.request, *one.operation.responses.values())
            if schema is not None
        ]
        for part in self._merged(method) if known else ():
            option = part.config.writes
            for text, fields in option.key.items() if isinstance(option, WritesConfig) else ():
                for name in (fields,) if isinstance(fields, str) else fields:
                    path = f"{text.removesuffix('[]')}[].{name}"
                    if all(one.look_up(parse_path(path)) is not Presence.DECLARED for one in known):
                        what = f"warning: no body in the OpenAPI documents has '{path}'"
                        remedy = "; name a list and a field of its elements"
                        yield (*part.at, "writes", "key", text), what + remedy

    def _merged(self, method: str) -> list[Part]:
        """Return the parts that apply to a method, if its writes are merged."""
        parts = [part for part, _ in self._applied(method)]
        return parts if any(self._merges(part.link, method) for part in parts) else []

    def _applied(self, method: str) -> list[tuple[Part, str]]:
        """Return the parts that apply to a method, with the method of the service's request."""
        between = parts_between(self.parts, self.client, self.service)
        return [(part, by) for part in between if (by := self._sent(part.link, method))]

    @property
    def _upwards(self) -> bool:
        return self.client > self.service

    def _bodies(self, version: Version, method: str) -> list[tuple[str, Schema | None]] | None:
        if version not in self.described:
            return None
        return [
            (one.operation.path, schema)
            for one in self.described[version]
            if one.operation.method == method and self.endpoint.template.text in one.captures
            for schema in (one.operation.request, one.operation.form)
            if schema is not None
        ]

    def _sent(self, link: VersionLink, method: str) -> str:
        """Return the method of the request to the service; "" if a version step does not apply."""
        if link.paths is not None and self.endpoint.template.text not in link.paths:
            return ""
        if link.operations is None:
            methods = self.endpoint.methods
            reads = (methods is None or "GET" in methods) and link.applies("GET", 200)
            applies = reads or link.applies(method, 200) or link.applies(method, None)
            return method if applies else ""
        for operation in link.operations:
            own, other = (
                operation.side(newer=newer) for newer in (self._upwards, not self._upwards)
            )
            if own is None or other is None or not own.takes(method):
                continue
            if any(shared_path(path, own.template) for path in asked_paths(self.endpoint)):
                return other.method or method
        return ""

    def _merges(self, link: VersionLink, method: str) -> bool:
        named = link.methods is None or method in link.methods
        if link.writes is not None and named and method in link.writes.methods:
            return True
        sides = (
            operation.side(newer=self._upwards)
            for operation in link.operations or ()
            if operation.writes is not None
        )
        return any(side is not None and side.takes(method) for side in sides)

    def _lost(
        self, parts: Iterable[tuple[Part, str]], schema: Schema | None
    ) -> Iterator[tuple[str, str | None]]:
        body = None if schema is None else BodyFields(schema)
        for part, sent in parts:
            changes = list(part.changes())
            for change in changes if self._upwards else reversed(changes):
                use = change.field_use
                fields = use.takes if self._upwards else use.makes
                # A PATCH keeps members that it does not contain, but replaces whole arrays (RFC
                # 7396).
                in_array = any("[]" in name for name in fields)
                if body is None or _is_there(use, body, upwards=self._upwards):
                    for loss in change.section.overwritten():
                        whole = sent != "PATCH" or loss.in_patch or in_array
                        if loss.newer == self._upwards and whole:
                            where = f" in {change.place}" if change.place else ""
                            reason = change.allow_loss or part.config.allow_loss
                            yield f"{loss.text}{where}", reason
                if body is not None:
                    body.apply(*change.change(part.link), upwards=self._upwards)


def _is_there(use: FieldUse, body: BodyFields, *, upwards: bool) -> bool:
    fields = list(sought(use, upwards=upwards))
    return not fields or any(presence_of(one, body) in (None, Presence.DECLARED) for one in fields)
