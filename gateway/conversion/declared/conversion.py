"""The model of an entry of `conversions` in gateway.yaml, which is compiled to a VersionLink."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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

from gateway.base.mistakes import Location, Mistakes, place
from gateway.base.model import (
    Method,
    NonEmptyText,
    NumberText,
    OneOrSome,
    Reason,
    SectionModel,
    Some,
    TextOr,
    matching,
)
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.message_option import (
    AdditionalOption,
    UnfitOption,
    additional_policy,
    unfit_policy,
)
from gateway.conversion.changes.registry import ChangeConfig, ParameterConfig
from gateway.conversion.declared.groups import (
    ChangeGroups,
    DeclaredChange,
    GroupConfigs,
    declared_changes,
)
from gateway.conversion.declared.writes_option import WritesOption, write_rule
from gateway.conversion.media_filter import MediaFilter, MediaRanges, parse_media_ranges
from gateway.conversion.operation import MappedOperation
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.unfit import UnfitPolicy
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
    """The header fields and the query of an example message."""

    headers: Mapping[str, str] = Field(default_factory=dict)
    """The header fields of the message, by name."""
    query: str | None = None
    """The query of the request, such as `page=2&size=10`."""


class ExampleConfig(SectionModel):
    """The same body in both versions. `check` converts each body to the other version and compares
    the result.
    """  # noqa: D205

    older: JsonValue
    """The body in the older version: any JSON value, written as YAML."""
    newer: JsonValue
    """The body in the newer version: any JSON value, written as YAML."""
    older_message: ExampleMessageConfig = ExampleMessageConfig()
    """The header fields and the query in the older version, if a change moves values between them
    and the body."""
    newer_message: ExampleMessageConfig = ExampleMessageConfig()
    """The header fields and the query in the newer version, if a change moves values between them
    and the body."""
    direction: Literal["up", "down", "both"] = "both"
    """The direction to test: up (to the newer version), down (to the older version), or both. The
    default is both."""
    operation: ExampleOperation | None = None
    """A method and the path of an endpoint. All conversions between the two versions that apply to
    this operation are tested together. Without `operation`, only the conversion that contains the
    example is tested."""
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    """The status of the response that has the body. Without `status`, the body belongs to a
    response with status 200 if the method is GET, and to the request for any other method."""


NOT_MERGED = (
    "writes cannot be merged with this change: only bodies are merged, and it reads or writes a"
    " header field, the query or the path; move it to an entry for other methods or operations, or"
    " remove writes"
)
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
    """A response status that differs between the two versions."""

    newer: Status
    """The response status in the newer version, such as 201."""
    older: Status
    """The response status in the older version, such as 200."""


class RefuseConfig(SectionModel):
    """The refusal of an operation that the other version lacks."""

    status: Annotated[int, Field(ge=400, le=599), NumberText] = 404
    """The status of the refusal, such as 410. The default is 404."""
    detail: str = ""
    """A sentence that explains the reason and the alternative. The default is that of the
    version's `errors`, or a standard text."""
    code: str | Annotated[int, Strict()] | None = None
    """The code in the refusal, instead of the code in the version's `errors`. The default is
    operation_missing, or the code in `errors` for it."""


class OperationConfig(SectionModel):
    """An operation that differs between the two versions in its method, path or status, or that one
    version lacks.
    """  # noqa: D205

    newer: str | None = None
    """The method and the path of the operation in the newer version, such as `POST /payments`. A
    path without a method stands for all methods. Without `newer`, the newer version lacks the
    operation."""
    older: str | None = None
    """The method and the path of the operation in the older version, such as `POST /pay` or
    `GET /find?id={id}`. Without `older`, the older version lacks the operation."""
    status: OneOrSome[StatusConfig, StatusConfig] | None = None
    """A response status that differs, such as `{ newer: 201, older: 200 }`, or a list of them. By
    default, no status differs."""
    request_body: Literal["newer", "older"] | None = None
    """The version whose requests have a body, newer or older, if only one version has them. For a
    request of the other version, the changes create a body from `{}`. By default, requests of both
    versions may have a body."""
    service: str | None = None
    """The service for an operation that one version lacks. It must implement the version that has
    the operation."""
    refuse: RefuseConfig | None = None
    """The refusal of an operation that one version lacks, if no service handles the operation."""
    writes: WritesOption | None = None
    """Whether writes by this operation (PUT, PATCH or POST) are merged into the document of the
    service (`merge`), so that they keep the data that the client's version lacks. A mapping sets
    details. The default is `writes` of the conversion."""


