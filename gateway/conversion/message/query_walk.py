"""QueryWalk: the query of one request as each version on the way to the service has it."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.conversion.conversion_error import Beside, ErrorPlace
from gateway.conversion.parameter_change import (
    QUERY,
    ParameterLine,
    ParameterLines,
    Rewrite,
    Spelling,
    place_before,
    rewrite_lines,
)
from gateway.versions.version import Version


class QueryStep(NamedTuple):
    """The change of a query between two adjacent versions.

    Attributes:
        source: The version that the version step converts from.
        target: The version that the version step converts to.
        rewrites: The declared changes, in the order of the direction.
        dropped: The names of the parameters that the source has as a part of the operation.
        added: The parameters that the target has as a part of the operation.
    """

    source: Version
    target: Version
    rewrites: Sequence[Rewrite] = ()
    dropped: frozenset[str] = frozenset()
    added: Sequence[ParameterLine] = ()

    def without(self, lines: ParameterLines) -> ParameterLines:
        """Return the query without the parameters of the operation."""
        return [line for line in lines if line.key not in self.dropped] if self.dropped else lines

    def passed(self, lines: ParameterLines, spelling: Spelling = QUERY) -> ParameterLines:
        """Return the query as the target has it; may raise ConversionError."""
        return [*self.added, *rewrite_lines(self.without(lines), self.rewrites, spelling)]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        """Return where a place was before the version step."""
        if not isinstance(place, Beside) or place.what != QUERY.what:
            return place
        added = {line.key for line in self.added}
        kept = tuple(name for name in place.names if QUERY.key(name) not in added)
        if kept != place.names and not kept:  # the path may have it, or parameters of its operation
            return Beside(QUERY.what, tuple(self.dropped)) if self.dropped else Beside("path")
        return place_before(Beside(QUERY.what, kept), self.rewrites, QUERY)


class QueryWalk(NamedTuple):
    """The way of a query from the client's version to that of the service.

    Attributes:
        lines: The query of the client.
        version_steps: The version steps, in the order of the way.
        spelling: The syntax of queries, with the message of the client.
    """

    lines: ParameterLines
    version_steps: tuple[QueryStep, ...]
    spelling: Spelling = QUERY

    @property
    def service(self) -> ParameterLines:
        """The query as the service has it; reading it may raise ConversionError."""
        lines = self.lines
        for version_step in self.version_steps:
            lines = version_step.passed(lines, self.spelling)
        return lines

    def at(self, version: Version) -> ParameterLines:
        """Return the query as a version on the way has it; may raise ConversionError."""
        lines = self.lines
        for version_step in self.version_steps:
            if version_step.source == version:
                break
            lines = version_step.passed(lines, self.spelling)
        return lines

    def onward(self, version: Version, lines: ParameterLines) -> ParameterLines:
        """Return a query of a version as the service has it; may raise ConversionError."""
        upwards = (
            bool(self.version_steps) and self.version_steps[0].source < self.version_steps[0].target
        )
        for version_step in self.version_steps:
            if (version_step.source >= version) if upwards else (version_step.source <= version):
                lines = version_step.passed(lines, self.spelling)
        return lines

    def version_step(self, source: Version, target: Version) -> QueryStep:
        """Return the step between two versions; one without a change where none is known."""
        for version_step in self.version_steps:
            if version_step.source == source and version_step.target == target:
                return version_step
        return QueryStep(source, target)
