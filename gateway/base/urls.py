"""URLs as browsers read them, which differ from RFC 3986 in some bytes, and hosts."""

import re
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import unquote

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


def parameter_values(query: str | None, name: str) -> tuple[str, ...]:
    """Return every value of a parameter, form-decoded (WHATWG URL, section 5.1).

    But a plus stays one: `1.2+` names a version, and what has a space does not.
    """
    if not query:
        return ()
    if "%" in query or "+" in query:
        return tuple([unquote(value) for *_, value in parameters(name).findall(query)])
    found = []
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == name:
            found.append(value)
    return tuple(found)


@lru_cache(maxsize=1024)
def parameters(name: str) -> re.Pattern[str]:
    """Return a pattern of the parameters of a name in a query, however the name is encoded.

    The name is form-decoded (WHATWG URL, section 5.1). One search through the whole query costs a
    tenth of decoding each name in it. The groups are what precedes the name (`&` or nothing), the
    name, and the value, which are as they stand in the query.
    """
    spelling = "".join(map(_spelling, name))
    return re.compile(rf"(\A|&)({spelling})(?:=([^&]*))?(?=&|\Z)")


def _spelling(character: str) -> str:
    coded = "".join(
        f"%{''.join(f'[{digit}{digit.upper()}]' for digit in f'{byte:02x}')}"
        for byte in character.encode()
    )
    # A plus is a blank, and a percent sign stands for itself where no byte follows it.
    plain = {" ": r"\+| ", "+": r"(?!)", "%": "%(?![0-9A-Fa-f]{2})"}
    return f"(?:{plain.get(character, re.escape(character))}|{coded})"


def is_address(host: str) -> bool:
    """Return whether a host, without brackets, is an IP address and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
