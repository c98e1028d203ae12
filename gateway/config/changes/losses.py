"""What the declared changes lose: to warn."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.config.changes import conversion_section as model
from gateway.config.changes.map_words import scalar, spelt
from gateway.config.shape import SectionModel


class Loss(NamedTuple):
    """What one direction of a change loses; `newer` says towards which version."""

    newer: bool
    text: str


_SPLIT = "'{}' is split at the first '{}', wherever it was joined"


def losses(name: str, config: SectionModel) -> Iterator[Loss]:
    """Yield what a change loses, each with the field that does."""
    match config:
        case model.JoinConfig(into=text, separator=separator):
            yield Loss(True, _SPLIT.format(text, separator))
        case model.SplitConfig(field=text, separator=separator):
            yield Loss(False, _SPLIT.format(text, separator))
        case model.DefaultConfig(field=field):
            yield Loss(False, f"'{field}' is left out")
        case model.RemoveConfig(field=field):
            yield Loss(True, f"'{field}' is left out")
        case model.AddedConfig(field=field):
            yield Loss(name == "remove", f"'{field}' is left out")
        case model.WrapConfig(field=field, many="first"):
            yield Loss(True, f"of several elements, '{field}' keeps the first")
        case model.UnwrapConfig(field=field, many="first"):
            yield Loss(False, f"of several elements, '{field}' keeps the first")
        case model.MapConfig():
            yield from _folds(config)


def _folds(config: model.MapConfig) -> Iterator[Loss]:
    older = {newer: spelt(scalar(word)) for newer, word in config.values.items()}
    newer = {word: spelt(scalar(known)) for word, known in config.back.items()}
    for is_newer, words in ((False, older), (True, {w: n for n, w in older.items()} | newer)):
        by_word: dict[str, list[str]] = {}
        for word, known in words.items():
            by_word.setdefault(known, []).append(word)
        for known, folded in by_word.items():
            if len(folded) > 1:
                yield Loss(is_newer, f"'{config.field}' is {known} for {' and '.join(folded)}")
    if config.default is not None:
        for is_newer, other in ((False, config.default.older), (True, config.default.newer)):
            if other is not None:
                known = spelt(scalar(other))
                yield Loss(is_newer, f"'{config.field}' is {known} for every other value")
