"""Changes of query parameters and header fields, both represented as lines: a name and a value."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.unfit import REFUSE_UNFIT, Unfit, UnfitPolicy, count_unfit, counting


class ParameterLine(NamedTuple):
    """A query parameter or header line; `value` is raw, or None without an equals sign."""

    key: str
    name: str
    value: str | None


class Spelling(NamedTuple):
    """The syntax of query parameters, or of header fields.

    Attributes:
        what: The term for a line in error messages.
        message: The `gateway.conversion.message.Message` that the lines belong to. LINK for the
            query of a URL in a response, which no client has requested yet. None if the message is
            unknown.
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

# The characters of a field value (RFC 9110, section 5.5). A Python function may copy a client's
# query parameter to a header field. With a line end, the client could then inject other header
# fields or messages.
_FIELD_VALUE = re.compile(r"[\t -~\x80-\xff]*\Z")


def _field_value(text: str) -> str:
    if not _FIELD_VALUE.match(text):
        raise ConversionError("would contain a character that is invalid in a header field")
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


LineStep = Callable[[ParameterLines, Spelling], ParameterLines]
"""A function that returns lines after a change; it may raise ConversionError."""
ParameterValues = Mapping[str, str]
"""The decoded values of parameters, by name, without the absent parameters."""
ConvertValues = Callable[[ParameterValues], ParameterValues]
"""A function that converts values to the other version. The message of its ValueError must not
quote a value."""
ConvertUnfit = Callable[[ParameterValues], ParameterValues | None]
"""A function that converts invalid values to the other version as far as possible, so that the
service refuses them. It returns None for values that the service could misinterpret."""


class Rewrite(NamedTuple):
    call: LineStep
    change: "ParameterChange"
    upwards: bool


class MovedNames(NamedTuple):
    newer: tuple[str, ...]
    older: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ParameterChange:
    """One declared change of query parameters or header fields between two adjacent versions.

    `lenient` is the variant that leaves invalid values unchanged; None without such a variant.
    """

    names: tuple[MovedNames, ...]
    up: LineStep
    down: LineStep
    lenient: "ParameterChange | None" = None
    unfit: UnfitPolicy = REFUSE_UNFIT

    def keeping_unfit(self) -> "ParameterChange":
        return self if self.lenient is None else self.lenient

    def fitted(self, of_request: bool) -> "ParameterChange":
        unfit = self.unfit.of(of_request)
        if unfit is Unfit.REFUSE:
            return self
        made = self.keeping_unfit() if unfit is Unfit.KEEP else _omitting(self)
        up, down = (counting(self.unfit, of_request, step) for step in (made.up, made.down))
        return replace(made, up=up, down=down)


