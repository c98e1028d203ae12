"""The person as this version represents it."""

from typing import Self

from pydantic import BaseModel  # one class is the shape, its JSON and its schema


class Person(BaseModel, frozen=True):
    """A person, whose name is one text."""

    name: str

    @classmethod
    def of(cls, first: str, last: str) -> Self:
        """Make the person of a first and a last name, of which either may be empty.

        The parts are joined by one space; an empty part leaves no stray space.
        """
        return cls(name=" ".join(part for part in (first, last) if part))
