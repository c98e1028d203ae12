"""Repeated: a parameter for each element in the newer version, one with separators in the older."""

from dataclasses import dataclass

from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterLine,
    ParameterLines,
    Spelling,
)

# More are beyond every limit that is usual for a query or for header fields, and cost much to make.
_MOST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Repeated:
    """The newer version repeats a parameter where the older one has its values in one text.

    A text without the separator is one value, the empty text too. A value that has the separator in
    it is refused on the way to the older version, since it would come back as two.

    Attributes:
        name: The name of the parameter in both versions.
        separator: The text between two values.
    """

    name: str
    separator: str

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """No names: the parameter has the same one in both versions."""
        return ()

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with one line for each value."""
        key, made = spelling.key(self.name), list[ParameterLine]()
        for line in lines:
            texts = []
            if line.key == key:
                text = spelling.read(line.value or "")
                if text.count(self.separator) + len(made) >= _MOST_LINES:
                    reason = f"would be more than {_MOST_LINES} of them"
                    raise ConversionError(reason, Beside(spelling.what, (self.name,)))
                texts = text.split(self.separator)
            if len(texts) > 1:
                made += (line._replace(value=spelling.write(text)) for text in texts)
            else:
                made.append(line)
        return made

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with all values in the first one; may raise ConversionError."""
        key = spelling.key(self.name)
        texts = [spelling.read(line.value or "") for line in lines if line.key == key]
        if any(self.separator in text for text in texts):
            reason = f"has '{self.separator}' in it, which separates the values"
            raise ConversionError(reason, Beside(spelling.what, (self.name,)))
        if len(texts) < 2:
            return lines
        first = next(index for index, line in enumerate(lines) if line.key == key)
        whole = lines[first]._replace(value=spelling.write(self.separator.join(texts)))
        return [*lines[:first], whole, *(line for line in lines[first:] if line.key != key)]
