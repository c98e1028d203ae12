"""Chains: the links between adjacent versions, composed for one pair of versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gateway.core.conversion.changes import Change
from gateway.core.conversion.document import Document, Opener, Unconvertible, as_is
from gateway.core.version import Version


class Direction(Enum):
    """Which way a link is walked."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Link:
    """The declared changes between two adjacent versions of an API.

    Attributes:
        older: the older version.
        newer: the version next to it.
        changes: in the order that upgrades a document; a downgrade walks them backwards.
        statuses: the error statuses whose bodies the changes apply to as well.
    """

    older: Version
    newer: Version
    changes: tuple[Change, ...]
    statuses: frozenset[int] = frozenset()

    def walk(self, document: Document, direction: Direction, opener: Opener) -> Document:
        """Return the document on the other side of the link; raises Unconvertible."""
        if direction is Direction.UP:
            for change in self.changes:
                document = change.up(document, opener)
        else:
            for change in reversed(self.changes):
                document = change.down(document, opener)
        return document


@dataclass(frozen=True, slots=True)
class Conversion:
    """A way from one version's documents to another's, through every link between them."""

    links: tuple[Link, ...]
    direction: Direction

    def convert(self, document: Document, opener: Opener = as_is) -> Document:
        """Return the document as the other version has it; an array is converted element-wise.

        Args:
            document: an object, or an array of what can be converted.
            opener: opens the sealed values of a document that is not parsed to the leaves.

        Raises:
            Unconvertible: the document is not what the declarations say.
        """
        document = opener(document)
        if isinstance(document, list):
            return [self._element(index, item, opener) for index, item in enumerate(document)]
        for link in self.links:
            document = link.walk(document, self.direction, opener)
        return document

    def _element(self, index: int, item: Document, opener: Opener) -> Document:
        try:
            return self.convert(item, opener)
        except Unconvertible as error:
            raise error.under(index) from None

    def for_status(self, status: int) -> "Conversion | None":
        """Return what applies to a response body of that status, or None if nothing does.

        Success (2xx) is what the declarations describe. Redirects say nothing of the resource, and
        error bodies have a shape of their own: they pass, unless a declaration names the status.
        """
        if 200 <= status <= 299:
            return self
        links = tuple(link for link in self.links if status in link.statuses)
        return Conversion(links, self.direction) if links else None


def compose(
    ladder: Sequence[Version], links: Mapping[Version, Link], source: Version, target: Version
) -> Conversion:
    """Return the conversion from `source` to `target`, two different rungs of the ladder.

    Args:
        ladder: every version of the API, the oldest first.
        links: the declared links by their older version.
        source: the version of the documents that will come.
        target: the version they will be converted to.

    Raises:
        LookupError: a link on the way is not declared; its arguments are the two versions.
    """
    low, high = sorted((ladder.index(source), ladder.index(target)))
    for older, newer in zip(ladder[low:high], ladder[low + 1 : high + 1], strict=True):
        if older not in links:
            raise LookupError(older, newer)
    chain = tuple(links[older] for older in ladder[low:high])
    if source < target:
        return Conversion(chain, Direction.UP)
    return Conversion(chain[::-1], Direction.DOWN)