OperationEntry = TextOr[str, OperationConfig]


class OtherMediaConfig(SectionModel):
    """All media types except some."""

    is_not: OneOrSome[NonEmptyText, NonEmptyText]
    """The media range that a type must not match, or a list of them."""


def _is_except(value: object) -> str:
    if isinstance(value, str):
        return "one"
    return "several" if isinstance(value, list | tuple) else "except"


MediaOption = Annotated[
    Annotated[NonEmptyText, Tag("one")]
    | Annotated[Some[NonEmptyText], Tag("several")]
    | Annotated[OtherMediaConfig, Tag("except")],
    Discriminator(_is_except),
]


class FormsConfig(SectionModel):
    """The conversion of forms, which only one version accepts, to JSON for the other version."""

    version: Literal["newer", "older"]
    """The version with forms (application/x-www-form-urlencoded): newer or older."""
    numbers: tuple[str, ...] = ()
    """The form fields that are numbers, or lists of numbers. By default, all fields are strings."""
    booleans: tuple[str, ...] = ()
    """The form fields that are booleans, written as `true`, `1` or `on`, and `false` or `0`. By
    default, there are none."""
    lists: tuple[str, ...] = ()
    """The form fields that are lists even if they occur only once. By default, only repeated fields
    are lists."""

    def compile(self) -> FormTypes:
        return FormTypes(self.version == "newer", self.numbers, self.booleans, self.lists)


