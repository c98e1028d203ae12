"""ConversionError: the error for a message that cannot be converted, with its location."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.conversion.field_path import Scope, Tokens, depth_of, pointer


@dataclass(frozen=True, slots=True)
class Beside:
    """A location outside the body of a message, such as query parameters or header fields."""

    what: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(f"'{name}'" for name in self.names)
        return f"the {self.what}{'s' if self.names[1:] else ''} {names}".rstrip()


ErrorPlace = Tokens | Beside
Origin = Callable[[ErrorPlace], ErrorPlace]
"""A function that maps a location after a conversion step to the location before that step."""


class ConversionError(Exception):
    """A message does not fit the declared changes.

    Code that applies several changes maps the location back through the earlier changes, so that
    the error response shows a location in the original message.

    Attributes:
        reason: The description of the error. It quotes no value, since bodies may contain secrets.
        cause: Further details, only for the log; may be empty.
        also: Further locations with the same error.
        is_on_way: Whether the cause of the error is that the value at the location is not an
            object, although a field path leads through it.
    """

    def __init__(
        self,
        reason: str,
        place: ErrorPlace = (),
        cause: str = "",
        *,
        is_missing: bool = False,
        is_on_way: bool = False,
        rival: ErrorPlace | None = None,
        also: Sequence[ErrorPlace] = (),
    ) -> None:
        self._description, self.is_missing, self._rival = reason, is_missing, rival
        self.reason = reason if rival is None else f"{reason}, and {_term(rival)} would become it"
        self.place = place
        self.cause = cause
        self.is_on_way = is_on_way
        self.also = tuple(also)
        super().__init__(f"{', '.join(map(_term, (place, *also)))}: {self.reason}")

    @property
    def pointer(self) -> str:
        """The JSON Pointer of the location; empty for the whole body or a location outside it."""
        return "" if isinstance(self.place, Beside) else pointer(*self.place)

    @property
    def misfit(self) -> Mapping[str, str] | None:
        """The error as an entry of a problem detail: `field`, `pointer` and `reason`.

        `field` is the name of the location, such as `lines[0].price` in the body. Locations outside
        the body have no `pointer`. The entry is None if the error concerns the whole body.
        """
        places = (self.place, *self.also)
        name = ", ".join(map(_name, places))
        pointers = [pointer(*place) for place in places if not isinstance(place, Beside)]
        named = {"field": name, "pointer": ", ".join(pointers), "reason": self.reason}
        if not pointers:
            del named["pointer"]
        return named if name else None

    def moved(self, move: Callable[[ErrorPlace], ErrorPlace]) -> "ConversionError":
        rival = None if self._rival is None else move(self._rival)
        return ConversionError(
            self._description,
            move(self.place),
            self.cause,
            is_missing=self.is_missing,
            is_on_way=self.is_on_way,
            rival=rival,
            also=[*map(move, self.also)],
        )

    def under(self, *keys: str | int) -> "ConversionError":
        return self.moved(lambda place: place if isinstance(place, Beside) else (*keys, *place))


def same_place(place: ErrorPlace) -> ErrorPlace:
    return place


def in_value(place: ErrorPlace) -> ErrorPlace:
    """Map a location in a temporary object with one field to the location in the field's value."""
    return place if isinstance(place, Beside) else place[1:]


def moved_back(place: ErrorPlace, target: Tokens, source: Tokens) -> ErrorPlace:
    if isinstance(place, Beside):
        return place
    if place[: len(target)] == target:
        return (*source, *place[len(target) :])
    # The source no longer exists, so a location inside it becomes its parent.
    gone = place[: len(source)] == source and target[: len(place)] != place
    return source[:-1] if gone else place


def is_within(place: ErrorPlace, keys: Tokens) -> bool:
    return isinstance(place, tuple) and place[: len(keys)] == keys


def one_value(field: Tokens) -> Origin:
    return lambda place: field if is_within(place, field) else place


def inside(scopes: Iterable[Scope], place: ErrorPlace, origin: Origin) -> ErrorPlace:
    depth = None if isinstance(place, Beside) else depth_of(scopes, place)
    if depth is None or isinstance(place, Beside):
        return place
    found = origin(place[depth:])
    return found if isinstance(found, Beside) else (*place[:depth], *found)


def _name(place: ErrorPlace) -> str:
    if isinstance(place, Beside):
        return ", ".join(place.names)
    parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
    return "".join(parts).removeprefix(".")


def _term(place: ErrorPlace) -> str:
    return str(place) if isinstance(place, Beside) else pointer(*place) or "the body"
