"""An entry of `conversions` in gateway.yaml: its model, and the link that it compiles to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    Strict,
    Tag,
    WithJsonSchema,
)

from gateway.base.mistakes import LOSSY, Location, Mistake, Mistakes
from gateway.base.model import Method, NumberText, OneOrSome, SectionModel, Some, matching
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.registry import ChangeConfig, ParameterConfig
from gateway.conversion.declared.groups import (
    NO_GROUPS,
    ChangeGroups,
    DeclaredChange,
    GroupConfigs,
    compile_each,
    declared_changes,
    listed_changes,
)
from gateway.conversion.operation import MappedOperation
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.version_step import BOTH, FormTypes, MessageKind, VersionLink
from gateway.versions.version import Version

_ON = {
    "both": BOTH,
    "requests": frozenset({MessageKind.REQUEST}),
    "responses": frozenset({MessageKind.RESPONSE}),
    "errors": frozenset({MessageKind.ERROR}),
}

ExampleOperation = Annotated[
    str,
    matching(
        r"^[A-Z]+(-[A-Z]+)* /\S*$",
        "not an operation; write a method and the path of an endpoint, as in GET /orders/{id}",
    ),
]


class ExampleMessageConfig(SectionModel):
    """What surrounds the body of an example."""

    headers: Mapping[str, str] = Field(default_factory=dict)
    """The header fields of the message, by name."""
    query: str | None = None
    """The query of the request, as in `page=2&size=10`."""


class ExampleConfig(SectionModel):
    """A body as both versions have it, which `check` converts both ways."""

    older: JsonValue
    """The body of the older version: any JSON, written as YAML."""
    newer: JsonValue
    """The body of the newer version: any JSON, written as YAML."""
    older_message: ExampleMessageConfig = ExampleMessageConfig()
    """The older version's header fields and query, if a change moves values between them and the
    body."""
    newer_message: ExampleMessageConfig = ExampleMessageConfig()
    """The newer version's header fields and query, if a change moves values between them and the
    body."""
    direction: Literal["up", "down", "both"] = "both"
    """The tested direction: up to the newer version, down to the older one, or both. The default is
    both."""
    operation: ExampleOperation | None = None
    """A method and the path of an endpoint. All conversions between the two versions that apply to
    it are tested together; without it, only the one with the example."""
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    """The status of the response with the body. Without it, the body is that of a response 200 to
    GET, or of a request with any other method."""


_STATUSES = r"^[45](?:[0-9][0-9]|xx)$"


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


Statuses = Annotated[
    str,
    BeforeValidator(_as_text),
    matching(_STATUSES, "not an error status; write one such as 404, or 4xx for all of them"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 400, "maximum": 599},
                {"type": "string", "pattern": _STATUSES},
            ]
        }
    ),
]


Status = Annotated[int, Field(ge=200, le=599), NumberText]


_EventName = Annotated[
    str, matching(r"^[^\r\n]+$", "not the name of an event; write it in one line")
]


class StatusConfig(SectionModel):
    """A status of answers that differs between the two versions."""

    newer: Status
    """The response status in the newer version, such as 201."""
    older: Status
    """The response status in the older version, such as 200."""


class RefuseConfig(SectionModel):
    """How an operation is refused that the other version lacks."""

    status: Annotated[int, Field(ge=400, le=599), NumberText] = 404
    """The status of the refusal, such as 410. The default is 404."""
    detail: str = ""
    """The detail with the reason and the alternative. The default is that of the version's
    `errors`, or a standard text."""
    code: str | Annotated[int, Strict()] | None = None
    """The code of the refusal, which overrides that of the version's `errors`. The default is
    operation_missing, or the code in `errors` for it."""


class OperationConfig(SectionModel):
    """An operation that has another method, path or status in the older version, or is missing."""

    newer: str | None = None
    """The method and the path that the operation has in the newer version, such as
    `POST /payments`; a path alone is for all methods. Without it, the newer version lacks it."""
    older: str | None = None
    """The method and the path that the operation has in the older version, such as `POST /pay` or
    `GET /find?id={id}`. Without it, the older version lacks it."""
    status: OneOrSome[StatusConfig, StatusConfig] | None = None
    """The response status that differs, such as `{ newer: 201, older: 200 }`, or a list. By
    default, no status differs."""
    request_body: Literal["newer", "older"] | None = None
    """The only version whose requests have a body: newer or older. The changes make it of `{}` if
    the other version's request has none. By default, both may have one."""
    service: str | None = None
    """The service for an operation that one version lacks; it speaks the version that has the
    operation."""
    refuse: RefuseConfig | None = None
    """The refusal of an operation that one version lacks, if no service has it."""


