"""Changes of query parameters and header fields, which are lines with a name and a value.

Lines keep their order, and a line that no change names keeps every byte. Values are texts; a change
applies to all lines of its name.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote_plus

from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace


class ParameterLine(NamedTuple):
    """One query parameter or header field line.

    Attributes:
        key: The name in the form in which names are compared.
        value: The value as it is written; None for a query parameter without an equals sign.
    """

    key: str
    name: str
    value: str | None


class Spelling(NamedTuple):
    """The syntax of lines: of query parameters, or of header fields.

    Attributes:
        what: The term for a line in messages to clients.
        message: The message that the lines are converted for, a
            `gateway.conversion.message.Message`; LINK for the query of a link, whose
            request is still to come; None where nothing of it is known.
    """

    what: str
    key: Callable[[str], str]
    name: Callable[[str], str]
    read: Callable[[str], str]
    write: Callable[[str], str]
    message: object = None

    def of(self, message: object) -> "Spelling":
        return self if message is None else self._replace(message=message)


LINK = "link"
"""Stands for the message of a link."""


def _quoted(text: str) -> str:
    return quote(text, safe="")


QUERY = Spelling(
    "query parameter",
    key=lambda name: unquote_plus(name) if "%" in name or "+" in name else name,
    name=_quoted,
    read=unquote_plus,
    write=_quoted,
)
"""The syntax of query parameters (WHATWG URL, section 5), whose names are case-sensitive."""

# A field value (RFC 9110, section 5.5). Another character, such as a line end that a Python
# function reads from a query, would begin another field, or another message.
_FIELD_VALUE = re.compile(r"[\t -~\x80-\xff]*\Z")


def _field_value(text: str) -> str:
    if not _FIELD_VALUE.match(text):
        raise ConversionError("would have a character that a header field cannot hold")
    return text


FIELDS = Spelling(
    "header field",
    key=str.lower,
    name=str,
    read=lambda value: value.strip(" \t"),
    write=_field_value,
)
"""The syntax of header fields (RFC 9110, section 5), whose names are case-insensitive."""

ParameterLines = list[ParameterLine]


class Rewrite(NamedTuple):
    """A change of lines in one direction."""

    call: Callable[[ParameterLines, Spelling], ParameterLines]
    change: "ParameterChange"
    upwards: bool


class MovedNames(NamedTuple):
    """The names of parameters in two adjacent versions, where they differ."""

    newer: tuple[str, ...]
    older: tuple[str, ...]


class ParameterChange(Protocol):
    """One declared change of a query parameter or header field between two adjacent versions."""

    @property
    def names(self) -> tuple[MovedNames, ...]:
        """The names that it reads or writes, by version."""
        ...

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines converted to the newer version; may raise ConversionError."""
        ...

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines converted to the older version; may raise ConversionError."""
        ...


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A change of a parameter whose value is written differently in the two versions.

    Attributes:
        to_newer: Returns the newer version's value for the older version's; raises ValueError with
            a message that quotes no value.
        to_older: Returns the older version's value for the newer version's; raises ValueError with
            a message that quotes no value.
    """

    name: str
    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames((self.name,), (self.name,)),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self._rewrite(lines, spelling, self.to_newer)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self._rewrite(lines, spelling, self.to_older)

    def _rewrite(
        self, lines: ParameterLines, spelling: Spelling, convert: Callable[[str], str]
    ) -> ParameterLines:
        key = spelling.key(self.name)

        def changed(line: ParameterLine) -> ParameterLine:
            known = spelling.read(line.value or "")
            made = convert(known)
            # An unchanged value keeps every byte; decoding and encoding might not restore them.
            return line if made == known else line._replace(value=spelling.write(made))

        try:
            return [changed(line) if line.key == key else line for line in lines]
        except ValueError as error:
            raise ConversionError(str(error), Beside(spelling.what, (self.name,))) from None
        except ConversionError as error:
            raise error.moved(lambda _: Beside(spelling.what, (self.name,))) from None


