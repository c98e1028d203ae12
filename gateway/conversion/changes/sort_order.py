"""Sort order: a sign before each field, or a word beside it, such as `-date` and `desc`."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.conversion.changes.recombined import ParameterValues


class SortField(NamedTuple):
    """A field that a list is sorted by."""

    name: str
    descending: bool


class SortForm(Protocol):
    """How one version writes the order of a list."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        ...

    def read(self, values: ParameterValues) -> list[SortField]:
        """Return the order that parameters ask for; raises ValueError."""
        ...

    def write(self, order: list[SortField]) -> ParameterValues:
        """Return the parameters that ask for an order."""
        ...


@dataclass(frozen=True, slots=True)
class SignForm:
    """One parameter: `-date,name` sorts by date, the newest first, then by name."""

    field: str

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the parameter."""
        return (self.field,)

    def read(self, values: ParameterValues) -> list[SortField]:
        """Return the order that the parameter asks for."""
        texts = values[self.field].split(",")
        return [SortField(text.removeprefix("-"), text.startswith("-")) for text in texts]

    def write(self, order: list[SortField]) -> ParameterValues:
        """Return the parameter that asks for an order."""
        return {self.field: ",".join(f"{'-' * one.descending}{one.name}" for one in order)}


@dataclass(frozen=True, slots=True)
class WordForm:
    """Two parameters: the fields, and for each of them, or for all, one of two words.

    Without words, the order is ascending.

    Attributes:
        field: The name of the parameter with the fields.
        order: The name of the parameter with the words.
        ascending: The word for the ascending order.
        descending: The word for the descending order.
        default: The field that words without a field are of; None refuses them.
    """

    field: str
    order: str
    ascending: str
    descending: str
    default: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return (self.field, self.order)

    def read(self, values: ParameterValues) -> list[SortField]:
        """Return the order that parameters ask for; raises ValueError."""
        field = values.get(self.field, self.default)
        if field is None:
            raise ValueError(f"'{self.field}' is absent, which it belongs to")
        names = field.split(",")
        words = values.get(self.order, self.ascending).split(",")
        if {*words} - {self.ascending, self.descending}:
            raise ValueError(f"expected {self.ascending} or {self.descending}")
        if len(words) == 1:
            words *= len(names)
        if len(words) != len(names):
            raise ValueError(f"'{self.order}' has another number of words than there are fields")
        if any(name.startswith("-") for name in names):
            raise ValueError(f"a field in '{self.field}' begins with a sign")
        return [
            SortField(name, word == self.descending)
            for name, word in zip(names, words, strict=True)
        ]

    def write(self, order: list[SortField]) -> ParameterValues:
        """Return the parameters that ask for an order."""
        words = [self.descending if one.descending else self.ascending for one in order]
        field = ",".join(one.name for one in order)
        word = words[0] if len({*words}) == 1 else ",".join(words)
        return (
            {self.order: word} if field == self.default else {self.field: field, self.order: word}
        )
