"""`join` and `split`: fields in one version, one text that joins them in the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.changes.join_steps import Join
from gateway.conversion.changes.recombined import ParameterValues, Recombined
from gateway.conversion.parameter_change import ParameterChange


@dataclass(frozen=True, slots=True)
class Joined:
    """The values of several parameters, joined in one.

    An absent part is empty between separators. Absent parts at the end leave no separator, unless
    `closed`, where each separator is always there: `2026-01-01..`.
    """

    parts: tuple[str, ...]
    whole: str
    separator: str
    closed: bool = False

    def split(self, values: ParameterValues) -> ParameterValues:
        """Return the parts of the text."""
        pieces = values[self.whole].split(self.separator, len(self.parts) - 1)
        return {name: piece for name, piece in zip(self.parts, pieces, strict=False) if piece}

    def join(self, values: ParameterValues) -> ParameterValues:
        """Return the text of the parts; raises ValueError for one with the separator in it."""
        pieces = [values.get(name, "") for name in self.parts]
        if any(self.separator in piece for piece in pieces[:-1]):
            raise ValueError(f"has '{self.separator}' in it, which separates the parts")
        while not self.closed and len(pieces) > 1 and not pieces[-1]:
            pieces.pop()
        return {self.whole: self.separator.join(pieces)}


class _PartsSection(ChangeSection):
    """What `join` and `split` of a body and of parameters have in common."""

    separator: Annotated[str, Field(min_length=1)] = " "
    """The text between two parts. The default is a space."""

    def _loss(self, whole: str, parts: tuple[str, ...], *, newer: bool) -> Iterable[Loss]:
        text = f"'{whole}' is split at the first '{self.separator}', wherever it was joined"
        return (Loss(newer, text + self._lacking(parts)),)

    def _lacking(self, parts: tuple[str, ...]) -> str:
        """Return what a text of fewer parts is taken to lack, as a part of a sentence."""
        return ""


class _JoinSection(_PartsSection):
    """What `join` of a body and of parameters have in common."""

    fields: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields or parameters of the newer version that are joined, in the order of the text."""
    into: str
    """The field or parameter of the older version that holds the text."""

    def losses(self) -> Iterable[Loss]:
        return self._loss(self.into, self.fields, newer=True)


class _SplitSection(_PartsSection):
    """What `split` of a body and of parameters have in common."""

    field: str
    """The field or parameter of the newer version that holds the text."""
    into: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields or parameters of the older version that hold the parts, in their order."""

    def losses(self) -> Iterable[Loss]:
        return self._loss(self.field, self.into, newer=False)


class _ParameterParts(ParameterSection):
    trailing: Literal["drop", "keep"] = "drop"
    """Whether separators at the end of the text are kept. The default is drop."""

    def _joined(
        self, context: ParameterContext, parts: tuple[str, ...], whole: str, separator: str
    ) -> "Joined | None":
        names = tuple(context.name(part, "fields") for part in parts)
        if len({*names, whole}) <= len(names):
            context.complain("two of the names are the same; name each once")
            return None
        return Joined(names, context.name(whole, "into"), separator, self.trailing == "keep")


class JoinParameterConfig(_JoinSection, _ParameterParts):
    """Join parameters: the older version has one where the newer one has several."""

    keyword = "join"

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        one = self._joined(context, self.fields, self.into, self.separator)
        if one is None:
            return None
        return Recombined(one.parts, (one.whole,), one.split, one.join)


class SplitParameterConfig(_SplitSection, _ParameterParts):
    """Split a parameter: the older version has several where the newer one has one."""

    keyword = "split"

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        one = self._joined(context, self.into, self.field, self.separator)
        if one is None:
            return None
        return Recombined((one.whole,), one.parts, one.join, one.split)


class _BodyParts(_PartsSection, BodySection):
    default: str | None = ""
    """The value of a part that the text lacks; it may be null. The default is the empty text."""
    optional: tuple[str, ...] = ()
    """The parts that a shorter text lacks, in this order; the default is the last parts."""

    def _lacking(self, parts: tuple[str, ...]) -> str:
        optional = [part for part in self.optional if part in parts]
        lacked = [*optional, *(part for part in reversed(parts) if part not in optional)]
        return f"; with fewer parts, it has no {', then no '.join(lacked[:-1])}"

    def _overwritten(self, parts: tuple[str, ...], whole: str, *, newer: bool) -> Iterator[Loss]:
        """Yield what the parts lose that are joined and split, and a text that is split and joined.

        Args:
            parts: the fields of the parts.
            whole: the field of the text.
            newer: whether the parts are read towards the newer version.
        """
        named = ", ".join(f"'{part}'" for part in parts)
        text = f"{named} come back as '{whole}' is split at the first '{self.separator}'"
        yield Loss(newer, text, True)
        yield Loss(not newer, f"'{whole}' loses each '{self.separator}' beside an empty part", True)

    def _join(
        self,
        context: BodyContext,
        parts: tuple[str, ...],
        whole: str,
        parts_key: str,
        whole_key: str,
    ) -> Join | None:
        named = ((part, (parts_key, index)) for index, part in enumerate(parts))
        paths = context.paths(*named, (whole, (whole_key,)))
        if paths is None:
            return None
        *some, text = paths
        keys = tuple(path.keys for path in some)
        if not context.apart(keys):
            return None
        if len({*self.optional}) < len(self.optional) or not {*self.optional} <= {*parts}:
            context.complain(f"names parts, each once; they are {', '.join(parts)}", "optional")
            return None
        optional = tuple(map(parts.index, self.optional))
        return Join(text.scopes, keys, text.keys, self.separator, self.default, optional)


class JoinConfig(_JoinSection, _BodyParts):
    """Join fields: the older version has one text, the newer one several fields."""

    keyword = "join"

    def overwritten(self) -> Iterable[Loss]:
        return self._overwritten(self.fields, self.into, newer=False)

    def body_change(self, context: BodyContext) -> Change | None:
        return self._join(context, self.fields, self.into, "fields", "into")


class SplitConfig(_SplitSection, _BodyParts):
    """Split a text: the older version has several fields, the newer one one text."""

    keyword = "split"

    def overwritten(self) -> Iterable[Loss]:
        return self._overwritten(self.into, self.field, newer=True)

    def body_change(self, context: BodyContext) -> Change | None:
        change = self._join(context, self.into, self.field, "into", "field")
        return change and Inverse(change)
