"""FirstValue: a parameter that the older version may repeat, and the newer one has once."""

from dataclasses import dataclass

from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.parameter_change import MovedNames, ParameterLines, Spelling


@dataclass(frozen=True, slots=True)
class FirstValue:
    """The newer version has one value where the older one may have several.

    Upwards, the first value is left; several are refused if `strict`. Downwards, nothing changes.

    Attributes:
        name: The name of the parameter in both versions.
        strict: Whether several values are refused.
    """

    name: str
    strict: bool = False

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """No names: the parameter has the same one in both versions."""
        return ()

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the first value alone; may raise ConversionError."""
        key = spelling.key(self.name)
        places = [index for index, line in enumerate(lines) if line.key == key]
        if len(places) < 2:
            return lines
        if self.strict:
            raise ConversionError("stands twice", Beside(spelling.what, (self.name,)))
        return [line for at, line in enumerate(lines) if at == places[0] or line.key != key]

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the same lines."""
        return lines
