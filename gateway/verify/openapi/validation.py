"""Validation of documents against a schema."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

# jsonschema-rs is the fastest validator of JSON Schema for Python, and is maintained for current
# drafts.
import jsonschema_rs

from gateway.conversion.document import kind as kind_of
from gateway.conversion.field_path import pointer
from gateway.conversion.schema import (
    PLACE,
    Schema,
    definitions,
    reachable,
    references_of,
    without_components,
)
from gateway.verify.openapi.body_fields import generalized

_Kind = jsonschema_rs.ValidationErrorKind


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a schema.

    Attributes:
        field: the path as a JSON Pointer with `*` for array indexes and undeclared keys, so that
            violations of the same field can be counted together.
        keyword: the violated keyword of JSON Schema; `convert` if the conversion failed.
    """

    path: tuple[str | int, ...]
    field: str
    keyword: str
    reason: str


class Validator:
    """A compiled schema; raises ValueError for an invalid schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(
                reachable(schema), validate_formats=True
            )
        except jsonschema_rs.ValidationError as error:  # the schema violates the meta-schema
            place = pointer(*error.instance_path)
            raise ValueError(f"not a valid schema: {place}: {error.message}") from None

    def allows(self, document: object) -> bool:
        return self._compiled.is_valid(document)

    def violations(self, document: object) -> list[Violation]:
        return [
            Violation(path, generalized(path, self._schema), keyword, reason)
            for error in self._compiled.iter_errors(document)
            for path, keyword, reason in _violations(error)
        ]


def check_schema(schema: Schema, known: dict[int, object]) -> None:
    """Raise ValueError for an invalid schema.

    Args:
        known: the components that have been checked, which are added, by their `id()`.
    """
    whole = reachable(schema)
    root = without_components(whole)
    Validator(_alone(root))
    for name, one in definitions(whole).items():
        if known.get(id(one)) is not one:
            Validator(_alone({"$ref": PLACE + name}, {name: one}))
            known[id(one)] = one


def _alone(root: Schema, parts: Mapping[str, object] = MappingProxyType({})) -> Schema:
    """Return a schema that allows anything in place of other components."""
    names = references_of([root, *parts.values()])
    return {**root, "components": {"schemas": {**dict.fromkeys(names, True), **parts}}}


_Found = tuple[tuple[str | int, ...], str, str]


def _violations(error: jsonschema_rs.ValidationError) -> Iterator[_Found]:
    path, kind = tuple(error.instance_path), error.kind
    match kind:
        case _Kind.AnyOf() | _Kind.OneOfNotValid():
            found = [
                [each for inner in errors for each in _violations(inner)] for errors in kind.context
            ]
            yield from max(found, key=partial(_match, path), default=())
        case _Kind.Required(property=name):
            yield (*path, name), kind.name, "is missing, but required"
        case (
            _Kind.AdditionalProperties(unexpected=names)
            | _Kind.UnevaluatedProperties(unexpected=names)
        ):
            for name in names:
                yield (*path, name), kind.name, "is not declared, and no other fields are allowed"
        case _Kind.Type(types=types):
            names = sorted(types, key="null".__eq__)  # null comes last
            expected = " or ".join(_ARTICLE.get(name, f"a {name}") for name in names)
            yield path, kind.name, f"expected {expected}, found {_kind(error.instance)}"
        case _:
            yield path, kind.name, error.message


_ARTICLE = {"null": "null"} | {name: f"an {name}" for name in ("object", "array", "integer")}


def _kind(value: object) -> str:
    return "a fraction" if isinstance(value, float) and value % 1 else kind_of(value)


def _match(path: tuple[str | int, ...], violations: list[_Found]) -> tuple[bool, int, int]:
    """Return how well a value at a path matches an alternative; the best match was probably meant.

    A property that distinguishes alternatives has another value in the others. Otherwise, the first
    violation is deeper in a better match.
    """
    depths = [len(place) - len(path) for place, _, _ in violations]
    is_other = any(
        depth == 0 or (depth == 1 and keyword in _DISTINGUISHING)
        for depth, (_, keyword, _) in zip(depths, violations, strict=True)
    )
    return not is_other, min(depths, default=0), -len(violations)


_DISTINGUISHING = ("const", "enum")
