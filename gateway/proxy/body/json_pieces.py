"""Cuts large JSON arrays and objects between their elements, so that no step of parsing is long.

A parser in C keeps other threads waiting until it is done, and with them all other requests: a
million members in one call take it most of a second. So does a copy of a large body, for some
milliseconds.
"""

import re
from collections.abc import Iterator

LARGE = 64 * 1024
"""An array or object of more bytes is opened in pieces."""
_PIECE = 16 * 1024
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
# What may stand between the parts of JSON (RFC 8259, section 2).
_BLANKS = b" \t\r\n"
_COMMA, _OPENING, _CLOSING = b","[0], b"[{", b"]}"


def stripped(text: memoryview) -> memoryview:
    """Return a text without the white space around it."""
    rest = b""
    while text and not (rest := bytes(text[:_PIECE]).lstrip(_BLANKS)):
        text = text[_PIECE:]
    text = text[len(text[:_PIECE]) - len(rest) :]
    while text and not (rest := bytes(text[-_PIECE:]).rstrip(_BLANKS)):
        text = text[:-_PIECE]
    return text[: len(text) - len(text[-_PIECE:]) + len(rest)]


def cut(inner: bytes | memoryview) -> Iterator[bytes]:
    """Yield pieces of what stands between the brackets of an array or object.

    Each piece has whole elements; one is as long as the longest element at most, and otherwise
    about 16 KiB. If the text is no JSON, at least one piece, put between brackets, is none either.

    Args:
        inner: the text between the brackets.
    """
    begin = at = depth = 0
    quoted = False  # whether `at` is within a text
    while at < len(inner):
        window = bytes(inner[at : at + _PIECE])
        if b"\\" in window:
            window = _ESCAPE.sub(b"__", window)
            if len(window) > 1 and window.endswith(b"\\"):  # the rest of the escape follows
                window = window[:-1]
        at += len(window)
        parts = window.split(b'"')
        first = int(quoted)  # the parts outside of texts are every second one
        quoted ^= len(parts) % 2 == 0
        outside = b"".join(parts[first::2])
        depth += sum(map(outside.count, (b"[", b"{"))) - sum(map(outside.count, (b"]", b"}")))
        end = _last_comma(parts, first, depth, at)
        if end is not None:
            yield bytes(inner[begin:end])
            begin = end + 1
    yield bytes(inner[begin:])


def _last_comma(parts: list[bytes], first: int, depth: int, end: int) -> int | None:
    """Return where the last comma stands that is in no element, or None.

    Args:
        parts: a window on the text, split at its quotes.
        first: 0 if the first part is outside of a text, else 1.
        depth: how many elements are open at the end of the window.
        end: where the window ends.
    """
    for number in range(len(parts) - 1, -1, -1):
        part = parts[number]
        if number % 2 == first:
            for position in range(len(part) - 1, -1, -1):
                character = part[position]
                if character == _COMMA:
                    if depth == 0:
                        return end - len(part) + position
                elif character in _CLOSING:
                    depth += 1
                elif character in _OPENING:
                    depth -= 1
        end -= len(part) + 1
    return None
