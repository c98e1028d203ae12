"""Path patterns: path templates as regular expressions of another proxy (RE2), and their order.

A narrow pattern matches only paths that the gateway routes by the template. A wide one matches all
of them, and more: what it takes from other templates goes to the gateway, which tells them apart.
"""

import re

from gateway.core.routing import Template

# What a captured segment may hold in a narrow pattern: no percent sign, semicolon or backslash, by
# which a dot segment could be hidden; and one character at least that is not a dot.
_PLAIN = r"A-Za-z0-9_~!$&'()*+,=:@\-"
_CAPTURED = rf"[{_PLAIN}.]*[{_PLAIN}][{_PLAIN}.]*"
# Names of query parameters that need no escape in a class of characters.
_NAME = re.compile(r"[A-Za-z0-9_.]+\Z")

Rank = tuple[tuple[bool, tuple[bool, int, int]], ...]


def rank(template: Template) -> Rank:
    """Return the sort key by which the first template that matches is the one of the router."""
    nothing = (False, 0, 0)
    return tuple(
        (segment.capture is not None, nothing if segment.capture is None else segment.rank)
        for segment in template.segments
    )


def narrow(template: Template) -> str:
    """Return a pattern of paths that surely match a template, with a group for each capture."""
    return "".join(
        f"/{re.escape(segment.prefix)}"
        + (
            ""
            if segment.capture is None
            else f"((?:{_CAPTURED}(?:/{_CAPTURED})*/?)?)"
            if segment.tail
            else f"({_CAPTURED})"
        )
        + re.escape(segment.suffix)
        for segment in template.segments
    )


def wide(template: Template) -> str:
    """Return a pattern of all paths that may match a template."""
    return "".join(
        f"/{re.escape(segment.prefix)}"
        + ("" if segment.capture is None else ".*" if segment.tail else "[^/]*")
        + re.escape(segment.suffix)
        for segment in template.segments
    )


def substitution(template: Template, captured: tuple[str, ...]) -> str:
    """Return a template as what replaces a path, with the groups of `narrow` for its captures."""
    return template.fill({name: f"\\{captured.index(name) + 1}" for name in template.captures})


def with_parameter(template: Template, name: str, value: str) -> str | None:
    """Return a pattern of targets whose query has a parameter once; None for an unusual name.

    It begins with the path, so that most others are told by their first characters.
    """
    other = _other_pair(name)
    if other is None:
        return None
    pair = f"{re.escape(name)}={re.escape(value)}"
    return rf"{_before_query(template)}\?(?:{other}&)*{pair}(?:&{other})*"


def without_parameter(template: Template, name: str) -> str | None:
    """Return a pattern of targets whose query lacks a parameter; None for an unusual name."""
    other = _other_pair(name)
    if other is None:
        return None
    return rf"{_before_query(template)}(?:\?(?:{other}&)*{other})?"


def other_value(value: str) -> str:
    """Return a pattern of all texts but one."""
    shorter = (
        f"{re.escape(value[:place])}(?:[^{re.escape(letter)}].*)?"
        for place, letter in enumerate(value)
    )
    return f"{'|'.join(shorter)}|{re.escape(value)}.+"


def _before_query(template: Template) -> str:
    """Return a pattern of all paths that may match a template, which end before the query."""
    return "[^?]*" if template.captures else re.escape(template.text)


def _other_pair(name: str) -> str | None:
    """Return a pattern of a pair with another name that is written without any encoding."""
    if not _NAME.match(name):
        return None
    plain = "[^&=%+]"
    shorter = (
        f"{re.escape(name[:place])}(?:[^{letter}&=%+]{plain}*)?"
        for place, letter in enumerate(name)
    )
    return rf"(?:{'|'.join(shorter)}|{re.escape(name)}{plain}+)(?:=[^&]*)?"
