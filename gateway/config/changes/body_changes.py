"""Changes of bodies: from how gateway.yaml declares one to the change of the core."""

from functools import partial
from itertools import combinations

from gateway.config.changes import conversion_section as model
from gateway.config.changes.map_words import checked_scale, scalar, way_back
from gateway.config.python_functions import load_function
from gateway.config.shape import SectionModel
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.conversion.change import Change, Default, Inverse, Join
from gateway.core.conversion.document import MISSING
from gateway.core.conversion.field_path import FieldPath, parse_path
from gateway.core.conversion.python_change import PythonChange
from gateway.core.conversion.rename import Rename
from gateway.core.conversion.retype import Retype, Scale, Type
from gateway.core.conversion.values import Map, Otherwise, Scalar, Unknown, Wrap


class ChangeBuilder:
    """Builds one change; what is wrong goes to `mistakes`."""

    def __init__(self, at: Location, mistakes: Mistakes) -> None:
        self._at = at
        self._mistakes = mistakes

    def build(self, config: SectionModel) -> Change | None:
        """Return the change, or None where it cannot be made."""
        match config:
            case model.RenameConfig():
                return self._rename(config)
            case model.JoinConfig():
                parts = self._paths(config.fields, "fields")
                return self._join(config, parts, self._path(config.into, "into"))
            case model.SplitConfig():
                parts = self._paths(config.into, "into")
                change = self._join(config, parts, self._path(config.field, "field"))
                return None if change is None else Inverse(change)
            case model.PythonConfig():
                return self._python(config)
            case _:
                assert hasattr(config, "field")
                path = self._path(config.field, "field")
                return None if path is None else self._of_one(config, path)

    def _of_one(self, config: SectionModel, path: FieldPath) -> Change | None:
        scopes, keys = path.scopes, path.keys
        match config:
            case model.MapConfig():
                return self._map(config, path)
            case model.TypeConfig():
                return self._type(config, path)
            case model.WrapConfig(many=many):
                return Wrap(scopes, keys, many == "refuse")
            case model.UnwrapConfig(many=many):
                return Inverse(Wrap(scopes, keys, many == "refuse"))
            case model.DefaultConfig(value=value):
                return Default(scopes, keys, value)
            case _:
                assert isinstance(config, model.RemoveConfig)
                given = "value" in config.model_fields_set
                return Inverse(Default(scopes, keys, config.value if given else MISSING))

    def _rename(self, config: model.RenameConfig) -> Change | None:
        newer, older = self._path(config.field, "field"), self._path(config.to, "to")
        if newer is None or older is None:
            return None
        if newer.scopes != older.scopes:
            self._complain(_APART)
            return None
        if newer == older:
            self._complain("is the name that it has already; remove the change", "to")
            return None
        return Rename(newer.scopes, newer.keys, older.keys)

    def _map(self, config: model.MapConfig, path: FieldPath) -> Change | None:
        older: dict[Scalar, Scalar] = {word: scalar(known) for word, known in config.values.items()}
        newer = way_back(config, self._at, self._mistakes)
        unknown, unknown_back = self._unknown(config)
        return Map(path.scopes, path.keys, older, newer, unknown, unknown_back)

    def _unknown(self, config: model.MapConfig) -> tuple[Otherwise, Otherwise]:
        unknown = Unknown(config.unknown)
        words = config.default or model.WordsConfig()
        return (
            unknown if words.older is None else scalar(words.older),
            unknown if words.newer is None else scalar(words.newer),
        )

    def _type(self, config: model.TypeConfig, path: FieldPath) -> Change | None:
        scopes, keys = path.scopes, path.keys
        scale = checked_scale(config, self._at, self._mistakes)
        if scale is None:
            return None
        if scale == 0:
            return Retype(scopes, keys, Type(config.newer), Type(config.older))
        if config.newer == "integer":
            return Scale(scopes, keys, scale, Type(config.older))
        return Inverse(Scale(scopes, keys, scale, Type(config.newer)))

    def _python(self, config: model.PythonConfig) -> Change | None:
        path = None if config.field is None else self._path(config.field, "field")
        up, down = (
            self._mistakes.attempt(partial(load_function, text), *self._at, key)
            for key, text in (("up", config.up), ("down", config.down))
        )
        if up is None or down is None or (path is None and config.field is not None):
            return None
        return PythonChange(path.scopes if path else (), path.keys if path else None, up, down)

    def _join(
        self,
        config: model.JoinConfig | model.SplitConfig,
        parts: list[FieldPath],
        whole: FieldPath | None,
    ) -> Change | None:
        if whole is None or not parts:
            return None
        if any(part.scopes != whole.scopes for part in parts):
            self._complain(_APART)
            return None
        keys = tuple(part.keys for part in parts)
        for one, other in combinations(keys, 2):
            if one[: len(other)] == other[: len(one)]:
                self._complain(
                    "two parts are the same, or one lies inside the other; name each field once"
                )
                return None
        return Join(whole.scopes, keys, whole.keys, config.separator, config.default)

    def _paths(self, texts: tuple[str, ...], key: str) -> list[FieldPath]:
        paths = [self._path(text, key, index) for index, text in enumerate(texts)]
        return [path for path in paths if path is not None] if None not in paths else []

    def _path(self, text: str, *location: str | int) -> FieldPath | None:
        return self._mistakes.attempt(partial(parse_path, text), *self._at, *location)

    def _complain(self, text: str, *location: str | int) -> None:
        self._mistakes.add(text, *self._at, *location)


_APART = "the fields lie in the elements of different arrays; begin all with the same 'key[]'"
