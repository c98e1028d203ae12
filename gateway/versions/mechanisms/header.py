"""`version: { in: header, name: X-API-VERSION }`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.headers import RESERVED_FIELDS, HeaderFields
from gateway.base.mistakes import Mistakes
from gateway.base.model import FieldName
from gateway.base.request import RequestHead
from gateway.versions.reader import OptionalMechanism, Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class HeaderReader(Reader):
    """Reads a header field; its name is case-insensitive."""

    name: str

    mechanism = "header"
    can_be_added = True

    @property
    def place(self) -> str:
        return f"the header {self.name}"

    @property
    def vary(self) -> tuple[str, ...]:
        return (self.name,)

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        return tuple([value.strip(" \t") for value in head.fields.getall(self.name, ())])

    def address(self, version: Version) -> VersionAddress:
        return VersionAddress(header=f"{self.name}: {version}")

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        own, value = self.name.lower().encode(), label.encode()
        return [(line[0], value) if line[0].lower() == own else line for line in fields]

    def add_to_fields(self, fields: HeaderFields, label: str) -> HeaderFields:
        name = self.name.encode()
        if any(line[0].lower() == name.lower() for line in fields):
            return fields
        return [*fields, (name, label.encode())]


RESERVED_NAME = "is reserved; choose another header, like X-API-Version"


class HeaderVersion(OptionalMechanism):
    """The version is the value of a request header."""

    in_: Annotated[Literal["header"], Field(alias="in")]
    name: FieldName
    """The name of the header, case-insensitive."""

    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> HeaderReader:
        if self.name.lower().encode() in RESERVED_FIELDS:
            mistakes.add(RESERVED_NAME, "name")
        return HeaderReader(self.name)
