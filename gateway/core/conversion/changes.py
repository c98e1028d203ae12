"""The changes that can be declared. Each knows both directions.

A declaration reads from the newer version to the older one: `join` says that the older version
joins what the newer one holds in parts, `split` that it holds in parts what the newer one joins,
`default` that only the newer one has the field.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gateway.core.conversion.document import (
    MISSING,
    Document,
    Opener,
    each,
    get,
    put,
    refuse,
    remove,
)
from gateway.core.conversion.path import Keys


class Change(Protocol):
    """One declared change between two adjacent versions."""

    def up(self, document: Document, opener: Opener) -> Document:
        """Return the document as the newer version has it; raises Unconvertible."""
        ...

    def down(self, document: Document, opener: Opener) -> Document:
        """Return the document as the older version has it; raises Unconvertible."""
        ...


@dataclass(frozen=True, slots=True)
class Inverse:
    """A change read the other way round."""

    change: Change

    def up(self, document: Document, opener: Opener) -> Document:
        """Do what the change does downwards."""
        return self.change.down(document, opener)

    def down(self, document: Document, opener: Opener) -> Document:
        """Do what the change does upwards."""
        return self.change.up(document, opener)


@dataclass(frozen=True, slots=True)
class Join:
    """The newer version holds in parts what the older one holds as one text.

    Downwards, the parts that are present and not empty are joined in their order. Upwards, the
    text is split at the first separators; what is left over stays with the last part, and a part
    that the text does not reach becomes `missing`. So a split restores what a join made whenever
    no part is empty and, behind each part but the last, the joining separator is the first.

    A field of the older version that is absent stays absent, and null stays null, both ways.
    """

    scopes: tuple[Keys, ...]
    parts: tuple[Keys, ...]
    whole: Keys
    separator: str
    missing: str = ""

    def up(self, document: Document, opener: Opener) -> Document:
        """Split."""
        return each(document, self.scopes, partial(self._split, opener), opener)

    def down(self, document: Document, opener: Opener) -> Document:
        """Join."""
        return each(document, self.scopes, partial(self._join, opener), opener)

    @property
    def _inside(self) -> bool:
        # The parts live in an object that the text takes the place of: `name.firstName` in `name`.
        depth = len(self.whole)
        return all(len(part) > depth and part[:depth] == self.whole for part in self.parts)

    def _split(self, opener: Opener, document: Document) -> Document:
        text = get(document, self.whole, opener)
        pieces: list[str | None]
        if text is MISSING or (text is None and self._inside):
            return document
        if text is None:
            pieces = [None] * len(self.parts)
        elif isinstance(text, str):
            pieces = [*text.split(self.separator, len(self.parts) - 1)]
            pieces += [self.missing] * (len(self.parts) - len(pieces))
        else:
            refuse("a string", text, *self.whole)
        if self._inside:
            document = put(document, self.whole, {}, opener)
        else:
            document = remove(document, self.whole, opener)
        for part, piece in zip(self.parts, pieces, strict=True):
            document = put(document, part, piece, opener)
        return document

    def _join(self, opener: Opener, document: Document) -> Document:
        pieces: list[str] = []
        values = [get(document, part, opener) for part in self.parts]
        for part, value in zip(self.parts, values, strict=True):
            if isinstance(value, str):
                pieces.append(value)
            elif value is not None and value is not MISSING:
                refuse("a string", value, *part)
        text: str | None = self.separator.join(piece for piece in pieces if piece)
        if self._inside:
            container = get(document, self.whole, opener)
            if container is MISSING or container is None:
                return document
            return put(document, self.whole, text, opener)
        if not pieces:
            if None not in values:
                return document
            text = None
        for part in self.parts:
            document = remove(document, part, opener)
        return put(document, self.whole, text, opener)


@dataclass(frozen=True, slots=True)
class Default:
    """Only the newer version has the field.

    Upwards, it is added with `value` where it is absent, in containers that are made if need be;
    where a container is null, it stays so. Downwards, the field is removed, and with it a
    container that this empties.
    """

    scopes: tuple[Keys, ...]
    field: Keys
    value: Document

    def up(self, document: Document, opener: Opener) -> Document:
        """Add the field where it is absent."""
        return each(document, self.scopes, partial(self._add, opener), opener)

    def down(self, document: Document, opener: Opener) -> Document:
        """Remove the field."""
        return each(document, self.scopes, partial(self._drop, opener), opener)

    def _add(self, opener: Opener, document: Document) -> Document:
        if get(document, self.field, opener) is not MISSING:
            return document
        for depth in range(1, len(self.field)):
            if get(document, self.field[:depth], opener) is None:
                return document
        return put(document, self.field, self.value, opener)

    def _drop(self, opener: Opener, document: Document) -> Document:
        get(document, self.field, opener)  # refuses a container that is not an object
        return remove(document, self.field, opener)
