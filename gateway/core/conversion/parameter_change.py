"""Changes of query parameters and header fields, which are lines with a name and a value.

Lines keep their order, and a line that no change names keeps every byte. Values are texts; a change
applies to all lines of its name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote_plus

from gateway.core.conversion.document import ConversionError


class ParameterLine(NamedTuple):
    """One query parameter or header field line.

    Attributes:
        key: The name in the form in which names are compared.
        name: The name as it is written.
        value: The value as it is written; None for a query parameter without an equals sign.
    """

    key: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Spelling:
    """The syntax of lines: of query parameters, or of header fields.

    Attributes:
        what: The term for a line in messages to clients.
        key: Returns a written name in the form in which names are compared.
        name: Returns a name as it is to be written.
        read: Returns the decoded text of a written value.
        write: Returns a value as it is to be written.
        message: The message that the lines are converted for, a
            `gateway.core.conversion.message.message.Message`; None where nothing of it is known.
    """

    what: str
    key: Callable[[str], str]
    name: Callable[[str], str]
    read: Callable[[str], str]
    write: Callable[[str], str]
    message: object = None

    def of(self, message: object) -> "Spelling":
        """Return the same syntax for the lines of a message."""
        return self if message is None else replace(self, message=message)


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

FIELDS = Spelling(
    "header",
    key=str.lower,
    name=str,
    read=lambda value: value.strip(" \t"),
    write=str,
)
"""The syntax of header fields (RFC 9110, section 5), whose names are case-insensitive."""

ParameterLines = list[ParameterLine]
Rewrite = Callable[[ParameterLines, Spelling], ParameterLines]


class MovedNames(NamedTuple):
    """The names of parameters in two adjacent versions, where they differ.

    Attributes:
        newer: The names in the newer version; empty where only the older one has them.
        older: The names in the older version; empty where only the newer one has them.
    """

    newer: tuple[str, ...]
    older: tuple[str, ...]


class ParameterChange(Protocol):
    """One declared change of a query parameter or header field between two adjacent versions."""

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """The names that differ between the versions."""
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
        name: The name of the parameter in both versions.
        to_newer: Returns the newer version's value for the older version's; raises ValueError with
            a message that quotes no value.
        to_older: Returns the older version's value for the newer version's; raises ValueError with
            a message that quotes no value.
    """

    name: str
    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """No names: the parameter has the same one in both versions."""
        return ()

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the value as the newer version writes it."""
        return self._rewrite(lines, spelling, self.to_newer)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the value as the older version writes it."""
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
            raise ConversionError(f"the {spelling.what} '{self.name}': {error}") from None


ParameterValues = Mapping[str, str]
"""The decoded values of some parameters, by name; absent ones are left out."""


@dataclass(frozen=True, slots=True)
class Recombined:
    """A change of several parameters that the other version has as others, or as one.

    Attributes:
        newer: The names of the parameters in the newer version.
        older: The names of the parameters in the older version.
        to_newer: Returns the newer version's values for the older version's; raises ValueError
            with a message that quotes no value.
        to_older: Returns the older version's values for the newer version's; raises ValueError
            with a message that quotes no value.
    """

    newer: tuple[str, ...]
    older: tuple[str, ...]
    to_newer: Callable[[ParameterValues], ParameterValues]
    to_older: Callable[[ParameterValues], ParameterValues]

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """The names, unless they are the same."""
        same = set(self.newer) == set(self.older)
        return () if same else (MovedNames(self.newer, self.older),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the parameters as the newer version has them."""
        return _recombined(lines, spelling, self.older, self.to_newer)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the parameters as the older version has them."""
        return _recombined(lines, spelling, self.newer, self.to_older)


def _recombined(
    lines: ParameterLines,
    spelling: Spelling,
    names: tuple[str, ...],
    convert: Callable[[ParameterValues], ParameterValues],
) -> ParameterLines:
    by_key = {spelling.key(name): name for name in names}
    found: dict[str, str] = {}
    for line in lines:
        name = by_key.get(line.key)
        if name is not None:
            if name in found:
                raise ConversionError(f"the {spelling.what} '{name}' stands twice")
            found[name] = spelling.read(line.value or "")
    if not found:
        return lines
    try:
        made = convert(found)
    except ValueError as error:
        named = ", ".join(f"'{name}'" for name in found)
        raise ConversionError(f"the {spelling.what} {named}: {error}") from None
    if made == found:
        return lines
    for name in made:
        if name not in names and any(line.key == spelling.key(name) for line in lines):
            raise ConversionError(f"the {spelling.what} '{name}' is there already")
    written = [
        ParameterLine(spelling.key(name), spelling.name(name), spelling.write(value))
        for name, value in made.items()
    ]
    first = next(index for index, line in enumerate(lines) if line.key in by_key)
    behind = [line for line in lines[first:] if line.key not in by_key]
    return [*lines[:first], *written, *behind]


@dataclass(frozen=True, slots=True)
class Reversed:
    """The inverse of a change: its `up` is the `down` of the change, and the reverse."""

    change: ParameterChange

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """The names of the change, the other way round."""
        return tuple(MovedNames(older, newer) for newer, older in reversed(self.change.moved))

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines after `down` of the change."""
        return self.change.down(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines after `up` of the change."""
        return self.change.up(lines, spelling)


@dataclass(frozen=True, slots=True)
class ParameterSequence:
    """A sequence of changes, applied in order by `up` and in reverse order by `down`."""

    changes: tuple[ParameterChange, ...]

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """The names of every change, the first one first."""
        return tuple(each for change in self.changes for each in change.moved)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines after `up` of every change, the first one first."""
        return rewrite_lines(lines, [change.up for change in self.changes], spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines after `down` of every change, the last one first."""
        return rewrite_lines(lines, [change.down for change in reversed(self.changes)], spelling)


def rewrite_query(
    query: str | None, rewrites: Sequence[Rewrite], message: object = None
) -> str | None:
    """Return a raw query after changes; None stands for a target without a query.

    Args:
        query: The raw query.
        rewrites: The changes.
        message: The message that has the query; None where nothing of it is known.

    Raises:
        ConversionError: The query does not fit the declared changes.
    """
    lines = parse_query(query)
    changed = rewrite_lines(lines, rewrites, QUERY.of(message))
    return query if changed == lines else write_query(changed)


def parse_query(query: str | None) -> ParameterLines:
    """Return the parameters of a raw query; None has none."""
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
    """Return header field lines as lines to change."""
    return [
        ParameterLine(
            name.decode("latin-1").lower(), name.decode("latin-1"), value.decode("latin-1")
        )
        for name, value in fields
    ]


def write_fields(lines: ParameterLines) -> list[tuple[bytes, bytes]]:
    """Return lines as header field lines."""
    return [(line.name.encode("latin-1"), (line.value or "").encode("latin-1")) for line in lines]


def rewrite_lines(
    lines: ParameterLines, rewrites: Sequence[Rewrite], spelling: Spelling
) -> ParameterLines:
    """Return lines after changes; may raise ConversionError."""
    for rewrite in rewrites:
        lines = rewrite(lines, spelling)
    return lines
