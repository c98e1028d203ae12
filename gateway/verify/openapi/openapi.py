"""OpenAPI documents (3.0, 3.1 and Swagger 2.0): their operations, and the schemas of bodies."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from gateway.conversion.document import kind
from gateway.conversion.schema import Schema, Schemas, definitions
from gateway.conversion.version_step import VersionLink, status_kinds
from gateway.verify.openapi.json_schema import SchemaBundler, Use
from gateway.verify.openapi.nested_names import NestedName, as_schema, nested_form, nested_names
from gateway.verify.openapi.swagger import from_swagger

_VERSION = re.compile(r"3\.[0-9]+(?:\.[0-9]+)?")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
JSON = re.compile(r"application/(?:json|[^;\s]+\+json)\s*(?:;.*)?\Z", re.IGNORECASE)
FORM = re.compile(r"application/x-www-form-urlencoded\s*(?:;.*)?\Z", re.IGNORECASE)
# The style of parameters and form fields whose nested fields have names in brackets.
_NESTED = "deepObject"
_STATUS = re.compile(r"(?:[1-5](?:[0-9]{2}|XX|xx)|default)\Z", re.ASCII)
_PARAMETER = re.compile(r"\{([^{}]*)\}")
# `default` applies only to errors: a document must name its success statuses.
_ERRORS = range(400, 600)


class DocumentError(Exception):
    """A document that cannot be used. The message contains its name, the mistake and the remedy."""


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """A parameter of an operation. Its `place` is query, header, path or cookie."""

    name: str
    place: str
    required: bool
    schema: Schema


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: a method of a path, with the schemas of its messages.

    Attributes:
        request: the schema of a JSON request body; None without a JSON body.
        responses: the schema of each response by its key in the document: `200`, `2XX` or
            `default`. None for a response without a JSON body.
        base: the path of the document's server, with which `path` begins.
        answer_fields: the names of the header fields of each response, by its key.
        form: the schema of a form (`application/x-www-form-urlencoded`); None without a form.
        answer_types: the media types or ranges of each response, by its key.
    """

    method: str
    path: str
    request: Schema | None = None
    responses: Mapping[str, Schema | None] = field(default_factory=dict)
    parameters: tuple[ApiParameter, ...] = ()
    base: str = ""
    body_required: bool = False
    answer_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    form: Schema | None = None
    answer_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    request_types: tuple[str, ...] = ()

    @property
    def shape(self) -> str:
        return shape(self.path)

    @property
    def bare_shape(self) -> str:
        return shape(self.path.removeprefix(self.base))

    def takes(self, path: str) -> bool:
        pattern = re.escape(self.bare_shape).replace(r"\{\}", "[^/]+")
        return re.fullmatch(f"(?:/.*)?{pattern}", path) is not None

    def captured(self, path: str) -> list[tuple[str, str]]:
        bare = self.path.removeprefix(self.base)
        pattern = re.escape(self.bare_shape).replace(r"\{\}", "([^/]+)")
        match = re.fullmatch(f"(?:/.*)?{pattern}", path)
        assert match is not None  # the operation takes the path
        return list(zip(_PARAMETER.findall(bare), match.groups(), strict=True))

    def response(self, status: int) -> Schema | None:
        key = self.key(status)
        return None if key is None else self.responses[key]

    @property
    def succeeds(self) -> bool:
        return any(key.startswith("2") for key in self.responses)

    def key(self, status: int) -> str | None:
        near = (str(status), f"{status // 100}XX", f"{status // 100}xx", "default")
        return next((key for key in near if key in self.responses), None)


@cache
def shape(path: str) -> str:
    return _PARAMETER.sub("{}", path)


def followed(data: object, value: object) -> object:
    """Return the target of a reference in a document, or any other value itself.

    Raises:
        ValueError: a reference has no target.
    """
    for _ in range(32):
        if not (isinstance(value, Mapping) and isinstance(value.get("$ref"), str)):
            return value
        value = _resolved(data, value["$ref"])
    raise ValueError("its references form a cycle")


