"""`join` and `split`: several fields in one version, one string with all parts in the other."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.changes.join_steps import join
from gateway.conversion.parameter_change import ParameterChange, ParameterValues, recombined


class _PartsSection(ChangeSection):
    separator: Annotated[str, Field(min_length=1)] = " "
    """The string between two parts. The default is a space."""

    def parts_and_whole(self) -> tuple[tuple[str, ...], str]:
        raise NotImplementedError

    def own_losses(self) -> Iterable[Loss]:
        _, whole = self.parts_and_whole()
        text = f"'{whole}' is split at the first '{self.separator}', wherever it was joined"
        yield Loss(True, text + self._lacking())

    def _lacking(self) -> str:
        """Return the end of the loss message, about a string with fewer parts; may be empty."""
        return ""


class _JoinSection(_PartsSection):
    fields: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields or parameters of the newer version, in the order in which they are joined."""
    into: str
    """The field or parameter of the older version that holds the joined string."""

    def parts_and_whole(self) -> tuple[tuple[str, ...], str]:
        return self.fields, self.into


class _SplitSection(_PartsSection):
    inverse = True

    field: str
    """The field or parameter of the newer version that holds the string."""
    into: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields or parameters of the older version that hold the parts, in the order of the
    parts."""

    def parts_and_whole(self) -> tuple[tuple[str, ...], str]:
        return self.into, self.field


class _ParameterParts(_PartsSection, ParameterSection):
    trailing: Literal["drop", "keep"] = "drop"
    """Whether separators at the end of the string are kept or dropped. The default is drop."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        parts, whole = self.parts_and_whole()
        names = tuple(context.name(part, "fields") for part in parts)
        if len({*names, whole}) <= len(names):
            context.complain("two of the names are the same; name each once")
            return None
        name = context.name(whole, "into")
        return join_parameters(names, name, self.separator, closed=self.trailing == "keep")


class JoinParameter(_JoinSection, _ParameterParts):
    """Join parameters: the older version has one parameter with the values of several."""

    keyword = "join"


class SplitParameter(_SplitSection, _ParameterParts):
    """Split a parameter: the older version has several parameters with the parts of its value."""

    keyword = "split"


class _BodyParts(_PartsSection, BodySection):
    default: str | None = ""
    """The value, which may be null, of a part that the string lacks. The default is the empty
    text."""
    optional: tuple[str, ...] = ()
    """The parts that a shorter string lacks, in this order; the default is the last parts."""

    def _lacking(self) -> str:
        parts, _ = self.parts_and_whole()
        optional = [part for part in self.optional if part in parts]
        lacked = [*optional, *(part for part in reversed(parts) if part not in optional)]
        return f"; with fewer parts, it has no {', then no '.join(lacked[:-1])}"

    def overwritten(self) -> Iterator[Loss]:
        parts, whole = self.parts_and_whole()
        named = ", ".join(f"'{part}'" for part in parts)
        text = f"{named} come back as '{whole}' is split at the first '{self.separator}'"
        yield Loss(self.inverse, text, True)
        lost = f"'{whole}' loses each '{self.separator}' beside an empty part"
        yield Loss(not self.inverse, lost, True)

    def compile_body(self, context: BuildContext) -> Change | None:
        parts, whole = self.parts_and_whole()
        keys = ("into", "field") if self.inverse else ("fields", "into")
        named = ((part, (keys[0], index)) for index, part in enumerate(parts))
        paths = context.paths(*named, (whole, (keys[1],)))
        if paths is None:
            return None
        *some, text = paths
        fields = tuple(path.keys for path in some)
        if not context.apart(fields):
            return None
        if len({*self.optional}) < len(self.optional) or not {*self.optional} <= {*parts}:
            context.complain(
                f"must name each part at most once; the parts are {', '.join(parts)}", "optional"
            )
            return None
        optional = tuple(map(parts.index, self.optional))
        return join(text.scopes, fields, text.keys, self.separator, self.default, optional)


class Join(_JoinSection, _BodyParts):
    """Join fields: the older version has one string with the values of several fields."""

    keyword = "join"


class Split(_SplitSection, _BodyParts):
    """Split a string: the older version has several fields with its parts."""

    keyword = "split"


def join_parameters(
    parts: tuple[str, ...], whole: str, separator: str, *, closed: bool = False
) -> ParameterChange:
    """Return a change that joins several parameters into one for the older version.

    An absent parameter becomes an empty part.

    Args:
        closed: Whether separators before empty parts at the end are kept, as in `2026-01-01..`.
    """

    def split(values: ParameterValues) -> ParameterValues:
        pieces = values[whole].split(separator, len(parts) - 1)
        return {name: piece for name, piece in zip(parts, pieces, strict=False) if piece}

    def joined(values: ParameterValues) -> ParameterValues:
        pieces = [values.get(name, "") for name in parts]
        if any(separator in piece for piece in pieces[:-1]):
            raise ValueError(f"contains '{separator}', which separates the parts")
        while not closed and len(pieces) > 1 and not pieces[-1]:
            pieces.pop()
        return {whole: separator.join(pieces)}

    return recombined(parts, (whole,), split, joined)