def _named_or_declared(value: object) -> str:
    return "named" if isinstance(value, str) else "declared"


OperationEntry = Annotated[
    Annotated[str, Tag("named")] | Annotated[OperationConfig, Tag("declared")],
    Discriminator(_named_or_declared),
]


class FormsConfig(SectionModel):
    """How forms of the clients of one version become JSON for the service of the other."""

    version: Literal["newer", "older"]
    """The version with forms (application/x-www-form-urlencoded): newer or older."""
    numbers: tuple[str, ...] = ()
    """The form fields that are numbers, also in lists. By default, all are texts."""
    booleans: tuple[str, ...] = ()
    """The form fields that are booleans: true, 1 or on, and false or 0. By default, there are
    none."""
    lists: tuple[str, ...] = ()
    """The form fields that are lists even if they occur once. By default, repeated fields are
    lists."""

    def compile(self) -> FormTypes:
        return FormTypes(self.version == "newer", self.numbers, self.booleans, self.lists)


class ConversionConfig(SectionModel):
    """The reversible difference between two adjacent versions, or a part of it."""

    between: tuple[str, str]
    """The two versions that the conversion is between, the older one first."""
    changes: tuple[ChangeConfig, ...] = ()
    """The changes of bodies, in the order of an upgrade; a downgrade applies them in reverse."""
    query: tuple[ParameterConfig, ...] = ()
    """The changes of query parameters, in the order of an upgrade."""
    headers: tuple[ParameterConfig, ...] = ()
    """The changes of header fields, in the order of an upgrade."""
    operations: Some[OperationEntry] | None = None
    """The operations that the conversion applies to: each with the names of both versions, or a
    text with the newer version's name. The default is all operations."""
    status: OneOrSome[StatusConfig, StatusConfig] | None = None
    """The response status that differs, such as `{ newer: 422, older: 400 }`, or a list. By
    default, no status differs."""
    forms: FormsConfig | None = None
    """The conversion of forms to JSON, if the other version accepts only JSON. Without it, forms
    stay forms."""
    events: Mapping[_EventName, _EventName] = Field(default_factory=dict)
    """The names of server-sent events (text/event-stream) that differ: newer name to older name. By
    default, there are none."""
    statuses: tuple[Statuses, ...] = ()
    """The error statuses, such as 404 or 4xx, that the conversion applies to besides success."""
    on: Literal["requests", "responses", "errors", "both"] = "both"
    """The messages it applies to; `errors` are responses of `statuses`. The default is both."""
    methods: Some[Method] | None = None
    """The methods of the requests that the conversion applies to; without it, all methods."""
    paths: Some[str] | None = None
    """The endpoints that the conversion applies to, by their `path`; without it, all endpoints."""
    unfit: Literal["refuse", "keep"] = "refuse"
    """The result for a request value (body or query) that a change cannot convert: a refusal of the
    request (refuse), or the unchanged value, which the service may refuse (keep). The default is
    refuse."""
    examples: tuple[ExampleConfig, ...] = ()
    """Bodies in both versions. `check` converts them in both directions and compares."""

    def compile(
        self,
        older: Version,
        newer: Version,
        at: Location,
        mistakes: Mistakes,
        groups: ChangeGroups = NO_GROUPS,
        operations: tuple[MappedOperation, ...] | None = None,
    ) -> VersionLink:
        """Return the link; `operations` are those that it applies to, None for all."""
        self._check(at, mistakes)
        self._warn(at, mistakes, groups.configs)
        keeps = self.unfit == "keep"
        query = _parameters(self.query, (*at, "query"), mistakes)
        used = declared_changes(self.changes, (*at, "changes"), groups.configs, ())
        sections = [change.section for change in used]
        beside = [one for entry in (*self.query, *self.headers) for one in entry.named().values()]
        timeouts = [limit for section in sections if (limit := section.seconds()) is not None]
        changes = compile_each(
            [entry.named() for entry in self.changes],
            (*at, "changes"),
            mistakes,
            lambda section, here: section.body_change(
                BuildContext(here, mistakes, groups.changes, (older, newer))
            ),
        )
        return VersionLink(
            older,
            newer,
            tuple(changes),
            statuses=frozenset(status for text in self.statuses for status in _statuses(text)),
            on=_ON[self.on],
            methods=None if self.methods is None else frozenset(self.methods),
            paths=None if self.paths is None else frozenset(self.paths),
            query=tuple(one.keeping_unfit() for one in query) if keeps else query,
            headers=_parameters(self.headers, (*at, "headers"), mistakes),
            operations=operations,
            status=compile_statuses(self.status, (*at, "status"), mistakes),
            maps_links=any(change.maps_links for change in sections),
            digest=self._digest(groups.configs, [change.code for change in sections]),
            varies=any(change.varies for change in sections),
            needs_message=any(change.needs_message for change in sections),
            shows_message=any(change.needs_message for change in beside),
            timeout=sum(timeouts) if timeouts else None,
            forms=None if self.forms is None else self.forms.compile(),
            events=self.events,
            keeps_unfit=keeps,
        )

    def _check(self, at: Location, mistakes: Mistakes) -> None:
        known = {"changes", "query", "headers", "operations", "status", "forms", "events"}
        if not self.model_fields_set & known:
            text = "'changes' is missing here; add it, empty where the bodies are the same"
            mistakes.add(text, *at)
        if self.on == "errors" and not self.statuses:
            mistakes.add("needs the statuses of the errors; add statuses, such as [4xx]", *at, "on")
        if self.on == "requests" and self.statuses:
            mistakes.add("requests have no status; remove it, or on: requests", *at, "statuses")
        if self.on in ("responses", "errors"):
            for key, text in (
                ("forms", f"{self.on} are no forms"),
                ("unfit", "is for requests"),
                ("query", f"{self.on} have no query"),
            ):
                if getattr(self, key) not in (None, (), "refuse"):
                    mistakes.add(f"{text}; remove it, or on: {self.on}", *at, key)

    def _warn(self, at: Location, mistakes: Mistakes, groups: GroupConfigs) -> None:
        """Warn of every loss, also of those in groups, once where it is declared."""
        parameters = (
            DeclaredChange((*at, key, index, name), section)
            for key, entries in (("query", self.query), ("headers", self.headers))
            for index, entry in enumerate(entries)
            for name, section in entry.named().items()
        )
        changes = listed_changes(self.changes, (*at, "changes"), groups, (*at[:-2], "groups"))
        for change in (*changes, *parameters):
            for loss in change.section.losses():
                lossy = f"{LOSSY} version {self.between[loss.newer]}: {loss.text}"
                # The same group may be used by several conversions between the same versions.
                if Mistake(change.at, lossy) not in mistakes.warnings:
                    mistakes.warn(lossy, *change.at)

    def _digest(self, groups: GroupConfigs, code: list[str]) -> str:
        rules = json.dumps(_written((self, groups)), sort_keys=True, default=str) + "".join(code)
        return blake2b(rules.encode(), digest_size=16).hexdigest()


