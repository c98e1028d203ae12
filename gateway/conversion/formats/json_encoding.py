"""Encodes large JSON documents in steps, so that no step keeps other threads waiting for long."""

from io import BytesIO
from itertools import islice

import msgspec
from msgspec import Raw

from gateway.conversion.document import Document
from gateway.http.turns.thread_pace import Step, no_step

# What is written at a time: elements or members, and bytes of a text.
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
