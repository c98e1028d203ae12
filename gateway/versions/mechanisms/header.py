"""`version: { in: header, name: X-API-VERSION }`."""

import re
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
    """Reads a header field; its name is case-insensitive.

    With `prefix` or `suffix`, the field is a list (RFC 9110, section 5.6.1), and the version is the
    text between them in a member. Other members name no version.
    """

    name: str
    prefix: str = ""
    suffix: str = ""

    mechanism = "header"
    can_be_added = True

    @property
    def place(self) -> str:
        return f"the header {self.name}"

    @property
    def vary(self) -> tuple[str, ...]:
        return (self.name,)

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        values = [value.strip(" \t") for value in head.fields.getall(self.name, ())]
        return tuple(self._versions(values) if self._is_list else values)

    def address(self, version: Version) -> VersionAddress:
        return VersionAddress(header=f"{self.name}: {self._member(str(version))}")

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        own = self.name.lower().encode()
        return [
            (line[0], self._rewritten(line[1], label)) if line[0].lower() == own else line
            for line in fields
        ]

    def add_to_fields(self, fields: HeaderFields, label: str) -> HeaderFields:
        name = self.name.encode()
        values = [line[1].decode("latin-1") for line in fields if line[0].lower() == name.lower()]
        if self._versions(values) if self._is_list else values:
            return fields
        return [*fields, (name, self._member(label).encode())]

    @property
    def _is_list(self) -> bool:
        return bool(self.prefix or self.suffix)

    def _versions(self, values: list[str]) -> list[str]:
        found = [self._version(member) for value in values for member in value.split(",")]
        return [version for version in found if version is not None]

    def _version(self, member: str) -> str | None:
        member = member.strip(" \t")
        end = len(member) - len(self.suffix)
        named = member.startswith(self.prefix) and member.endswith(self.suffix)
        return member[len(self.prefix) : end] if named and end > len(self.prefix) else None

    def _rewritten(self, value: bytes, label: str) -> bytes:
        if not self._is_list:
            return label.encode()
        members = value.decode("latin-1").split(",")
        made = [
            member if version is None else member.replace(member.strip(" \t"), self._member(label))
            for member, version in zip(members, map(self._version, members), strict=True)
        ]
        return ",".join(made).encode("latin-1")

    def _member(self, label: str) -> str:
        return f"{self.prefix}{label}{self.suffix}"


# Visible ASCII characters without a comma, which separates the members of a list.
_VALUE = re.compile(r"([!-+\--~]*)\{version\}([!-+\--~]*)\Z")
RESERVED_NAME = "is reserved; choose another header, like X-API-Version"


class HeaderVersion(OptionalMechanism):
    """The version is the value of a request header."""

    in_: Annotated[Literal["header"], Field(alias="in")]
    name: FieldName
    """The name of the header, case-insensitive."""
    value: str = "{version}"
    """A member of a list in the header, with `{version}` in place of the version, such as
    `assistants=v{version}`. The default is the whole value of the header."""

    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> HeaderReader | None:
        if self.name.lower().encode() in RESERVED_FIELDS:
            mistakes.add(RESERVED_NAME, "name")
        match = _VALUE.match(self.value)
        if match is None:
            text = "not a value with one {version}; write one like assistants=v{version}"
            mistakes.add(text, "value")
            return None
        return HeaderReader(self.name, *match.groups())