class ConversionConfig(SectionModel):
    """The reversible difference between two adjacent versions, or a part of that difference."""

    between: tuple[str, str]
    """The two versions, the older version first."""
    changes: tuple[ChangeConfig, ...] = ()
    """The changes of bodies, in the order of an upgrade. A downgrade reverses the order."""
    query: tuple[ParameterConfig, ...] = ()
    """The changes of query parameters, in the order of an upgrade."""
    headers: tuple[ParameterConfig, ...] = ()
    """The changes of header fields, in the order of an upgrade."""
    operations: Some[OperationEntry] | None = None
    """The operations that the conversion applies to. An entry describes the operation in both
    versions, or is a string with the operation in the newer version. The default is all
    operations."""
    status: OneOrSome[StatusConfig, StatusConfig] | None = None
    """A response status that differs, such as `{ newer: 422, older: 400 }`, or a list of them. By
    default, no status differs."""
    forms: FormsConfig | None = None
    """The conversion of forms to JSON, if the other version accepts only JSON. Without it, forms
    stay forms."""
    events: Mapping[_EventName, _EventName] = Field(default_factory=dict)
    """The names of server-sent events (text/event-stream) that differ: the name in the newer
    version, then the name in the older version. By default, there are none."""
    statuses: tuple[Statuses, ...] = ()
    """The error statuses, such as 404 or 4xx, that the conversion also applies to."""
    on: Literal["requests", "responses", "errors", "both"] = "both"
    """The messages that the conversion applies to: `requests`, `responses`, `both`, or `errors`,
    which are only responses with one of the `statuses`. The default is both."""
    methods: Some[Method] | None = None
    """The methods of the requests that the conversion applies to. Without `methods`, it applies to
    all methods."""
    paths: Some[str] | None = None
    """The endpoints that the conversion applies to, by their `path`. Without `paths`, it applies to
    all endpoints."""
    accept: MediaOption | None = None
    """The media type that a request prefers in Accept, such as `application/json;as=Table`, or a
    list of media ranges. `{ is_not: … }` stands for all other types, and `none` for requests that
    prefer no type. The conversion applies to these requests and their responses. By default, it
    applies to all media types."""
    content_type: MediaOption | None = None
    """The media type of the request's body, such as `application/merge-patch+json`, or a list of
    media ranges; see `accept`. With `on: responses` or `on: errors`, that of the response. By
    default, the conversion applies to all media types."""
    unfit: UnfitOption = "refuse"
    """The treatment of a value that a change cannot convert: the message is refused (`refuse`), the
    value stays unchanged (`keep`), or the field or list element is removed (`omit`). A mapping with
    `requests` and `responses` treats them differently. The default is refuse."""
    malformed: Literal["refuse", "keep"] = "refuse"
    """The treatment of a body that is not JSON although a change applies to it: the message is
    refused (`refuse`), or the body stays unchanged (`keep`). The default is refuse."""
    additional: AdditionalOption | None = None
    """The treatment of message parts that the older version's OpenAPI document lacks, such as
    fields of the body, query parameters and operations: they stay (`pass`), are removed (`drop`),
    or the message is refused (`refuse`). A mapping with `requests` and `responses` treats them
    differently. If several conversions apply to a message, the last one with `additional` decides.
    Without `additional`, they stay, and `check` lists them."""
    writes: WritesOption | None = None
    """Whether PUT and PATCH are merged into the document of the service (`merge`), so that they
    keep the data that the client's version lacks. A mapping sets details. By default, they are not
    merged, and `check` warns about data that they destroy."""
    allow_loss: Reason | None = None
    """The reason why the conversion may lose data. `check` lists the losses of all its changes with
    this reason instead of warning about them. By default, `check` warns about them."""
    examples: tuple[ExampleConfig, ...] = ()
    """Example bodies in both versions. `check` converts each of them and compares the results."""

    def compile(
        self,
        older: Version,
        newer: Version,
        mistakes: Mistakes,
        groups: ChangeGroups,
        operations: tuple[MappedOperation, ...] | None,
    ) -> VersionLink:
        """Compile the conversion to a link for `operations`, or for all operations if None."""
        self._check(mistakes)
        at = mistakes.at
        policy, extra = unfit_policy(self.unfit, ""), self.additional
        query = _parameters(self.query, mistakes.below("query"), policy)
        used = [*declared_changes(self.changes, (*at, "changes"), groups.configs, ())]
        sections = [change.section for change in used]
        beside = [one for entry in (*self.query, *self.headers) for one in entry.named().values()]
        timeouts = [limit for section in sections if (limit := section.seconds()) is not None]
        changes = [
            entry.compile(
                BuildContext(mistakes.below("changes", index), groups.changes, (older, newer))
            )
            for index, entry in enumerate(self.changes)
        ]
        accept = _media_ranges(self.accept, mistakes.below("accept"))
        content_type = _media_ranges(self.content_type, mistakes.below("content_type"))
        beyond = [change for change in used if change.section.needs_message]
        if self.writes is not None or any(one.writes is not None for one in operations or ()):
            for change in beyond:
                mistakes.root.add(NOT_MERGED, *(change.used or change.at))
        of_response = self.on in ("responses", "errors")
        media = MediaFilter(accept, None if of_response else content_type)
        return VersionLink(
            older,
            newer,
            tuple(
                replace(
                    change,
                    unfit=named(policy, (*at, "changes", index))
                    if entry.unfit is None
                    else change.unfit,
                    allow_loss=change.allow_loss or self.allow_loss or "",
                )
                for index, (entry, change) in enumerate(zip(self.changes, changes, strict=True))
                if change is not None
            ),
            statuses=frozenset(status for text in self.statuses for status in _statuses(text)),
            on=_ON[self.on],
            methods=None if self.methods is None else frozenset(self.methods),
            paths=None if self.paths is None else frozenset(self.paths),
            query=query,
            headers=_parameters(self.headers, mistakes.below("headers"), policy),
            operations=operations,
            status=compile_statuses(self.status, mistakes.below("status")),
            maps_links=any(change.maps_links for change in sections),
            digest=self._digest(groups.configs, [change.code for change in sections]),
            varies=any(change.varies for change in sections),
            needs_message=bool(beyond),
            shows_message=any(change.needs_message for change in beside),
            timeout=sum(timeouts) if timeouts else None,
            forms=None if self.forms is None else self.forms.compile(),
            events=self.events,
            unfit=policy,
            additional=(
                None if extra is None else additional_policy(extra, place((*at, "additional")))
            ),
            keeps_malformed=self.malformed == "keep",
            media=None if media == MediaFilter() else media,
            response_type=content_type if of_response else None,
            allow_loss=self.allow_loss or "",
            writes=write_rule(self.writes, mistakes.below("writes")),
        )

    def _check(self, mistakes: Mistakes) -> None:
        known = {"changes", "query", "headers", "operations", "status", "forms", "events"}
        known |= {"additional", "writes"}
        if not self.model_fields_set & known:
            text = "'changes' is missing here; add it, or an empty list if the bodies are the same"
            mistakes.add(text)
        if self.on == "errors" and not self.statuses:
            mistakes.add("needs the statuses of the errors; add statuses, such as [4xx]", "on")
        if self.on == "requests" and self.statuses:
            mistakes.add("requests have no status; remove it, or remove on: requests", "statuses")
        if self.on in ("responses", "errors"):
            for key, text in (
                ("forms", f"{self.on} are not forms"),
                ("query", f"{self.on} have no query"),
            ):
                if getattr(self, key) not in (None, (), "refuse"):
                    mistakes.add(f"{text}; remove it, or remove on: {self.on}", key)

    def _digest(self, groups: GroupConfigs, code: list[str]) -> str:
        rules = json.dumps(_written((self, groups)), sort_keys=True, default=str) + "".join(code)
        return blake2b(rules.encode(), digest_size=16).hexdigest()


