"""Changes that move a body field to a header field or query parameter of the other version."""

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import JsonValue

from gateway.conversion.carry import VALUE, HeaderPlace, LinkPlace, QueryPlace, carry
from gateway.conversion.change import Change, whole_body
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss, opposite
from gateway.conversion.document import MISSING
from gateway.conversion.message import Place
from gateway.conversion.scalars import Type


class _CarrySection(BodySection):
    field: str
    """The path of the body field from the root of the body, such as `page.total`."""
    type: Literal["text", "number", "boolean"] = "text"
    """The type of the value in the body. The default is text."""
    default: JsonValue = None
    """The JSON value of the field, such as null, if a message has no value outside the body.
    Without it, the field is then absent."""

    @property
    def needs_message(self) -> bool:
        return True

    def own_losses(self) -> Iterator[Loss]:
        if "default" in self.model_fields_set:
            text = f"where '{self.field}' is absent, it comes back as the default"
            yield Loss(False, text, overwrites=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        keys = context.keys(self.field, "field")
        place = self._place(context)
        if keys is None or place is None:
            return None
        default = self.default if "default" in self.model_fields_set else MISSING
        return whole_body(carry(keys, place, Type(self.type), default))

    @abstractmethod
    def _place(self, context: BuildContext) -> Place | None:
        """Return the location outside the body, or None after recording a mistake."""


class ToQuery(_CarrySection):
    """Move a field of request bodies into a query parameter of the older version."""

    keyword = "to_query"

    parameter: str
    """The name of the query parameter in the older version."""

    def _place(self, context: BuildContext) -> Place | None:
        return QueryPlace(context.name(self.parameter, "parameter"))


FromQuery = opposite(
    ToQuery,
    "from_query",
    "Move a query parameter into request bodies of the older version: the reverse of to_query.",
)


# RFC 8288, section 3.3: a registered relation type, or a URI.
_RELATION = re.compile(r"[!#-;=?-\[\]^-~]+\Z")
_LINKS = frozenset({"location", "content-location"})


class ToHeader(_CarrySection):
    """Move a field of the body into a header field of the older version, such as a total."""

    keyword = "to_header"

    header: str
    """The name of the header field, such as X-Total-Count."""
    text: str | None = None
    """The template for the value of the header field: `{value}` stands for the value, and `{path}`
    for the path of the request, as in `{path}/{value}`. The default is the value alone."""
    rel: str | None = None
    """The relation of the link, such as `next`, if the header field is Link."""
    parameter: str | None = None
    """The query parameter that has the value in the URL of the link, such as `cursor`. The rest of
    the URL is the URL of the request. Without it, the value is the whole URL of the link."""

    @property
    def maps_links(self) -> bool:
        is_link = self.header.lower() in _LINKS and self.text in (None, VALUE)
        return is_link or (self.rel is not None and self.parameter is None)

    @property
    def linked(self) -> tuple[str, str] | None:
        if self.parameter is None:
            return None
        return "newer" if self.inverse else "older", self.parameter

    def overwritten(self) -> Iterator[Loss]:
        yield Loss(self.inverse, f"'{self.field}' is in the header field {self.header} alone")

    def _place(self, context: BuildContext) -> Place | None:
        if context.between is None:
            context.complain(
                "applies to the whole body, and a group applies to objects; write it in changes"
            )
            return None
        header = replace(context, header=True).name(self.header, "header")
        if (header.lower() == "link") != (self.rel is not None):
            context.complain(
                "header: Link requires it, and no other header has it; name the"
                " relation"
                " of the link, or remove it",
                "rel",
            )
        elif self.rel is None:
            if self.parameter is not None:
                context.complain("is only valid for a link; add header: Link and rel", "parameter")
            text = VALUE if self.text is None else self.text
            if text.count(VALUE) == 1:
                return HeaderPlace(header, text, header.lower() in _LINKS)
            context.complain(f"needs {VALUE} once, as the placeholder for the value", "text")
        elif self.text is not None:
            context.complain("is not valid for a link; remove it, or name a parameter", "text")
        elif not _RELATION.match(self.rel):
            context.complain("is not a single relation type; write one such as next", "rel")
        else:
            return LinkPlace(self.rel, self.parameter, context.between[self.inverse])
        return None


FromHeader = opposite(
    ToHeader,
    "from_header",
    "Move a header field into a field of the older version's body: the reverse of to_header.",
)
