"""MessageStep: converts the query and the header fields of a message together with its body."""

from typing import NamedTuple

from gateway.conversion.conversion_error import ErrorPlace
from gateway.conversion.document import Document, JsonForm
from gateway.conversion.message.message import Message, message_of
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    Rewrite,
    place_before,
    rewrite_lines,
)
from gateway.versions.version import Version


class MessageStep(NamedTuple):
    """A step at the begin or at the end of a link, which leaves the body as it is.

    Attributes:
        source: The version before the link.
        target: The version after the link.
        query: The changes of the query to apply here.
        headers: The changes of the header fields to apply here.
        is_first: Whether the step is the first one between the two versions.
        is_last: Whether the step is the last one between the two versions.
    """

    source: Version
    target: Version
    query: tuple[Rewrite, ...]
    headers: tuple[Rewrite, ...]
    is_first: bool
    is_last: bool

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        """Return where a place was before the step."""
        place = place_before(place, self.headers, FIELDS)
        return place_before(place, self.query, QUERY)

    def convert(self, document: Document, form: JsonForm) -> Document:
        """Convert the message of the form, if there is one, and return the body unchanged."""
        message = message_of(form)
        if message is not None:
            # Changes are shown the message as it was given, as they are where no body is converted.
            given = message.given if self.headers or self.query else None
            if self.headers:
                message.headers[:] = rewrite_lines(message.headers, self.headers, FIELDS.of(given))
            if message.status is None:
                self._convert_query(message, given)
            else:
                message.query[:] = message.way.at(max(self.source, self.target))
        return document

    def _convert_query(self, message: Message, given: Message | None) -> None:
        hop, lines = message.way.hop(self.source, self.target), message.query
        if self.is_first:
            lines = hop.without(lines)
        if self.query:
            lines = rewrite_lines(lines, self.query, QUERY.of(given))
        message.query[:] = [*hop.added, *lines] if self.is_last else lines
