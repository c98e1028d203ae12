"""Default: a field that only the newer version has. Its inverse is `remove`.

A query parameter or a header field that only the newer version has is `Added`.
"""

from copy import deepcopy
from dataclasses import dataclass, replace

from gateway.conversion.conversion_error import ErrorPlace
from gateway.conversion.document import MISSING, Document, JsonForm, JsonObject, get, put, take
from gateway.conversion.field_path import Keys, Scope, is_array
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterLine,
    ParameterLines,
    Spelling,
)


@dataclass(frozen=True, slots=True)
class Default:
    """Only the newer version has the field.

    Upwards, it is added with `value` where it is absent, in containers that are made if need be;
    where a container is null, it stays so. Downwards, the field is removed, and with it a
    container that this empties. Without a value (MISSING), nothing is added. Where the older
    version may have the field as well, it is kept.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    value: Document
    keep: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field, and the outermost container, which may come and go with it."""
        return (self.field[:1],)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Add the field where it is absent."""
        if self.value is MISSING or form.of_places:
            return
        if self.field[0] in fields:
            if get(fields, self.field, form) is not MISSING:
                return
            for depth in range(1, len(self.field)):
                if get(fields, self.field[:depth], form) is None:
                    return
        # Each gets its own, since a later change may look into it and alter it.
        own = deepcopy(self.value) if isinstance(self.value, dict | list) else self.value
        put(fields, self.field, own, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Remove the field."""
        if not self.keep:
            take(fields, self.field, form)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the same place."""
        return place

    def for_patch(self) -> "Default":
        """Return the change without its value: what a PATCH request leaves out is not filled in.

        Arrays are given as a whole (RFC 7396), so a field that their elements lack is lacking.
        """
        return self if any(map(is_array, self.scopes)) else replace(self, value=MISSING)


@dataclass(frozen=True, slots=True)
class Added:
    """Only the newer version has it; upwards, `value` is added where it is absent, unless None.

    Where the older version may have it as well, it is kept.
    """

    name: str
    value: str | None
    keep: bool = False

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """The name, unless the older version may have it as well."""
        return () if self.keep else (MovedNames((self.name,), ()),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Add it where it is absent."""
        key = spelling.key(self.name)
        if self.value is None or any(line.key == key for line in lines):
            return lines
        return [*lines, ParameterLine(key, spelling.name(self.name), spelling.write(self.value))]

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Take it away."""
        if self.keep:
            return lines
        key = spelling.key(self.name)
        return [line for line in lines if line.key != key]
