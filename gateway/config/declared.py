"""Declared conversions: from the changes in gateway.yaml to those of the core."""

from functools import partial

from gateway.config import model
from gateway.config.report import Location, Mistakes
from gateway.core.conversion.chain import Link
from gateway.core.conversion.changes import Change, Default, Inverse, Join
from gateway.core.conversion.path import FieldPath, parse_path
from gateway.core.version import Version


def build_link(
    config: model.ConversionConfig, older: Version, newer: Version, at: Location, mistakes: Mistakes
) -> Link:
    """Return the link between two adjacent versions; what is wrong with it goes to `mistakes`."""
    changes = (
        _change(change, (*at, "changes", index), mistakes)
        for index, change in enumerate(config.changes)
    )
    return Link(
        older,
        newer,
        tuple(change for change in changes if change is not None),
        frozenset(config.statuses),
    )


def _change(config: model.ChangeConfig, at: Location, mistakes: Mistakes) -> Change | None:
    match config:
        case model.ChangeConfig(join=model.JoinConfig() as join, split=None, default=None):
            at = (*at, "join")
            parts = _paths(join.fields, (*at, "fields"), mistakes)
            return _join(join, parts, _path(join.into, (*at, "into"), mistakes), at, mistakes)
        case model.ChangeConfig(join=None, split=model.SplitConfig() as split, default=None):
            at = (*at, "split")
            parts = _paths(split.into, (*at, "into"), mistakes)
            change = _join(split, parts, _path(split.field, (*at, "field"), mistakes), at, mistakes)
            return None if change is None else Inverse(change)
        case model.ChangeConfig(join=None, split=None, default=model.DefaultConfig() as default):
            field = _path(default.field, (*at, "default", "field"), mistakes)
            return None if field is None else Default(field.scopes, field.keys, default.value)
        case _:
            mistakes.add(
                f"a change is exactly one of {', '.join(model.ChangeConfig.model_fields)}", *at
            )
            return None


def _join(
    config: model.JoinConfig | model.SplitConfig,
    parts: list[FieldPath],
    whole: FieldPath | None,
    at: Location,
    mistakes: Mistakes,
) -> Change | None:
    if whole is None or not parts:
        return None
    if any(part.scopes != whole.scopes for part in parts):
        mistakes.add(
            "the fields lie in the elements of different arrays; begin all with the same 'key[]'",
            *at,
        )
        return None
    keys = tuple(part.keys for part in parts)
    for index, one in enumerate(keys):
        for other in keys[index + 1 :]:
            if one[: len(other)] == other[: len(one)]:
                mistakes.add(
                    "two parts are the same, or one lies inside the other; name each field once",
                    *at,
                )
                return None
    return Join(whole.scopes, keys, whole.keys, config.separator, config.default)


def _paths(texts: tuple[str, ...], at: Location, mistakes: Mistakes) -> list[FieldPath]:
    paths = [_path(text, (*at, index), mistakes) for index, text in enumerate(texts)]
    return [path for path in paths if path is not None] if None not in paths else []


def _path(text: str, at: Location, mistakes: Mistakes) -> FieldPath | None:
    return mistakes.attempt(partial(parse_path, text), *at)
