"""Large JSON documents, read and written in pieces, so that no step keeps other threads waiting.

A parser in C holds the interpreter until it is done: a million members in one call take it most of
a second, and all other requests wait. So does a copy of a large body, for some milliseconds.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from itertools import islice

import msgspec
from msgspec import Raw

from gateway.conversion.document import Document
from gateway.http.cooperative import Step, no_step

LARGE = 64 * 1024
"""An array or object of more bytes is opened in pieces."""
_PIECE = 64 * 1024
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
# The white space of JSON (RFC 8259, section 2).
_BLANKS = b" \t\r\n"
_COMMA, _OPENING, _CLOSING = b","[0], b"[{", b"]}"
_NO_MARKS = bytes(sorted({*range(256)} - {*b'"[{]}'}))


def stripped(text: memoryview) -> memoryview:
    rest = b""
    while text and not (rest := bytes(text[:_PIECE]).lstrip(_BLANKS)):
        text = text[_PIECE:]
    text = text[len(text[:_PIECE]) - len(rest) :]
    while text and not (rest := bytes(text[-_PIECE:]).rstrip(_BLANKS)):
        text = text[:-_PIECE]
    return text[: len(text) - len(text[-_PIECE:]) + len(rest)]


def cut(inner: bytes | memoryview, step: Step = no_step) -> Iterator[bytes]:
    """Yield pieces of what stands between the brackets of an array or object.

    Each piece has whole elements; one is as long as the longest element at most, and otherwise
    about 64 KiB. If the text is no JSON, at least one piece, put between brackets, is none either.
    The step is called for every 64 KiB, since to search a long element takes long.
    """
    begin = at = depth = 0
    quoted = False  # whether `at` is within a text
    while at < len(inner):
        step()
        window = bytes(inner[at : at + _PIECE])
        if b"\\" in window:
            window = _ESCAPE.sub(b"__", window)
            if len(window) > 1 and window.endswith(b"\\"):  # the rest of the escape follows
                window = window[:-1]
        at += len(window)
        # Most texts have no bracket in them, so that nothing is left of them but two quotes.
        marks = window.translate(None, _NO_MARKS).replace(b'""', b"").split(b'"')
        outside = b"".join(marks[int(quoted) :: 2])  # every second part is outside of texts
        depth += sum(map(outside.count, (b"[", b"{"))) - sum(map(outside.count, (b"]", b"}")))
        quoted ^= len(marks) % 2 == 0
        comma = _last_comma(window, depth, quoted)
        if comma is not None:
            end = at - len(window) + comma
            yield bytes(inner[begin:end])
            begin = end + 1
    yield bytes(inner[begin:])


def _last_comma(window: bytes, depth: int, quoted: bool) -> int | None:
    """Return where the last comma stands in a window on the text that is in no element, or None.

    Args:
        depth: How many elements are open at its end.
        quoted: Whether its end is within a text.
    """
    end = len(window)
    while True:
        quote = window.rfind(b'"', 0, end)  # -1 if there is none
        if not quoted:
            for position in range(end - 1, quote, -1):
                character = window[position]
                if character == _COMMA:
                    if depth == 0:
                        return position
                elif character in _CLOSING:
                    depth += 1
                elif character in _OPENING:
                    depth -= 1
        if quote < 0:
            return None
        end, quoted = quote, not quoted


# Elements or members, and bytes of a text, that are written in one step.
_TOGETHER = 64
_STEP = 64 * 1024
_encoded = msgspec.json.Encoder(decimal_format="number").encode


def encode(document: Document, step: Step = no_step) -> bytes:
    """Return a document as JSON; raises MsgspecError, or what a step raises."""
    written = BytesIO()  # grows, and gives what it has, without copying it
    _write(document, written, step)
    return written.getvalue()


def _write(document: Document, written: BytesIO, step: Step) -> None:
    mark = b""
    if isinstance(document, Raw):
        text = memoryview(document)
        written.writelines(text[begin : begin + _STEP] for begin in range(0, len(text), _STEP))
    elif isinstance(document, list):
        written.write(b"[")
        if len(document) <= _TOGETHER:  # each may be large
            for element in document:
                written.write(mark)
                _write(element, written, step)
                mark = b","
        else:
            for begin in range(0, len(document), _TOGETHER):
                step()
                written.write(mark + _encoded(document[begin : begin + _TOGETHER])[1:-1])
                mark = b","
        written.write(b"]")
    elif isinstance(document, dict):
        written.write(b"{")
        members = iter(document.items())
        if len(document) <= _TOGETHER:
            for key, value in members:
                written.write(mark + _encoded(key) + b":")
                _write(value, written, step)
                mark = b","
        while some := dict(islice(members, _TOGETHER)):
            step()
            written.write(mark + _encoded(some)[1:-1])
            mark = b","
        written.write(b"}")
    else:
        written.write(_encoded(document))
