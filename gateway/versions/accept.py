"""The Accept header field (RFC 9110, section 12.5.1), read without judging it."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
# A comma inside a quoted string does not end a member (section 5.6.4).
_MEMBER = re.compile(rf"(?:{_QUOTED}|[^,])+", re.DOTALL)
# All up to the first quote that is never closed; possessive, so that it costs one pass.
_CLOSED = re.compile(rf'(?:[^"]|{_QUOTED})*+', re.DOTALL)
_RANGE = re.compile(rf"({_TCHARS}/{_TCHARS})")
_PARAMETER = re.compile(rf"[ \t]*;[ \t]*(?:({_TCHARS})=({_TCHARS}|{_QUOTED}))?", re.DOTALL)
_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?\Z|1(?:\.0{0,3})?\Z", re.ASCII)


class MediaRange(NamedTuple):
    """One member of Accept: its type and subtype in lower case, and its weight from 0 to 1."""

    essence: str
    weight: float


def parse(values: Iterable[str], part: str = "/") -> Iterator[MediaRange]:
    """Yield the well-formed members of all Accept field lines, in the order of the request.

    Several lines are one list (RFC 9110, section 5.3). A member that breaks the grammar is left
    out; parameters other than the weight are read over.

    Args:
        values: The values of the field lines.
        part: A text in lower case. Members without it are left out, unparsed.
    """
    for line in values:
        for text in _split(line):
            if part in text or part in text.lower():
                member = _member(text.strip(" \t"))
                if member is not None:
                    yield member


def _split(value: str) -> list[str]:
    if '"' not in value:
        return value.split(",")
    # Where one quote is never closed, none after it is: to look for the end of each of them again
    # would take quadratic time. They spoil their own members, as NUL does.
    rest = _CLOSED.sub("", value, count=1)
    return _MEMBER.findall(value.removesuffix(rest) + rest.replace('"', "\0"))


def _member(text: str) -> MediaRange | None:
    head = _RANGE.match(text)
    if head is None:
        return None
    weight = None
    position = head.end()
    while position < len(text):
        parameter = _PARAMETER.match(text, position)
        if parameter is None:
            return None
        name, value = parameter.groups()
        if weight is None and name in ("q", "Q"):
            if not _WEIGHT.match(value):
                return None
            weight = float(value)
        position = parameter.end()
    return MediaRange(head.group(1).lower(), 1.0 if weight is None else weight)
