"""The error that a message cannot be converted, and the place in the message that it is about."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gateway.conversion.field_path import Scope, Tokens, depth_of, pointer


@dataclass(frozen=True, slots=True)
class Beside:
    """A place of a message beside its body, such as some query parameters or header fields."""

    what: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(f"'{name}'" for name in self.names)
        return f"the {self.what}{'s' if self.names[1:] else ''} {names}".rstrip()


ErrorPlace = Tokens | Beside
"""The place of an error in a message: in its body, or beside it."""
Origin = Callable[[ErrorPlace], ErrorPlace]
"""A function that returns where a place was before a step of a conversion."""


class ConversionError(Exception):
    """The error that a message does not fit the declared changes.

    A change raises it with the place as the message had it before the change. What applies changes
    one after the other leads the place back through those before, so that the sender of the message
    reads a place of what it has sent.

    Attributes:
        reason: The description of the error; it quotes no value, since bodies may hold secrets.
        place: The place of the error.
        cause: Further details for the log alone; empty where there are none.
        is_missing: Whether the error is that nothing is at the place.
        is_on_way: Whether the error is that what is there, on the way to a field, is no object.
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
    ) -> None:
        self._description, self.is_missing, self._rival = reason, is_missing, rival
        self.reason = reason if rival is None else f"{reason}, and {_term(rival)} is to become it"
        self.place = place
        self.cause = cause
        self.is_on_way = is_on_way
        super().__init__(f"{_term(place)}: {self.reason}")

    @property
    def pointer(self) -> str:
        """The place in the body as a JSON Pointer; empty for the whole body and beside it."""
        return "" if isinstance(self.place, Beside) else pointer(*self.place)

    @property
    def misfit(self) -> Mapping[str, str] | None:
        """The name of the place as `field`, its `pointer` in the body, and the `reason`.

        A name is such as `lines[0].price` in the body; the whole body has none, and is None.
        """
        if isinstance(self.place, Beside):
            name = ", ".join(self.place.names)
            return {"field": name, "reason": self.reason} if name else None
        parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in self.place)
        name = "".join(parts).removeprefix(".")
        named = {"field": name, "pointer": self.pointer, "reason": self.reason}
        return named if name else None

    def moved(self, move: Callable[[ErrorPlace], ErrorPlace]) -> "ConversionError":
        """Return the same error with its places moved."""
        rival = None if self._rival is None else move(self._rival)
        return ConversionError(
            self._description,
            move(self.place),
            self.cause,
            is_missing=self.is_missing,
            is_on_way=self.is_on_way,
            rival=rival,
        )

    def under(self, *keys: str | int) -> "ConversionError":
        """Return the same error with its place relative to an outer container, below `keys`."""
        return self.moved(lambda place: place if isinstance(place, Beside) else (*keys, *place))


def same_place(place: ErrorPlace) -> ErrorPlace:
    return place


def moved_back(place: ErrorPlace, target: Tokens, source: Tokens) -> ErrorPlace:
    """Return where a place was before the value at `source` came to `target`."""
    if isinstance(place, Beside):
        return place
    if place[: len(target)] == target:
        return (*source, *place[len(target) :])
    # A place inside the source no longer exists.
    gone = place[: len(source)] == source and target[: len(place)] != place
    return source[:-1] if gone else place


def is_within(place: ErrorPlace, keys: Tokens) -> bool:
    """Return whether a place is that of a value in the body, or inside of it."""
    return isinstance(place, tuple) and place[: len(keys)] == keys


def one_value(field: Tokens) -> Origin:
    """Return the origins of places in a value that is made of another one as a whole."""
    return lambda place: field if is_within(place, field) else place


def inside(scopes: Iterable[Scope], place: ErrorPlace, origin: Origin) -> ErrorPlace:
    """Return the origin of a place, by that of a step of the objects in scopes."""
    depth = None if isinstance(place, Beside) else depth_of(scopes, place)
    if depth is None or isinstance(place, Beside):
        return place
    found = origin(place[depth:])
    return found if isinstance(found, Beside) else (*place[:depth], *found)


def _term(place: ErrorPlace) -> str:
    return str(place) if isinstance(place, Beside) else pointer(*place) or "the body"