def _omitting(change: ParameterChange) -> ParameterChange:
    def omitting(step: LineStep) -> LineStep:
        def rewrite(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
            try:
                return step(lines, spelling)
            except ConversionError as error:
                if not isinstance(error.place, Beside) or not error.place.names:
                    raise
                count_unfit(str(error))
                keys = {spelling.key(name) for name in error.place.names}
                return step([line for line in lines if line.key not in keys], spelling)

        return rewrite

    return replace(change, up=omitting(change.up), down=omitting(change.down))


def same_name(name: str) -> tuple[MovedNames, ...]:
    return (MovedNames((name,), (name,)),)


def _lenient(
    names: tuple[MovedNames, ...], up: LineStep, down: LineStep, *, keeps: bool = True
) -> ParameterChange:
    """Return a change. If `keeps` is true, its lenient variant leaves lines unchanged on errors."""

    def kept(step: LineStep) -> LineStep:
        def rewrite(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
            try:
                return step(lines, spelling)
            except ConversionError as error:
                count_unfit(str(error))
                return lines

        return rewrite

    lenient = ParameterChange(names, kept(up), kept(down)) if keeps else None
    return ParameterChange(names, up, down, lenient)


def rewritten(
    name: str, to_newer: Callable[[str], str], to_older: Callable[[str], str]
) -> ParameterChange:
    """Return the change of a value; the message of a ValueError must not quote the value."""
    return _lenient(same_name(name), _rewriting(name, to_newer), _rewriting(name, to_older))


def _rewriting(name: str, convert: Callable[[str], str]) -> LineStep:
    def changed(line: ParameterLine, spelling: Spelling) -> ParameterLine:
        known = spelling.read(line.value or "")
        made = convert(known)
        # Keep the bytes of an unchanged value. To decode and encode it could alter them.
        return line if made == known else line._replace(value=spelling.write(made))

    def rewrite(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(name)
        try:
            return [changed(line, spelling) if line.key == key else line for line in lines]
        except ValueError as error:
            raise ConversionError(str(error), Beside(spelling.what, (name,))) from None
        except ConversionError as error:
            raise error.moved(lambda _: Beside(spelling.what, (name,))) from None

    return rewrite


def recombined(
    newer: tuple[str, ...],
    older: tuple[str, ...],
    to_newer: ConvertValues,
    to_older: ConvertValues,
    unfit: tuple[ConvertUnfit, ConvertUnfit] | None = None,
) -> ParameterChange:
    """Return a change that converts several parameters together, such as two into one.

    `unfit` has the functions for invalid values, to the newer and to the older version.
    """
    names = (MovedNames(newer, older),)
    up, down = _recombining(older, to_newer), _recombining(newer, to_older)
    if unfit is None:
        # Only an amount with its currency has the same names in both versions.
        return _lenient(names, up, down, keeps={*newer} == {*older})
    lenient = ParameterChange(
        names,
        _recombining(older, _otherwise(to_newer, unfit[0])),
        _recombining(newer, _otherwise(to_older, unfit[1])),
    )
    return ParameterChange(names, up, down, lenient)


def _otherwise(convert: ConvertValues, unfit: ConvertUnfit) -> ConvertValues:
    def converted(values: ParameterValues) -> ParameterValues:
        try:
            return convert(values)
        except ValueError:
            made = unfit(values)
            if made is None:
                raise
            return made

    return converted


def _recombining(names: tuple[str, ...], convert: ConvertValues) -> LineStep:
    def rewrite(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        by_key = {spelling.key(name): name for name in names}
        found: dict[str, str] = {}
        for line in lines:
            name = by_key.get(line.key)
            if name is not None:
                if name in found:
                    raise ConversionError("occurs twice", Beside(spelling.what, (name,)))
                found[name] = spelling.read(line.value or "")
        if not found:
            return lines
        try:
            made = convert(found)
        except ValueError as error:
            raise ConversionError(str(error), Beside(spelling.what, tuple(found))) from None
        if made == found:
            return lines
        for name in made:
            if name not in names and any(line.key == spelling.key(name) for line in lines):
                raise ConversionError("already exists", Beside(spelling.what, (name,)))
        written = [
            ParameterLine(spelling.key(name), spelling.name(name), spelling.write(value))
            for name, value in made.items()
        ]
        first = next(index for index, line in enumerate(lines) if line.key in by_key)
        behind = [line for line in lines[first:] if line.key not in by_key]
        return [*lines[:first], *written, *behind]

    return rewrite


def inverse_parameter(change: ParameterChange) -> ParameterChange:
    names = tuple(MovedNames(older, newer) for newer, older in reversed(change.names))
    lenient = None if change.lenient is None else inverse_parameter(change.lenient)
    return ParameterChange(names, change.down, change.up, lenient)


def parameter_sequence(*changes: ParameterChange) -> ParameterChange:
    """Combine changes into one. `up` applies them in order, and `down` in reverse order."""
    up, down = (in_direction(changes, upwards=upwards) for upwards in (True, False))
    lenient = [change.keeping_unfit() for change in changes]
    return ParameterChange(
        tuple(each for change in changes for each in change.names),
        lambda lines, spelling: rewrite_lines(lines, up, spelling),
        lambda lines, spelling: rewrite_lines(lines, down, spelling),
        None if lenient == [*changes] else parameter_sequence(*lenient),
    )


def in_direction(changes: Sequence[ParameterChange], *, upwards: bool) -> tuple[Rewrite, ...]:
    return tuple(
        Rewrite(each.up if upwards else each.down, each, upwards)
        for each in (changes if upwards else reversed(changes))
    )


def rewrite_query(
    query: str | None, rewrites: Sequence[Rewrite], message: object = None
) -> str | None:
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
    pairs = (line.name if line.value is None else f"{line.name}={line.value}" for line in lines)
    return "&".join(pairs) or None


def rewrite_fields(
    fields: Iterable[tuple[bytes, bytes]], rewrites: Sequence[Rewrite], message: object = None
) -> list[tuple[bytes, bytes]]:
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
    if not isinstance(place, Beside) or place.what != spelling.what:
        return place
    return Beside(place.what, _before(place.names, rewrites, spelling))


def _before(
    names: tuple[str, ...], rewrites: Sequence[Rewrite], spelling: Spelling
) -> tuple[str, ...]:
    for _, change, upwards in reversed(rewrites):
        for newer, older in change.names[:: -1 if upwards else 1]:
            made, given = (newer, older) if upwards else (older, newer)
            # Replace names that did not exist before this change by the names that existed then.
            keys = {spelling.key(name) for name in made if given}
            keys -= {spelling.key(name) for name in given}
            found = (given if spelling.key(name) in keys else (name,) for name in names)
            names = tuple(dict.fromkeys(each for some in found for each in some))
    return names
