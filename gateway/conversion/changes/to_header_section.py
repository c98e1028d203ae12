"""`to_header` and `from_header`: a field of the body is a header field in the other version."""

import re
from typing import Literal

from gateway.conversion.changes.carry_section import CarrySection, name_at
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.message.places import VALUE, HeaderPlace, LinkPlace, Place

# RFC 8288, section 3.3: a registered relation type, or a URI.
_RELATION = re.compile(r"[!#-;=?-\[\]^-~]+\Z")
_LINKS = frozenset({"location", "content-location"})


class _HeaderSection(CarrySection):
    """What the two changes have in common."""

    header: str
    """The name of the header field, such as X-Total-Count."""
    text: str | None = None
    """The text of the header field: `{value}` stands for the value, `{path}` for the path of the
    request, as in `{path}/{value}`. Without it, that is the value alone."""
    rel: str | None = None
    """The relation of the link in a Link header field that has the value as its URL: `next`."""
    parameter: str | None = None
    """The query parameter of that link that has the value, as in `cursor`; the rest of the URL is
    that of the request. Without it, the value is the URL."""

    @property
    def maps_links(self) -> bool:
        """Whether the value is a URL, which leads to the service."""
        is_link = self.header.lower() in _LINKS and self.text in (None, VALUE)
        return is_link or (self.rel is not None and self.parameter is None)

    @property
    def linked(self) -> tuple[str, str] | None:
        """The version that has no such field in the body, and the parameter of its link."""
        if self.parameter is None:
            return None
        return "newer" if self.inverse else "older", self.parameter

    @property
    def beside(self) -> tuple[Literal["query", "header"], str]:
        """The header field."""
        return "header", self.header

    def _place(self, site: BodySite) -> Place | None:
        if site.between is None:
            site.complain("is of the whole body, and a group is of objects; write it in changes")
            return None
        header = name_at(site, self.header, "header", header=True)
        if (header.lower() == "link") != (self.rel is not None):
            site.complain("goes with header: Link, which needs it; name its relation", "rel")
        elif self.rel is None:
            if self.parameter is not None:
                site.complain("is of a link; name its rel, with header: Link", "parameter")
            text = VALUE if self.text is None else self.text
            if text.count(VALUE) == 1:
                return HeaderPlace(header, text, header.lower() in _LINKS)
            site.complain(f"needs {VALUE} once, which stands for the value", "text")
        elif self.text is not None:
            site.complain("a link has no text; remove it, or name a parameter", "text")
        elif not _RELATION.match(self.rel):
            site.complain("is not one relation type; write one such as next", "rel")
        else:
            return LinkPlace(self.rel, self.parameter, site.between[self.inverse])
        return None


class ToHeaderConfig(_HeaderSection):
    """Move a field of the body into a header field of the older version, such as a total."""


class FromHeaderConfig(_HeaderSection):
    """Move a header field into a field of the older version's body: the reverse of to_header."""

    inverse = True
