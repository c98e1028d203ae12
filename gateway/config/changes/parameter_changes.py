"""Changes of query parameters and header fields: from gateway.yaml to those of the core."""

import re

from gateway.config import shape
from gateway.config.changes import conversion_section as model
from gateway.config.changes.map_words import checked_scale, scalar, spelt, way_back
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.conversion.parameter_change import (
    Added,
    ParameterChange,
    Renamed,
    Rewritten,
    words,
)
from gateway.core.conversion.retype import Scale, Type, retyping
from gateway.core.headers import HOP_BY_HOP

_NAME = re.compile(shape.FIELD_NAME)
_TEXT = re.compile(r"[ -~]*\Z")
# The gateway writes these itself, by what it sends.
_OURS = HOP_BY_HOP | {b"content-length", b"content-encoding", b"host"}


class ParameterBuilder:
    """Builds one change of a query parameter, or of a header field; mistakes go to `mistakes`."""

    def __init__(self, at: Location, mistakes: Mistakes, *, header: bool) -> None:
        self._at = at
        self._mistakes = mistakes
        self._header = header

    def build(self, config: shape.SectionModel) -> ParameterChange | None:
        """Return the change, or None where it cannot be made."""
        count = len(self._mistakes.found)
        change = self._change(config)
        return change if len(self._mistakes.found) == count else None

    def _change(self, config: shape.SectionModel) -> ParameterChange | None:
        match config:
            case model.RenameConfig():
                newer, older = self._name(config.field, "field"), self._name(config.to, "to")
                if newer == older:
                    self._complain("is the name that it has already; remove the change", "to")
                return Renamed(newer, older)
            case model.MapConfig():
                return self._map(config)
            case model.TypeConfig():
                return self._type(config)
            case _:
                assert isinstance(config, model.AddedConfig)
                value = config.value
                return Added(
                    self._name(config.field, "field"),
                    None if value is None else self._text(value, "value"),
                )

    def _map(self, config: model.MapConfig) -> ParameterChange:
        to_older = {word: spelt(scalar(known)) for word, known in config.values.items()}
        back = way_back(config, self._at, self._mistakes)
        to_newer = {spelt(word): spelt(known) for word, known in back.items()}
        for text in (*to_older.values(), *to_newer.values()):
            self._text(text, "values")
        default = config.default or model.WordsConfig()
        keep = config.unknown == "keep"
        return Rewritten(
            self._name(config.field, "field"),
            words(to_newer, _word(default.newer), keep=keep),
            words(to_older, _word(default.older), keep=keep),
        )

    def _type(self, config: model.TypeConfig) -> ParameterChange | None:
        scale = checked_scale(config, self._at, self._mistakes)
        if scale is None:
            return None
        if scale == 0:
            newer, older = Type(config.newer), Type(config.older)
            ways = retyping(older, newer), retyping(newer, older)
        else:
            money = Scale((), (), scale, Type.TEXT)
            ways = money.units, money.amount
            if config.older == "integer":
                ways = money.amount, money.units
        return Rewritten(self._name(config.field, "field"), *ways)

    def _name(self, name: str, key: str) -> str:
        if not self._header:
            if not name:
                self._complain("must not be empty", key)
            return name
        if not _NAME.match(name):
            self._complain("not the name of a header; write one like X-API-VERSION", key)
        elif name.lower().encode() in _OURS:
            self._complain("is written by the gateway itself; remove the change", key)
        return name

    def _text(self, text: str, key: str) -> str:
        if self._header and not _TEXT.match(text):
            self._complain("a header holds printable ASCII only", key)
        return text

    def _complain(self, text: str, *location: str | int) -> None:
        self._mistakes.add(text, *self._at, *location)


def _word(word: object) -> str | None:
    return None if word is None else spelt(scalar(word))
