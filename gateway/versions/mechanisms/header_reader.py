"""The version in a header field of its own: `X-API-VERSION: 2`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.base.headers import HeaderFields
from gateway.base.request import RequestHead
from gateway.versions.chosen_by import ChosenBy
from gateway.versions.reader import Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class HeaderReader(Reader):
    """Reads a header field; its name is case-insensitive."""

    name: str

    mechanism = ChosenBy.HEADER
    can_be_added = True

    @property
    def place(self) -> str:
        """Name the header."""
        return f"the header {self.name}"

    @property
    def vary(self) -> tuple[str, ...]:
        """Return the name of the header."""
        return (self.name,)

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the value of every line, without the optional white space around it."""
        return tuple([value.strip(" \t") for value in head.fields.getall(self.name, ())])

    def address(self, version: Version) -> VersionAddress:
        """Return the header that names a version."""
        return VersionAddress(header=f"{self.name}: {version}")

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        """Return the fields with another value of the header; order and case of names stay."""
        own, value = self.name.lower().encode(), label.encode()
        return [(line[0], value) if line[0].lower() == own else line for line in fields]

    def add_to_fields(self, fields: HeaderFields, label: str) -> HeaderFields:
        """Return the fields with the header behind them, unless they have one."""
        name = self.name.encode()
        if any(line[0].lower() == name.lower() for line in fields):
            return fields
        return [*fields, (name, label.encode())]
