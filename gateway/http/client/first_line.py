"""The first line of a request in words of HTTP that the parser knows.

llhttp, the parser of aiohttp, lists the methods and the versions that it takes, and refuses others
at once. It also takes RTSP for HTTP.
"""

import re
from http import HTTPMethod

HTTP = re.compile(rb"[\r\n]*[^\r\n]* HTTP/[^ \r\n]*\r?\n")
"""Matches a head whose first line is complete and names HTTP."""

_LATER_VERSION = re.compile(rb"([\r\n]*[^\r\n]* HTTP/1\.)[2-9](?=\r|\Z)")
_METHOD = re.compile(rb"([\r\n]*)([\w!#$%&'*+.^`|~-]{1,32})(?= |\Z)")
# PRI is reserved, for the first bytes of HTTP/2 (RFC 9113, section 3.4); it is refused.
_LISTED = frozenset({*HTTPMethod, "PRI"})


def in_known_words(head: bytes) -> tuple[bytes, str]:
    """Return a head, or its beginning, with a version and a method that the parser knows.

    A later minor version becomes 1.1, the highest one that is known here (RFC 9110, section 2.5).
    A method may have any name (RFC 9110, section 9.1); POST stands for those without a standard.

    Returns:
        the head, and the method for which POST stands; empty for none.
    """
    if later := _LATER_VERSION.match(head):
        head = later[1] + b"1" + head[later.end() :]
    named = _METHOD.match(head)
    if named is None or (method := named[2].decode()) in _LISTED:
        return head, ""
    return named[1] + b"POST" + head[named.end() :], method
