"""The parts of URLs and of references (RFC 3986), and links with and without a host."""

import re
from ipaddress import ip_address

from gateway.base.browser_url import without_authority
from gateway.conversion.link_directory import LinkForm

# RFC 3986, appendix B.
_URL = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(#.*)?", re.DOTALL
)


def in_form(link: str, form: LinkForm, scheme: str, authority: str, base: str) -> str:
    """Return a link to the client's own host in a form; links to others stay.

    Args:
        link: The link, which the client can ask for.
        form: The form.
        scheme: The scheme that the client used.
        authority: The host and port that the client used.
        base: The path that the client asked for, from which relative paths start.
    """
    link_scheme, link_authority, path, query, fragment = split_url(link)
    if link_authority is None:
        if form is LinkForm.RELATIVE or link_scheme is not None or (not path and query is None):
            return link
        whole = resolved(base, path)
        return f"{scheme}://{authority}{whole}{query_and_fragment(query, fragment)}"
    if form is LinkForm.ABSOLUTE or link_authority.lower() != authority.lower():
        return link
    return without_authority(f"{path or '/'}{query_and_fragment(query, fragment)}")


def split_url(link: str) -> tuple[str | None, str | None, str, str | None, str]:
    """Return scheme, authority, path, query and fragment with its `#`; None where one is absent."""
    match = _URL.match(link)
    assert match is not None  # the pattern matches every text
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment or ""


def query_and_fragment(query: str | None, fragment: str) -> str:
    """Return what follows a path."""
    return fragment if query is None else f"?{query}{fragment}"


def is_address(host: str) -> bool:
    """Return whether a host, without brackets, is an IP address and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def resolved(base: str, path: str, *, absolute: bool = False) -> str:
    """Return the path of a reference (RFC 3986, section 5.2), without dot segments."""
    if not path:
        return base if not absolute else "/"
    if not path.startswith("/"):
        path = f"{base.rpartition('/')[0]}/{path}"
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
