"""Conversion of JSON lines: `application/x-ndjson`, one JSON document on each line.

A line that is empty, or no JSON object or array, passes as it is.
"""

from io import BytesIO

from gateway.conversion.formats.converted_stream import (
    ConvertedStream,
    DocumentConversion,
    converted_within,
)
from gateway.http.turns.thread_pace import Step, no_step


class JsonLineStream(ConvertedStream):
    """Converts the lines of a stream, each as it becomes complete."""

    def __init__(self, convert: DocumentConversion, most: int) -> None:
        super().__init__(convert, most, "a line")

    def _feed(self, data: bytes, step: Step) -> bytes:
        done = BytesIO()  # a body may be whole, and of as many lines as bytes
        begin = 0
        while (end := data.find(b"\n", begin)) >= 0:
            self._begun += data[begin:end]
            done.write(self._line(bytes(self._begun), step) + b"\n")
            self._begun.clear()
            begin = end + 1
        self._begun += data[begin:]
        self._bound(self._begun)
        return done.getvalue()

    def finish(self, step: Step = no_step) -> bytes:
        """Return the converted last line, which has no end."""
        last, self._begun = bytes(self._begun), bytearray()
        return self._line(last, step)

    def _line(self, line: bytes, step: Step) -> bytes:
        step()
        self._bound(line)
        return converted_within(line, b" \t\r", self._convert, step)
