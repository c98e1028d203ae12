"""Max-Forwards, which bounds how often OPTIONS or TRACE may still be forwarded.

Each proxy counts it down, and the one that gets a request with 0 answers it, which shows the hop at
which a chain of proxies fails (RFC 9110, section 7.6.2). A value that is no number, or is given
twice, bounds nothing and is forwarded as it is.

A TRACE that ends here is refused with 405. Its answer would show the client what proxies before the
gateway have added, and credentials, which fields of any name may carry (RFC 9110, section 9.3.8).
nginx, and httpd with `TraceEnable off`, refuse TRACE alike.
"""

import re
from typing import Final

from gateway.base.headers import HeaderFields
from gateway.base.request import HeaderLookup

BOUNDED: Final = frozenset({"OPTIONS", "TRACE"})
"""The methods for which Max-Forwards counts; for any other, it may be ignored."""

_MOST = 10**9
"""The largest value that is forwarded; a larger one is replaced by it."""

_NUMBER = re.compile(r"[0-9]+")


def ends_here(fields: HeaderLookup) -> bool:
    """Return whether a request of a bounded method must not be forwarded."""
    values = fields.getall("Max-Forwards", ())
    return len(values) == 1 and _number(values[0]) == 0


def counted_down(fields: HeaderFields) -> HeaderFields:
    """Return the fields of a request to forward, with one forward less where it is bounded."""
    places = [place for place, line in enumerate(fields) if line[0].lower() == b"max-forwards"]
    if len(places) != 1:
        return fields
    (place,) = places
    name, value = fields[place]
    number = _number(value.decode("latin-1"))
    if not number:
        return fields
    line = name, b"%d" % min(number - 1, _MOST)
    return [*fields[:place], line, *fields[place + 1 :]]


def _number(value: str) -> int | None:
    if not _NUMBER.fullmatch(value):
        return None
    digits = value.lstrip("0")
    # Longer numbers are not read: the time grows with the square of their digits.
    return _MOST + 1 if len(digits) > len(str(_MOST)) else int(digits or "0")
