"""Large JSON documents, read and written in pieces, so that other threads can run in between.

A parser in C holds the interpreter lock until it returns: for a million members, most of a second.
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
"""Arrays and objects of more bytes than this are opened in pieces."""
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
    """Split the content between the brackets of an array or object into pieces of whole elements.

    A piece has about 64 KiB, or more if a single element is longer. If the content is not valid
    JSON, then at least one piece between brackets is not valid JSON either.

    Args:
        step: Called for every 64 KiB, even within a long element.
    """
    begin = at = depth = 0
    quoted = False  # whether `at` is inside a string
    while at < len(inner):
        step()
        window = bytes(inner[at : at + _PIECE])
        if b"\\" in window:
            window = _ESCAPE.sub(b"__", window)
            if len(window) > 1 and window.endswith(b"\\"):  # the next window completes the escape
                window = window[:-1]
        at += len(window)
        # Most strings contain no brackets, so that only their two quotes remain.
        marks = window.translate(None, _NO_MARKS).replace(b'""', b"").split(b'"')
        outside = b"".join(marks[int(quoted) :: 2])  # every second part is outside strings
        depth += sum(map(outside.count, (b"[", b"{"))) - sum(map(outside.count, (b"]", b"}")))
        quoted ^= len(marks) % 2 == 0
        comma = _last_comma(window, depth, quoted)
        if comma is not None:
            end = at - len(window) + comma
            yield bytes(inner[begin:end])
            begin = end + 1
    yield bytes(inner[begin:])


def _last_comma(window: bytes, depth: int, quoted: bool) -> int | None:
    """Return the index of the last comma between elements in a window of the text, or None.

    `depth` and `quoted` describe the end of the window.
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


# Maximum elements or members, and maximum bytes of raw text, written in one step.
_TOGETHER = 64
_STEP = 64 * 1024
_encoded = msgspec.json.Encoder(decimal_format="number").encode


def encode(document: Document, step: Step = no_step) -> bytes:
    """Return a document as JSON; raise MsgspecError, or an error raised by `step`."""
    written = BytesIO()  # neither copies its content when it grows, nor in getvalue()
    _write(document, written, step)
    return written.getvalue()


def _write(document: Document, written: BytesIO, step: Step) -> None:
    mark = b""
    if isinstance(document, Raw):
        text = memoryview(document)
        written.writelines(text[begin : begin + _STEP] for begin in range(0, len(text), _STEP))
    elif isinstance(document, list):
        written.write(b"[")
        if len(document) <= _TOGETHER:  # each element may be large
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
