"""The person as this version represents it."""

from typing import Self

from pydantic import BaseModel  # one class is the shape, its JSON and its schema
from pydantic.alias_generators import to_camel


class Name(
    BaseModel,
    frozen=True,
    alias_generator=to_camel,
    validate_by_name=True,
    serialize_by_alias=True,
):
    """A name in its two parts."""

    first_name: str
    last_name: str


class Person(BaseModel, frozen=True):
    """A person, whose name is an object."""

    name: Name

    @classmethod
    def of(cls, first: str, last: str) -> Self:
        """Make the person of a first and a last name, of which either may be empty."""
        return cls(name=Name(first_name=first, last_name=last))