class Part(NamedTuple):
    """A part of a conversion: as it is declared, where, and the link that it became."""

    config: ConversionConfig
    at: Location
    link: VersionLink
    groups: GroupConfigs = MappingProxyType({})

    def changes(self) -> Iterator[DeclaredChange]:
        """Yield the changes of bodies, with those of the groups that are used."""
        groups_at = (*self.at[:-2], "groups")
        return declared_changes(self.config.changes, (*self.at, "changes"), self.groups, groups_at)


def _parameters(
    entries: Sequence[ParameterConfig], at: Location, mistakes: Mistakes
) -> tuple[ParameterChange, ...]:
    header = at[-1] == "headers"
    return tuple(
        compile_each(
            [entry.named() for entry in entries],
            at,
            mistakes,
            lambda section, here: section.parameter_change(
                BuildContext(here, mistakes, header=header)
            ),
        )
    )


def _written(value: object) -> object:
    # The keys that a file sets. model_dump would first build a serializer for every model.
    if isinstance(value, BaseModel):
        return {name: _written(getattr(value, name)) for name in value.model_fields_set}
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return value


def _statuses(text: str) -> range:
    first = int(text.replace("x", "0"))
    return range(first, first + 100 if "x" in text else first + 1)


def compile_statuses(
    configured: StatusConfig | Sequence[StatusConfig] | None, at: Location, mistakes: Mistakes
) -> dict[int, int]:
    """Return the older version's statuses by the newer version's, and warn of losses."""
    several = configured if isinstance(configured, Sequence) else (configured,)
    pairs = [pair for pair in several if pair is not None]
    statuses = {pair.newer: pair.older for pair in pairs}
    if len(statuses) < len(pairs):
        mistakes.add("one status of the newer version stands twice; keep one of the two", *at)
    for older in dict.fromkeys(statuses.values()):
        same = [str(newer) for newer, each in statuses.items() if each == older]
        if len(same) > 1:
            mistakes.warn(
                f"{LOSSY} the newer version: status {older} becomes {same[0]},"
                f" whichever of {', '.join(same)} it was",
                *at,
            )
    return statuses
