"""Parameters: changes of query parameters and header fields, which are lines of name and value.

Lines keep their order, and one that no change names keeps every byte. Values are texts; all
lines of one name are changed alike.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote_plus

from gateway.core.conversion.document import ConversionError


class ParameterLine(NamedTuple):
    """One line.

    Attributes:
        key: the name to compare by.
        name: the name as it is written.
        value: the value as it is written; None where there is not even a sign for it.
    """

    key: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Spelling:
    """How lines are written.

    Attributes:
        what: what a line is called, for the message to a client.
        key: returns the name to compare by.
        name: returns a name as it is to be written.
        read: returns the text that a written value stands for.
        write: returns a value as it is to be written.
    """

    what: str
    key: Callable[[str], str]
    name: Callable[[str], str]
    read: Callable[[str], str]
    write: Callable[[str], str]


def _quoted(text: str) -> str:
    return quote(text, safe="")


QUERY = Spelling(
    "query parameter",
    key=lambda name: unquote_plus(name) if "%" in name or "+" in name else name,
    name=_quoted,
    read=unquote_plus,
    write=_quoted,
)
"""WHATWG URL, section 5: names are case-sensitive."""

FIELDS = Spelling(
    "header",
    key=str.lower,
    name=str,
    read=lambda value: value.strip(" \t"),
    write=str,
)
"""RFC 9110, section 5: names are case-insensitive."""

ParameterLines = list[ParameterLine]
Rewrite = Callable[[ParameterLines, Spelling], ParameterLines]


class ParameterChange(Protocol):
    """One declared change of a parameter or field between two adjacent versions."""

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines as the newer version has them; raises ConversionError."""
        ...

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines as the older version has them; raises ConversionError."""
        ...


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The value is written differently in the two versions.

    Attributes:
        name: what it is called, in both.
        to_newer: returns the newer version's value for the older one's; raises ValueError, whose
            text names the fault and quotes no value.
        to_older: the way back.
    """

    name: str
    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Write what the newer version reads."""
        return self._rewrite(lines, spelling, self.to_newer)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Write what the older version reads."""
        return self._rewrite(lines, spelling, self.to_older)

    def _rewrite(
        self, lines: ParameterLines, spelling: Spelling, convert: Callable[[str], str]
    ) -> ParameterLines:
        key = spelling.key(self.name)

        def changed(line: ParameterLine) -> ParameterLine:
            known = spelling.read(line.value or "")
            made = convert(known)
            # A value that stays the same keeps every byte, which reading it may not have kept.
            return line if made == known else line._replace(value=spelling.write(made))

        try:
            return [changed(line) if line.key == key else line for line in lines]
        except ValueError as error:
            raise ConversionError(f"the {spelling.what} '{self.name}': {error}") from None


@dataclass(frozen=True, slots=True)
class Reversed:
    """A change read the other way round."""

    change: ParameterChange

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Do what the change does downwards."""
        return self.change.down(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Do what the change does upwards."""
        return self.change.up(lines, spelling)


def rewrite_query(query: str | None, rewrites: Sequence[Rewrite]) -> str | None:
    """Return a raw query after changes; None is no query at all.

    Raises:
        ConversionError: it does not fit the declared changes.
    """
    lines: ParameterLines = []
    for pair in query.split("&") if query else ():
        name, sign, value = pair.partition("=")
        lines.append(ParameterLine(QUERY.key(name), name, value if sign else None))
    changed = _rewritten(lines, rewrites, QUERY)
    if changed == lines:
        return query
    return (
        "&".join(
            line.name if line.value is None else f"{line.name}={line.value}" for line in changed
        )
        or None
    )


def rewrite_fields(
    fields: Iterable[tuple[bytes, bytes]], rewrites: Sequence[Rewrite]
) -> list[tuple[bytes, bytes]]:
    """Return header field lines after changes; raises ConversionError."""
    lines = [
        ParameterLine(
            name.decode("latin-1").lower(), name.decode("latin-1"), value.decode("latin-1")
        )
        for name, value in fields
    ]
    return [
        (line.name.encode("latin-1"), (line.value or "").encode("latin-1"))
        for line in _rewritten(lines, rewrites, FIELDS)
    ]


def _rewritten(
    lines: ParameterLines, rewrites: Sequence[Rewrite], spelling: Spelling
) -> ParameterLines:
    for rewrite in rewrites:
        lines = rewrite(lines, spelling)
    return lines
