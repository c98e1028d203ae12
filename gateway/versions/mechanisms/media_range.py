"""Media types with their weights and parameters (RFC 9110, sections 8.3.1 and 12.5.1)."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
# A comma inside a quoted string does not end a list member (section 5.6.4).
_MEMBER = re.compile(rf"(?:{_QUOTED}|[^,])+", re.DOTALL)
# The string up to the first unclosed quote. Possessive quantifiers make matching linear.
_CLOSED = re.compile(rf'(?:[^"]|{_QUOTED})*+', re.DOTALL)
_RANGE = re.compile(rf"({_TCHARS}/{_TCHARS})")
_PARAMETER = re.compile(rf"[ \t]*;[ \t]*(?:({_TCHARS})=({_TCHARS}|{_QUOTED}))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?\Z|1(?:\.0{0,3})?\Z", re.ASCII)


class MediaRange(NamedTuple):
    """A media type of Accept or Content-Type.

    Attributes:
        essence: The type and subtype in lower case.
        weight: From 0 to 1.
        parameters: The names in lower case with their unquoted values, without the weight.
    """

    essence: str
    weight: float
    parameters: tuple[tuple[str, str], ...] = ()


def parse_accept(values: Iterable[str], part: str = "/") -> Iterator[MediaRange]:
    """Yield the well-formed members of all Accept field lines, in the order of the request.

    Several lines form one list (RFC 9110, section 5.3). Malformed members are skipped.

    Args:
        part: A lower-case string; members without it are skipped.
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
    # No quote after the first unclosed quote can be closed. Searching for the closing quote of each
    # would take quadratic time, so these quotes are replaced by NUL. Their members become
    # malformed.
    rest = _CLOSED.sub("", value, count=1)
    return _MEMBER.findall(value.removesuffix(rest) + rest.replace('"', "\0"))


def _member(text: str) -> MediaRange | None:
    head = _RANGE.match(text)
    if head is None:
        return None
    weight, parameters = None, []
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
        elif name is not None:
            parameters.append((name.lower(), _ESCAPED.sub(r"\1", value.strip('"'))))
        position = parameter.end()
    return MediaRange(head.group(1).lower(), 1.0 if weight is None else weight, tuple(parameters))
