"""Conversion of JSON lines: `application/x-ndjson`, one JSON document on each line."""

from gateway.core.conversion.conversion_error import ConversionError
from gateway.proxy.body.formats.converted_stream import ConvertedStream


class JsonLineStream(ConvertedStream):
    """Converts the lines of a stream, each as it becomes complete; an empty line stays."""

    def feed(self, data: bytes) -> bytes:
        """Return the converted lines that the data completes; may raise ConversionError."""
        first, end, rest = data.partition(b"\n")
        self._begun += first
        done = []
        if end:
            *lines, last = rest.split(b"\n")
            done = [self._line(line) + b"\n" for line in (bytes(self._begun), *lines)]
            self._begun = bytearray(last)
        if len(self._begun) > self._most:
            raise ConversionError(f"a line of more than {self._most} bytes")
        return b"".join(done)

    def finish(self) -> bytes:
        """Return the converted last line, which has no end; may raise ConversionError."""
        last, self._begun = bytes(self._begun), bytearray()
        return self._line(last)

    def _line(self, line: bytes) -> bytes:
        document = line.strip(b" \t\r")
        return self._convert(document) if document else line
