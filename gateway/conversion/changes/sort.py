"""`sort`: the order of a list by a sign in one version, by a word in the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from gateway.base.model import NonEmptyText
from gateway.conversion.changes.build_context import ParameterContext
from gateway.conversion.changes.change_section import Loss, ParameterSection
from gateway.conversion.changes.recombined import ParameterValues, Recombined
from gateway.conversion.parameter_change import ParameterChange


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
        return (self.field,)

    def read(self, values: ParameterValues) -> list[SortField]:
        texts = values[self.field].split(",")
        return [SortField(text.removeprefix("-"), text.startswith("-")) for text in texts]

    def write(self, order: list[SortField]) -> ParameterValues:
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
        return (self.field, self.order)

    def read(self, values: ParameterValues) -> list[SortField]:
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
        words = [self.descending if one.descending else self.ascending for one in order]
        field = ",".join(one.name for one in order)
        word = words[0] if len({*words}) == 1 else ",".join(words)
        return (
            {self.order: word} if field == self.default else {self.field: field, self.order: word}
        )


class SortConfig(ParameterSection):
    """Write the sort order in another form: `sort=-date`, or `sort=date` beside `order=desc`."""

    keyword = "sort"

    field: str
    """The parameter with the names of fields, separated by commas."""
    order: str
    """The parameter with asc or desc, in the version with words for the order."""
    newer: Literal["sign", "word"]
    """The newer version's form: a sign before each field, or words in a second parameter."""
    older: Literal["sign", "word"]
    """The older version's form: a sign before each field, or words in a second parameter."""
    ascending: NonEmptyText = "asc"
    """The word for the ascending order in `order`; also the order without a word. The default is
    asc."""
    descending: NonEmptyText = "desc"
    """The word for the descending order in `order`. The default is desc."""

    default: str | None = None
    """The sort field of an order without a field, or "" for the default order of the service.
    Without it, such a request is refused."""

    def losses(self) -> Iterator[Loss]:
        return iter(())

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        # Imported when rules name it: it takes memory that most can save.

        if self.newer == self.older:
            context.complain("is the form that it has already; remove the change", "older")
            return None
        field, order = context.name(self.field, "field"), context.name(self.order, "order")
        sign = SignForm(field)
        word = WordForm(field, order, self.ascending, self.descending, self.default)
        forms: tuple[SortForm, SortForm] = (sign, word)
        newer, older = forms if self.newer == "sign" else forms[::-1]
        return Recombined(
            newer.names,
            older.names,
            lambda values: newer.write(older.read(values)),
            lambda values: older.write(newer.read(values)),
        )