def _resolved(value: object, reference: str, schema: object = None) -> object:
    if not reference.startswith("#"):
        raise ValueError(f"'{reference}' refers to another document; bundle both into one file")
    if reference == "#" and schema is not None:
        return schema
    if not reference.startswith("#/"):
        raise ValueError(
            f"'{reference}' is not a JSON Pointer; write one such as #/components/schemas/A"
        )
    for step in unquote(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise ValueError(f"'{reference}' has no target; is the name right?")
    return value


def server_of(data: Mapping[str, object]) -> SplitResult:
    """Return the URL of the first server of a document, with the defaults of its variables.

    Raises:
        ValueError: the URL is invalid.
    """
    servers = data.get("servers")
    server = servers[0] if isinstance(servers, list) and servers else None
    first, variables = (
        (server, server.get("variables")) if isinstance(server, Mapping) else ({}, {})
    )

    def default(name: re.Match[str]) -> str:
        variable = variables.get(name[1]) if isinstance(variables, Mapping) else None
        return str(variable.get("default", "")) if isinstance(variable, Mapping) else name[0]

    return urlsplit(_PARAMETER.sub(default, str(first.get("url", ""))))


class OpenApiDocument:
    """An OpenAPI document, 3.0 or 3.1, whose operations are not read yet.

    Raises:
        DocumentError: the data is not an OpenAPI 3 document.
    """

    def __init__(self, data: object, source: str) -> None:
        self.source = source
        if isinstance(data, dict) and str(data.get("swagger")) == "2.0":
            try:
                data = from_swagger(data, partial(followed, data))
            except ValueError as error:
                raise self._bad(str(error)) from None
        if not isinstance(data, dict) or "openapi" not in data:
            raise self._bad(
                "not an OpenAPI document (no 'openapi'); publish one: 3.0, 3.1 or Swagger 2.0"
            )
        self.data: dict[str, Any] = data
        version = str(data["openapi"])
        if not _VERSION.fullmatch(version):
            raise self._bad(f"OpenAPI {version}; versions 3.0 and 3.1 are supported")
        self._of_3_0 = version.startswith("3.0")

    def _resolve(self, reference: str, schema: object = None) -> object:
        return _resolved(self.data if schema is None else schema, reference, schema)

    def _base(self) -> str:
        try:
            return server_of(self.data).path.rstrip("/")
        except ValueError as error:
            written = self.data["servers"][0]["url"]
            raise self._bad(f"servers: '{written}': {error}") from None

    def _mapping(self, value: object, where: str) -> Mapping[str, object]:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: expected an object, found {kind(value)}")
        return {str(key): inner for key, inner in value.items()}

    def _bad(self, what: str) -> DocumentError:
        return DocumentError(f"{self.source}: {what}")


class Description(OpenApiDocument):
    """The operations of an OpenAPI document, with the schemas of their messages.

    Attributes:
        unread: keys of the document that are not read (`webhooks`, `callbacks`,
            `additionalOperations`), each with the name of the operation or webhook.

    Raises:
        DocumentError: the data is not an OpenAPI 3 document, or has an invalid reference.
    """

    def __init__(self, data: object, source: str) -> None:
        super().__init__(data, source)
        self._bundlers = {
            use: SchemaBundler(self._resolve, use, nullable=self._of_3_0) for use in Use
        }
        self.unread = [("webhooks", str(one)) for one in self.data.get("webhooks") or ()]
        self.operations = tuple(self._operations())

    def _operations(self) -> Iterator[Operation]:
        base = self._base()
        where = ""
        try:
            for path, item in self._mapping(self.data.get("paths", {}), "paths").items():
                where = f"paths.{path}: "
                entry = self._mapping(followed(self.data, item), "a path")
                others = self._mapping(entry.get("additionalOperations", {}), "operations")
                for name in (*(("QUERY",) if "query" in entry else ()), *others):
                    self.unread.append(("additionalOperations", f"{name} {base}{path}"))
                for method in METHODS:
                    if method in entry:
                        where = f"{method.upper()} {path}: "
                        declared = self._mapping(entry[method], "an operation")
                        if declared.get("callbacks"):
                            self.unread.append(("callbacks", f"{method.upper()} {base}{path}"))
                        yield self._operation(method, path, base, entry, declared)
        except (ValueError, RecursionError) as error:
            raise self._bad(f"{where}{error}") from None

    def _operation(
        self,
        method: str,
        path: str,
        base: str,
        item: Mapping[str, object],
        declared: Mapping[str, object],
    ) -> Operation:
        given = {
            key: parameters
            for source in (item, declared)
            for raw in _parameters(source)
            for key, parameters in (self._parameter(raw),)
        }
        body = followed(self.data, declared.get("requestBody"))
        responses = self._responses(declared)
        return Operation(
            method.upper(),
            base + path,
            None if body is None else self._body(body, Use.REQUEST),
            {
                str(status): self._body(followed(self.data, response), Use.RESPONSE)
                for status, response in responses.items()
            },
            tuple(one for some in given.values() for one in some),
            base,
            isinstance(body, dict) and body.get("required") is True,
            {str(status): self._fields(response) for status, response in responses.items()},
            None if body is None else self._body(body, Use.REQUEST, FORM),
            {str(status): self._types(response) for status, response in responses.items()},
            () if body is None else self._types(body),
        )

    def _responses(self, declared: Mapping[str, object]) -> Mapping[str, object]:
        given = self._mapping(declared.get("responses", {}), "responses")
        own = {key: one for key, one in given.items() if not key.startswith("x-")}
        for key in own:
            if not _STATUS.match(key):
                raise ValueError(f"'{key}' is not a status; write one such as 200, 2XX, or default")
        return own

    def _fields(self, response: object) -> tuple[str, ...]:
        declared = self._mapping(followed(self.data, response), "a response").get("headers", {})
        return tuple(self._mapping(declared, "headers"))

    def _types(self, message: object) -> tuple[str, ...]:
        declared = self._mapping(followed(self.data, message), "a message").get("content", {})
        return tuple(self._mapping(declared, "content"))

    def _parameter(self, raw: object) -> tuple[tuple[str, str], list[ApiParameter]]:
        parameter = self._mapping(followed(self.data, raw), "a parameter")
        if not (isinstance(parameter.get("name"), str) and isinstance(parameter.get("in"), str)):
            raise ValueError("a parameter needs a name and a location (in)")
        content = self._mapping(parameter.get("content", {}), "content")
        schema = parameter.get("schema", next(iter(content.values()), {}))
        name, place, required = (parameter.get(key) for key in ("name", "in", "required"))
        bundle = self._schema(schema, Use.REQUEST)
        found = [NestedName(str(name), bundle, required is True)]
        if parameter.get("style") == _NESTED:
            known = Schemas(definitions(bundle))
            found = [*nested_names(known, str(name), bundle, required=required is True)]
        named = {one.name: one for one in found if one.name is not None}
        parts = {key: bundle[key] for key in ("components",) if key in bundle}
        return (str(place), str(name)), [
            ApiParameter(key, str(place), one.required, {**as_schema(one.schema), **parts})
            for key, one in named.items()
        ]

    def _body(self, declared: object, use: Use, types: re.Pattern[str] = JSON) -> Schema | None:
        what = "a response" if use is Use.RESPONSE else "a request body"
        content = self._mapping(self._mapping(declared, what).get("content", {}), "content")
        for media_type, entry in content.items():
            if types.match(media_type):
                described = self._mapping(followed(self.data, entry), media_type)
                schema = self._schema(described.get("schema", {}), use)
                encoding = self._mapping(described.get("encoding", {}), "encoding")
                nested = [
                    name
                    for name, one in encoding.items()
                    if isinstance(one, dict) and one.get("style") == _NESTED
                ]
                return nested_form(schema, nested) if nested and types is FORM else schema
        return None

    def _schema(self, schema: object, use: Use) -> Schema:
        return self._bundlers[use].read(schema)


def _parameters(source: Mapping[str, object]) -> list[object]:
    value = source.get("parameters", [])
    if not isinstance(value, list):
        raise ValueError(f"parameters: expected an array, found {kind(value)}")
    return value


def statuses_of(key: str) -> range:
    """Return the statuses that a key of `responses` covers: `200`, `2XX` or `default`."""
    if key == "default":
        return _ERRORS
    first = int(key.upper().replace("X", "0"))
    return range(first, first + (1 if key.isdecimal() else 100))


class StatusGroups:
    """Groups of statuses to which the same links apply, so that one of each group is examined."""

    def __init__(self, links: Sequence[VersionLink]) -> None:
        self._links = links
        self._known: dict[str, list[list[int]]] = {}

    def of(self, operation: Operation, key: str) -> Iterator[int]:
        """Yield one status of each group among the responses of an operation with a key."""
        if key not in self._known:
            groups: dict[object, list[int]] = {}
            covered = statuses_of(key)
            for status, kind in status_kinds(self._links, covered).items():
                if status in covered and status is not None:
                    groups.setdefault(kind, []).append(status)
            self._known[key] = [sorted(some) for some in groups.values()]
        for some in self._known[key]:
            own = (status for status in some if operation.key(status) == key)
            yield from islice(own, 1)