@dataclass(frozen=True, slots=True)
class Reversed:
    """The inverse of a change: its `up` is the `down` of the change, and the reverse."""

    change: ParameterChange

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return tuple(MovedNames(older, newer) for newer, older in reversed(self.change.names))

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self.change.down(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self.change.up(lines, spelling)


@dataclass(frozen=True, slots=True)
class ParameterSequence:
    """A sequence of changes, applied in order by `up` and in reverse order by `down`."""

    changes: tuple[ParameterChange, ...]

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return tuple(each for change in self.changes for each in change.names)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return rewrite_lines(lines, in_direction(self.changes, upwards=True), spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return rewrite_lines(lines, in_direction(self.changes, upwards=False), spelling)


def in_direction(changes: Sequence[ParameterChange], *, upwards: bool) -> tuple[Rewrite, ...]:
    return tuple(
        Rewrite(each.up if upwards else each.down, each, upwards)
        for each in (changes if upwards else reversed(changes))
    )


def rewrite_query(
    query: str | None, rewrites: Sequence[Rewrite], message: object = None
) -> str | None:
    """Return a raw query after changes; None stands for a target without a query."""
    lines = parse_query(query)
    changed = rewrite_lines(lines, rewrites, QUERY.of(message))
    return query if changed == lines else write_query(changed)


def parse_query(query: str | None) -> ParameterLines:
    lines: ParameterLines = []
    for pair in query.split("&") if query else ():
        name, sign, value = pair.partition("=")
        lines.append(ParameterLine(QUERY.key(name), name, value if sign else None))
    return lines


def write_query(lines: ParameterLines) -> str | None:
    """Return the raw query with these parameters; None without any."""
    pairs = (line.name if line.value is None else f"{line.name}={line.value}" for line in lines)
    return "&".join(pairs) or None


def rewrite_fields(
    fields: Iterable[tuple[bytes, bytes]], rewrites: Sequence[Rewrite], message: object = None
) -> list[tuple[bytes, bytes]]:
    """Return header field lines after changes; may raise ConversionError."""
    return write_fields(rewrite_lines(parse_fields(fields), rewrites, FIELDS.of(message)))


def parse_fields(fields: Iterable[tuple[bytes, bytes]]) -> ParameterLines:
    return [
        ParameterLine(
            name.decode("latin-1").lower(), name.decode("latin-1"), value.decode("latin-1")
        )
        for name, value in fields
    ]


def write_fields(lines: ParameterLines) -> list[tuple[bytes, bytes]]:
    return [(line.name.encode("latin-1"), (line.value or "").encode("latin-1")) for line in lines]


def rewrite_lines(
    lines: ParameterLines, rewrites: Sequence[Rewrite], spelling: Spelling
) -> ParameterLines:
    given = lines
    try:
        for rewrite, _, _ in rewrites:
            lines = rewrite(lines, spelling)
    except ConversionError as error:
        index = next(index for index, each in enumerate(rewrites) if each.call is rewrite)
        keys = {line.key for line in given}

        def sent(place: ErrorPlace) -> ErrorPlace:
            place = place_before(place, rewrites[:index], spelling)
            named = place.names if isinstance(place, Beside) else ()
            there = tuple(name for name in named if spelling.key(name) in keys)
            return Beside(spelling.what, there) if there else place

        raise error.moved(sent) from None
    return lines


def place_before(place: ErrorPlace, rewrites: Sequence[Rewrite], spelling: Spelling) -> ErrorPlace:
    """Return where a place was before changes of lines."""
    if not isinstance(place, Beside) or place.what != spelling.what:
        return place
    return Beside(place.what, _before(place.names, rewrites, spelling))


def _before(
    names: tuple[str, ...], rewrites: Sequence[Rewrite], spelling: Spelling
) -> tuple[str, ...]:
    for _, change, upwards in reversed(rewrites):
        for newer, older in change.names[:: -1 if upwards else 1]:
            made, given = (newer, older) if upwards else (older, newer)
            # The sender may have a parameter that only one version has.
            keys = {spelling.key(name) for name in made if given}
            keys -= {spelling.key(name) for name in given}
            found = (given if spelling.key(name) in keys else (name,) for name in names)
            names = tuple(dict.fromkeys(each for some in found for each in some))
    return names
