"""`sort`: one version writes the sort order of a list with signs, the other with words."""

from typing import Literal, NamedTuple

from gateway.base.model import NonEmptyText
from gateway.conversion.changes.change_section import BuildContext, ParameterSection
from gateway.conversion.parameter_change import ParameterChange, ParameterValues, recombined


class Sort(ParameterSection):
    """Convert the sort order of a list between `sort=-date`, and `sort=date&order=desc`."""

    keyword = "sort"

    field: str
    """The parameter with the names of fields, separated by commas."""
    order: str
    """The parameter with asc or desc, in the version with words for the order."""
    newer: Literal["sign", "word"]
    """The form in the newer version: a sign before each field, or words in a second parameter."""
    older: Literal["sign", "word"]
    """The form in the older version: a sign before each field, or words in a second parameter."""
    ascending: NonEmptyText = "asc"
    """The word in `order` for the ascending order, which also applies without a word. The default
    is asc."""
    descending: NonEmptyText = "desc"
    """The word in `order` for the descending order. The default is desc."""

    default: str | None = None
    """The sort field of a request that has an order but no sort field; "" leaves the choice to the
    service. Without it, such a request is refused."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        if self.newer == self.older:
            context.mistakes.add("is the same form; remove the change", "older")
            return None
        field, order = context.name(self.field, "field"), context.name(self.order, "order")
        words = SortWords(field, order, self.ascending, self.descending, self.default)
        signs, pair = (field,), (field, order)
        if self.newer == "sign":
            return recombined(signs, pair, words.to_signs, words.from_signs)
        return recombined(pair, signs, words.from_signs, words.to_signs)


class SortWords(NamedTuple):
    """Converts a sort order between two parameters with words, and one parameter with signs.

    In the form with words, one parameter lists the fields, and another parameter has one of two
    words for all fields, or one for each field. Without words, the order is ascending. In the form
    with signs, `-date,name` sorts by date in descending order, then by name.

    Attributes:
        default: The field of a request that has words but no field. If it is None, such a request
            is refused.
    """

    field: str
    order: str
    ascending: str = "asc"
    descending: str = "desc"
    default: str | None = None

    def to_signs(self, values: ParameterValues) -> ParameterValues:
        field = values.get(self.field, self.default)
        if field is None:
            raise ValueError(f"'{self.field}', which it belongs to, is absent")
        names = field.split(",")
        words = values.get(self.order, self.ascending).split(",")
        if {*words} - {self.ascending, self.descending}:
            raise ValueError(f"expected {self.ascending} or {self.descending}")
        if len(words) == 1:
            words *= len(names)
        if len(words) != len(names):
            raise ValueError(f"'{self.order}' must have one word for each field")
        if any(name.startswith("-") for name in names):
            raise ValueError(f"a field in '{self.field}' begins with a sign")
        signed = (
            f"{'-' * (word == self.descending)}{name}"
            for name, word in zip(names, words, strict=True)
        )
        return {self.field: ",".join(signed)}

    def from_signs(self, values: ParameterValues) -> ParameterValues:
        texts = values[self.field].split(",")
        words = [self.descending if text.startswith("-") else self.ascending for text in texts]
        field = ",".join(text.removeprefix("-") for text in texts)
        word = words[0] if len({*words}) == 1 else ",".join(words)
        return (
            {self.order: word} if field == self.default else {self.field: field, self.order: word}
        )
