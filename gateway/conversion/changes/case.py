"""`case` and `key_case`: values and keys that the older version writes in another case."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Literal

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, DirectedChange, SchemaEffect
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    FormWays,
    Loss,
    RewriteSection,
)
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import Document, JsonForm, JsonObject, holder_of
from gateway.conversion.field_path import Keys, Scope, Tokens
from gateway.conversion.formats.original_text import RepeatedKey, RepeatedValue
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    properties_of,
    renamed_fields,
    requires,
    rest_of,
    with_field,
)

Write = Callable[[str], str]
CaseName = Literal["camel", "pascal", "snake", "kebab", "upper_snake"]


class _CasesSection(ChangeSection):
    newer: CaseName
    """The case of the newer version: camel, pascal, snake, kebab or upper_snake."""
    older: CaseName
    """The case of the older version: camel, pascal, snake, kebab or upper_snake."""
    unknown: Literal["refuse", "keep"] = "refuse"
    """Whether a word that already has the case of the other version is refused or kept. The default
    is refuse."""

    def _kept(self, what: str, *, in_patch: bool) -> Iterable[Loss]:
        if self.unknown == "keep":
            for newer, case in ((False, self.older), (True, self.newer)):
                text = f"{what} in {case} case already, and the reverse direction changes it"
                yield Loss(newer, text, in_patch)

    def _ways(self, context: BuildContext) -> tuple[Write, Write] | None:
        if self.newer == self.older:
            context.mistakes.add("is the case in the other version too; remove the change", "older")
            return None
        newer, older, keep = self.newer, self.older, self.unknown == "keep"
        return rewrite_case(older, newer, keep=keep), rewrite_case(newer, older, keep=keep)


class Case(_CasesSection, RewriteSection):
    """Write a value in another case, such as IN_TRANSIT for inTransit."""

    keyword = "case"

    def own_losses(self) -> Iterable[Loss]:
        return self._kept(f"'{self.field}' stays unchanged where it is", in_patch=True)

    def ways(self, context: BuildContext) -> FormWays | None:
        ways = self._ways(context)
        return None if ways is None else FormWays(*ways)


class KeyCase(_CasesSection, BodySection):
    """Write all keys of an object in another case, including keys of nested objects and arrays."""

    keyword = "key_case"

    field: str | None = None
    """The field whose value has the keys; without it, the keys are those of the whole object."""
    but: tuple[str, ...] = ()
    """The names, in the newer version, of objects whose keys are data and stay unchanged, such as
    metadata."""
    names: dict[NonEmptyText, NonEmptyText] | None = None
    """Keys that do not follow the case, each with its name in the older version, such as
    `{ userID: user_id }`. By default, every capital letter begins a word: userID becomes
    user_i_d."""

    def own_losses(self) -> Iterable[Loss]:
        return self._kept("a key stays unchanged where it is", in_patch=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        ways = self._ways(context)
        path = None if self.field is None else context.path(self.field, "field")
        if ways is None or (path is None and self.field is not None):
            return None
        names = dict(self.names or {})
        if len({*names.values()}) < len(names):
            context.mistakes.add("two keys have the same name in the older version", "names")
            return None
        to_newer = _with_names(ways[0], {older: newer for newer, older in names.items()})
        to_older = _with_names(ways[1], names)
        for index, key in enumerate(self.but):
            if context.mistakes.attempt(partial(to_older, key), "but", index) is None:
                return None
        scopes, keys = (path.scopes, path.keys) if path else ((), None)
        return key_case(scopes, keys, to_newer, to_older, frozenset(self.but))


def _with_names(write: Write, names: Mapping[str, str]) -> Write:
    if not names:
        return write

    def named(key: str) -> str:
        return names[key] if key in names else write(key)

    return named


_LOWER = "[a-z][a-z0-9]*"
_NAMES: Mapping[CaseName, re.Pattern[str]] = {
    "camel": re.compile(rf"{_LOWER}(?:[A-Z][a-z0-9]*)*\Z", re.ASCII),
    "pascal": re.compile(r"(?:[A-Z][a-z0-9]*)+\Z", re.ASCII),
    "snake": re.compile(rf"{_LOWER}(?:_{_LOWER})*\Z", re.ASCII),
    "kebab": re.compile(rf"{_LOWER}(?:-{_LOWER})*\Z", re.ASCII),
    "upper_snake": re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*\Z", re.ASCII),
}


def rewrite_case(source: CaseName, target: CaseName, *, keep: bool = False) -> Write:
    """Return a function that converts names from one case to another.

    A name in neither of the two cases is unchanged. A name that is only in the target case raises
    ValueError. If `keep` is true, such a name is unchanged, although the opposite conversion would
    change it.
    """

    def rewrite(name: str) -> str:
        convert = _known if len(name) <= _LONGEST else _rewritten
        return convert(name, source, target, keep)

    return rewrite


def _rewritten(name: str, source: CaseName, target: CaseName, keep: bool) -> str:
    if _NAMES[source].match(name):
        return _joined(_words(name, source), target)
    if _NAMES[target].match(name) and not keep:
        raise ValueError(f"expected {source} case, found {target} case")
    return name


# Names may come from clients. The cache has few entries, and only for short names, so that clients
# cannot exhaust the memory.
_LONGEST = 64
_known = lru_cache(maxsize=4096)(_rewritten)


def _words(name: str, case: CaseName) -> list[str]:
    match case:
        case "camel" | "pascal":
            return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]", name)]
        case "kebab":
            return name.split("-")
        case _:
            return name.lower().split("_")


def _joined(words: list[str], case: CaseName) -> str:
    match case:
        case "camel":
            return words[0] + "".join(word.capitalize() for word in words[1:])
        case "pascal":
            return "".join(word.capitalize() for word in words)
        case "snake":
            return "_".join(words)
        case "kebab":
            return "-".join(words)
        case _:
            return "_".join(words).upper()


def key_case(
    scopes: tuple[Scope, ...],
    field: Keys | None,
    to_newer: Write,
    to_older: Write,
    but: frozenset[str] = frozenset(),
) -> Change:
    """Return a change that converts keys to another case at any depth of objects and arrays.

    Args:
        field: The keys that lead to the object or array; None for the whole object.
        but: The names, in the newer version, of objects whose keys are data and stay unchanged.
    """
    older_but = frozenset(map(to_older, but))
    return Change(
        scopes,
        ((),) if field is None else (field,),
        _rewriting(field, to_newer, older_but, (to_older, but)),
        _rewriting(field, to_older, but, (to_newer, older_but)),
    )


def _rewriting(
    field: Keys | None,
    write: Write,
    but: frozenset[str],
    back: tuple[Write, frozenset[str]],
) -> DirectedChange:
    def step(fields: JsonObject, form: JsonForm) -> None:
        if field is None:
            made = _object(fields, form, write, but)
            fields.clear()
            fields.update(made)
            return
        holder = holder_of(fields, field, form)
        if holder is not None:
            try:
                holder[field[-1]] = _value(holder[field[-1]], form, write, but)
            except ConversionError as error:
                raise error.under(*field) from None

    return DirectedChange(step, _effect(field, write, but), partial(_origin, field or (), *back))


def _effect(field: Keys | None, write: Write, but: frozenset[str]) -> SchemaEffect:
    def effect(flat: Flat, image: SchemaImage) -> object:
        image.record_reads_anywhere(*sorted(but))

        def rewritten(schema: object) -> object:
            return image.each(schema, of, key=effect)

        def of(one: Flat) -> object:
            if one["type"] == "array":
                return image.elements(one, rewritten)
            if one["type"] != "object":
                return one
            made = one
            for name, schema in properties_of(one).items():
                inner = schema if name in but else rewritten(schema)
                if inner is not schema:
                    made = with_field(made, name, inner, required=requires(one, name))
            rest = rest_of(one)
            if rest is not False:
                image.misfit("a key may have another case")
                made = {**made, "additionalProperties": rewritten(rest)}
            return renamed_fields(made, write, image)

        return of(flat) if field is None else image.value(flat, field, of)

    return effect


def _origin(begin: Keys, write: Write, but: frozenset[str], place: ErrorPlace) -> ErrorPlace:
    if isinstance(place, Beside) or place[: len(begin)] != begin:
        return place
    found: Tokens = begin
    for depth, token in enumerate(place[len(begin) :], len(begin) + 1):
        try:
            found = (*found, write(token) if isinstance(token, str) else token)
        except ValueError:  # the other version cannot have such a key
            break
        if token in but:
            return (*found, *place[depth:])
    return found


def _value(
    value: Document, form: JsonForm, write: Callable[[str], str], but: frozenset[str]
) -> Document:
    if isinstance(value, RepeatedValue):
        return value._replace(value=_value(value.value, form, write, but))
    opened = form.open(value)
    if isinstance(opened, dict):
        fields = _object(opened, form, write, but)
        return value if fields == opened else form.close(fields)
    if not isinstance(opened, list):
        return value
    made: list[Document] = []
    try:
        for element in opened:
            made.append(_value(element, form, write, but))  # noqa: PERF401  # the error needs its index
    except ConversionError as error:
        raise error.under(len(made)) from None
    return value if made == opened else made


def _object(
    fields: JsonObject, form: JsonForm, write: Callable[[str], str], but: frozenset[str]
) -> JsonObject:
    made: JsonObject = {}
    for key, value in fields.items():
        plain = str(key)
        try:
            name = write(plain)
        except ValueError as error:
            raise ConversionError(f"the key is not a name: {error}", (key,)) from None
        if isinstance(key, RepeatedKey):
            name = key if name == plain else RepeatedKey(name)
        if name in made:
            raise ConversionError(f"becomes '{name}', which already exists", (key,))
        if plain in but:
            made[name] = value
            continue
        try:
            made[name] = _value(value, form, write, but)
        except ConversionError as error:
            raise error.under(key) from None
    return made