class Part(NamedTuple):
    config: ConversionConfig
    at: Location
    link: VersionLink
    groups: GroupConfigs = MappingProxyType({})

    def changes(self) -> Iterator[DeclaredChange]:
        groups_at = (*self.at[:-2], "groups")
        return declared_changes(self.config.changes, (*self.at, "changes"), self.groups, groups_at)


def named(policy: UnfitPolicy, at: Location) -> UnfitPolicy:
    return policy if policy.refuses else policy._replace(name=place(at))


def _parameters(
    entries: Sequence[ParameterConfig], mistakes: Mistakes, policy: UnfitPolicy
) -> tuple[ParameterChange, ...]:
    header, found = mistakes.at[-1] == "headers", []
    for index, entry in enumerate(entries):
        here = mistakes.below(index)
        change = entry.compile(BuildContext(here, header=header))
        if change is not None:
            own = entry.unfit is not None
            found.append(change if own else replace(change, unfit=named(policy, here.at)))
    return tuple(found)


def _media_ranges(
    option: str | tuple[str, ...] | OtherMediaConfig | None, mistakes: Mistakes
) -> MediaRanges | None:
    if option is None:
        return None
    negated = isinstance(option, OtherMediaConfig)
    texts = option.is_not if isinstance(option, OtherMediaConfig) else option
    several = (texts,) if isinstance(texts, str) else texts
    return mistakes.attempt(partial(parse_media_ranges, several, negated=negated))


def _written(value: object) -> object:
    # Include only the keys that the file sets. model_dump would create a serializer for each model.
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
    configured: StatusConfig | Sequence[StatusConfig] | None, mistakes: Mistakes
) -> dict[int, int]:
    several = configured if isinstance(configured, Sequence) else (configured,)
    pairs = [pair for pair in several if pair is not None]
    statuses = {pair.newer: pair.older for pair in pairs}
    if len(statuses) < len(pairs):
        mistakes.add("a status of the newer version occurs twice; remove one of them")
    return statuses


def operation_entries(
    config: ConversionConfig, at: Location
) -> Iterator[tuple[str | OperationConfig, Location]]:
    for index, entry in enumerate(config.operations or ()):
        yield entry, (*at, "operations", index)
