"""`add_value` and `remove_value`: a value that lists of only one version contain.

For example, a newer version may return an object only to requests with `expand[]=customer`, which
the older version always returned. In a query or a form, clients write the list in one of these
ways: `a[]=x&a[]=y`, `a[0]=x&a[1]=y`, `a=x&a=y`, or with a separator, `a=x,y`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from gateway.base.model import NonEmptyText
from gateway.conversion.change import UNCHANGED, Change, DirectedChange, in_arrays
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    Loss,
    ParameterSection,
    opposite,
)
from gateway.conversion.changes.default import filled, is_blocked
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    get,
    put,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import (
    LINK,
    QUERY,
    MovedNames,
    ParameterChange,
    ParameterLine,
    ParameterLines,
    Spelling,
)
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_array,
    elements_of,
    listed,
    union,
    wide,
    words_of,
)

# The end of a name. More digits than these are no index that a client writes.
_SUFFIX = re.compile(r"(?:\[([0-9]{0,6})\])?\Z")
_RAW_INDEX = re.compile(r"(?<=\[)[0-9]+(?=\]\Z)|(?<=%5[Bb])[0-9]+(?=%5[Dd]\Z)")
_FORM = Spelling("form field", key=str, name=str, read=str, write=str)
# Separators that a query may contain unencoded (RFC 3986, section 3.4).
_SAFE = ",;:"


class _ListSection(ChangeSection):
    shares_list = True

    field: NonEmptyText
    """The list: an array, a repeated parameter, or a repeated form field. If a request has no other
    value, the name sets how the value is written: `expand[]`, `expand[0]` or `expand`."""
    value: NonEmptyText
    """The value that lists of the newer version contain, such as data.customer."""
    separator: NonEmptyText | None = None
    """The text between the values if one parameter or form field has all values, such as a comma.
    By default, the parameter is repeated."""
    keep: bool = False
    """Whether a downgrade keeps the value because the older version may have it too. The default is
    false."""

    def own_losses(self) -> Iterable[Loss]:
        if self.keep:
            text = f"where '{self.field}' lacks '{self.value}', it is added"
            return (Loss(True, text, overwrites=False),)
        return (Loss(False, f"'{self.value}' in '{self.field}' is left out"),)

    def spelled(self, name: str, suffix: str) -> "SpelledList":
        return SpelledList(name, suffix, self.value, self.separator)


class AddValue(_ListSection, BodySection):
    """Remove a value from a list for the older version, which lacks it."""

    keyword = "add_value"

    def own_losses(self) -> Iterable[Loss]:
        yield from super().own_losses()
        if not self.keep:
            yield Loss(True, f"an empty '{self.field}' comes back absent", overwrites=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        name, suffix = _parts(self.field)
        path = context.path(name, "field")
        if path is None:
            return None
        spelled = self.spelled(path.keys[-1], suffix)
        return add_value(path.scopes, path.keys, spelled, keep=self.keep)


RemoveValue = opposite(
    AddValue,
    "remove_value",
    "Add a value to a list for the older version; the newer version lacks it.",
)


class AddValueParameter(_ListSection, ParameterSection):
    """Remove a value from a parameter for the older version, which lacks it."""

    keyword = "add_value"

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        field = context.name(self.field, "field")
        context.text(self.value, "value")
        spelled = self.spelled(*_parts(field))
        names = (MovedNames((field,), (field,) if self.keep else ()),)
        return ParameterChange(names, spelled.added, _same if self.keep else spelled.removed)


RemoveValueParameter = opposite(
    AddValueParameter,
    "remove_value",
    "Add a value to a parameter for the older version; the newer version lacks it.",
)


def _parts(field: str) -> tuple[str, str]:
    match = _SUFFIX.search(field)
    assert match is not None  # the pattern matches the empty string
    return field[: match.start()], match[0]


def _same(lines: ParameterLines, _: Spelling) -> ParameterLines:
    return lines


class SpelledList(NamedTuple):
    """A list of strings in a query, in header fields or in a form.

    Attributes:
        suffix: The end of the name if the list has no other value: `[]`, `[0]` or empty.
        separator: The string between the values of one line; None if each line is one value.
    """

    name: str
    suffix: str
    value: str
    separator: str | None = None

    def added(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the value. It is written like the last value of the list.

        A URL in a response gets no value: the request with this URL gets it.
        """
        places = [index for index, line in enumerate(lines) if self.is_name(line.key, spelling)]
        known = (value for index in places for value in self._values(lines[index], spelling))
        if spelling.message == LINK or self.value in known:
            return lines
        if not places:
            name = f"{self.name}{self.suffix}"
            line = ParameterLine(spelling.key(name), spelling.name(name), None)
            return [*lines, self._with(line, [self.value], spelling)]
        last = lines[places[-1]]
        index = max(self._index(lines[index]) for index in places) + 1
        alone = self._with(self._moved(last, index, spelling), [self.value], spelling)
        made = [last, alone]
        if self.separator is not None:
            both = (
                f"{last.value}{self._joint(spelling)}{alone.value}" if last.value else alone.value
            )
            made = [last._replace(value=both)]
        return [*lines[: places[-1]], *made, *lines[places[-1] + 1 :]]

    def removed(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines without the value. The indexes of later values decrease."""
        made, gone = ParameterLines(), 0
        for line in lines:
            if self.is_name(line.key, spelling):
                values = self._values(line, spelling)
                others = [value for value in values if value != self.value]
                if not others:
                    gone += self._index(line) >= 0
                    continue
                if len(others) < len(values):
                    line = self._with(line, others, spelling)
                if gone:
                    line = self._moved(line, self._index(line) - gone, spelling)
            made.append(line)
        return made

    def is_name(self, key: str, spelling: Spelling) -> bool:
        """Return whether the decoded name of a parameter or form field belongs to the list."""
        name = spelling.key(self.name)
        return key.startswith(name) and _SUFFIX.fullmatch(key, len(name)) is not None

    def _index(self, line: ParameterLine) -> int:
        match = _SUFFIX.fullmatch(line.key, len(self.name))
        return int(match[1]) if match is not None and match[1] else -1

    def _values(self, line: ParameterLine, spelling: Spelling) -> list[str]:
        text = spelling.read(line.value or "")
        return [text] if self.separator is None else text.split(self.separator)

    def _with(self, line: ParameterLine, values: list[str], spelling: Spelling) -> ParameterLine:
        return line._replace(value=self._joint(spelling).join(map(spelling.write, values)))

    def _joint(self, spelling: Spelling) -> str:
        joint = self.separator or ""
        return quote(joint, safe=_SAFE) if spelling.what == QUERY.what else joint

    def _moved(self, line: ParameterLine, index: int, spelling: Spelling) -> ParameterLine:
        """Return the line with another index; a name that has no index, such as `a[]`, stays."""
        if self._index(line) < 0:
            return line
        name, count = _RAW_INDEX.subn(str(index), line.name)
        if not count:  # the client has escaped the digits
            name = spelling.name(f"{self.name}[{index}]")
        return line._replace(key=spelling.key(name), name=name)


def add_value(
    scopes: tuple[Scope, ...], field: Keys, spelled: SpelledList, *, keep: bool = False
) -> Change:
    """Return the change of a list that contains a value only in the newer version.

    An upgrade adds the value to the list, and creates an absent list. A downgrade removes the
    value, and a list that becomes empty. Null stays null.

    A PATCH request without the list gets none, because it does not change the list.
    """
    change = _directed(scopes, field, spelled, keep=keep, in_patch=False)
    if in_arrays(scopes):
        return change
    return replace(change, patch=_directed(scopes, field, spelled, keep=keep, in_patch=True))


def _directed(
    scopes: tuple[Scope, ...], field: Keys, spelled: SpelledList, *, keep: bool, in_patch: bool
) -> Change:
    def up(fields: JsonObject, form: JsonForm) -> None:
        if form.typed:
            _add(fields, field, spelled, form, creates=not in_patch)
        else:
            _change_form(fields, spelled, spelled.added, creates=not in_patch)

    def down(fields: JsonObject, form: JsonForm) -> None:
        if form.typed:
            _remove(fields, field, spelled, form)
        else:
            _change_form(fields, spelled, spelled.removed)

    def added_effect(flat: Flat, image: SchemaImage) -> object:
        changed = partial(_schema, spelled, image, True)
        if in_patch:
            return image.value(flat, field, changed)
        if keep:
            image.record_reads(field)
        image.record_write(field, True if keep else {"type": "array"})
        fresh = an_array(listed([spelled.value]))
        return filled(flat, field, fresh, image, lambda before: image.each(before, changed))

    def removed_effect(flat: Flat, image: SchemaImage) -> object:
        rest, before, _ = image.take(flat, field)
        made = image.each(before, partial(_schema, spelled, image, False))
        return image.put(rest, field, made, required=False)

    return Change(
        scopes,
        (field[:1],),
        DirectedChange(up, added_effect, adds=field),
        UNCHANGED if keep else DirectedChange(down, removed_effect),
        of_value=True,
    )


def _add(
    fields: JsonObject, field: Keys, spelled: SpelledList, form: JsonForm, *, creates: bool
) -> None:
    if form.of_places or is_blocked(fields, field, form):
        return
    value = get(fields, field, form)
    if value is MISSING:
        value = [] if creates else None
    if value is not None:
        put(fields, field, _changed(spelled, value, field, form, adds=True), form)


def _remove(fields: JsonObject, field: Keys, spelled: SpelledList, form: JsonForm) -> None:
    value = MISSING if form.of_places else get(fields, field, form)
    if value is MISSING or value is None:
        return
    made = _changed(spelled, value, field, form, adds=False)
    if value and not made:
        take(fields, field, form)
    else:
        put(fields, field, made, form)


def _changed(
    spelled: SpelledList, value: Document, field: Keys, form: JsonForm, *, adds: bool
) -> Document:
    values, separator = value, spelled.separator
    if isinstance(value, str) and separator is not None:
        values = value.split(separator) if value else []
    if not isinstance(values, list):
        refuse("an array", value, *field)
    made = [one for one in values if form.open(one) != spelled.value]
    if adds:
        made = values if len(made) < len(values) else [*values, spelled.value]
    return made if isinstance(value, list) else f"{separator}".join(made)


def _schema(spelled: SpelledList, image: SchemaImage, adds: bool, flat: Flat) -> object:
    if flat["type"] == "null" or (flat["type"] == "string" and spelled.separator is not None):
        return flat if flat["type"] == "null" else wide({"type": "string"})
    if flat["type"] != "array":
        return image.refused(flat, f"expected an array, found {flat['type']}")
    if adds:
        return wide(an_array(union((elements_of(flat), listed([spelled.value])))))

    def other(element: Flat) -> object:
        words = words_of(element)
        return element if words is None else listed(word for word in words if word != spelled.value)

    return wide(an_array(image.each(elements_of(flat), other)))


def _change_form(
    fields: JsonObject,
    spelled: SpelledList,
    step: Callable[[ParameterLines, Spelling], ParameterLines],
    *,
    creates: bool = False,
) -> None:
    known = {
        key: value if isinstance(value, list) else [value]
        for key, value in fields.items()
        if spelled.is_name(key, _FORM)
    }
    lines = [ParameterLine(key, key, str(one)) for key, some in known.items() for one in some]
    if not lines and not creates:
        return
    changed = step(lines, _FORM)
    if changed == lines:
        return
    made: dict[str, list[str]] = {}
    for line in changed:
        made.setdefault(line.key, []).append(line.value or "")
    for key in known.keys() - made.keys():
        del fields[key]
    for key, some in made.items():
        if some != known.get(key):
            fields[key] = some if some[1:] else some[0]
