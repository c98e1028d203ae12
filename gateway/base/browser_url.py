"""URLs as browsers read them, which differ from RFC 3986 in some bytes."""

import re

# How a browser finds the authority (https://url.spec.whatwg.org/#concept-basic-url-parser): it
# strips C0 controls and spaces around a URL, removes tabs and line ends anywhere in it, takes a
# backslash for a slash, and takes any number of them from two on.
_STRIPPED = "".join(map(chr, range(0x21)))
_REMOVED = {ord(sign): None for sign in "\t\n\r"}
_BROWSER_AUTHORITY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?[/\\]{2,}([^/\\?#]*)")


def browser_authority(link: str) -> str | None:
    """Return the authority that a browser reads in a link, or None if there is none."""
    match = _BROWSER_AUTHORITY.match(link.strip(_STRIPPED).translate(_REMOVED))
    return None if match is None else match[1]


def without_authority(link: str) -> str:
    """Return a link that begins with a path so that a browser reads no authority in it.

    Of a path such as `//a/b`, `a` would be the authority (RFC 3986, section 4.2). A dot segment
    before it leaves the path as it is.
    """
    return link if browser_authority(link) is None else f"/.{link}"
