"""Recombined: several parameters that the other version has as others, or as one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterLine,
    ParameterLines,
    Spelling,
)

ParameterValues = Mapping[str, str]
"""The decoded values of some parameters, by name; absent ones are left out."""
Unfit = Callable[[ParameterValues], ParameterValues | None]


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
        newer_unfit: Returns the newer version's values for those of the older version that do not
            fit, for the service to judge; None for those that it could misread.
        older_unfit: The same of the older version.
    """

    newer: tuple[str, ...]
    older: tuple[str, ...]
    to_newer: Callable[[ParameterValues], ParameterValues]
    to_older: Callable[[ParameterValues], ParameterValues]
    newer_unfit: Unfit | None = None
    older_unfit: Unfit | None = None

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames(self.newer, self.older),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return _recombined(lines, spelling, self.older, self.to_newer)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
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
                raise ConversionError("stands twice", Beside(spelling.what, (name,)))
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
            raise ConversionError("is there already", Beside(spelling.what, (name,)))
    written = [
        ParameterLine(spelling.key(name), spelling.name(name), spelling.write(value))
        for name, value in made.items()
    ]
    first = next(index for index, line in enumerate(lines) if line.key in by_key)
    behind = [line for line in lines[first:] if line.key not in by_key]
    return [*lines[:first], *written, *behind]
