"""Conversion of server-sent events: `text/event-stream` (WHATWG HTML, section 9.2).

The data of an event is converted if it is a JSON object or array. Any other data, such as a word
that ends a stream, passes, and so do comments and the other fields, byte for byte.
"""

import re
from collections.abc import Iterator

from gateway.core.conversion.conversion_error import ConversionError
from gateway.proxy.body.formats.converted_stream import ConvertedStream, DocumentConversion

# A line ends with CRLF, LF or CR, and an event with an empty line (WHATWG HTML, section 9.2.5).
_END_OF_EVENT = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINES = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")
_END_OF_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")
_DATA = re.compile(rb"data(?:: ?(.*))?\Z")
_CONTAINERS = (b"{", b"[")


class EventStream(ConvertedStream):
    """Converts the events of a stream, each as it becomes complete."""

    def __init__(self, convert: DocumentConversion, most: int) -> None:
        super().__init__(convert, most)
        self._searched = 0

    def feed(self, data: bytes) -> bytes:
        """Return the converted events that the data completes; may raise ConversionError."""
        self._begun += data
        done = []
        begin = 0
        while True:
            # A comment alone keeps a connection alive, so it does not wait for an event to end.
            end = _END_OF_LINE if self._begun.startswith(b":", begin) else _END_OF_EVENT
            found = end.search(self._begun, max(begin, self._searched))
            if found is None:
                break
            done.append(self._event(bytes(self._begun[begin : found.end()])))
            begin = found.end()
        del self._begun[:begin]
        # The end of an event has up to four bytes, of which the last may still be missing.
        self._searched = max(0, len(self._begun) - 3)
        if len(self._begun) > self._most:
            raise ConversionError(f"an event of more than {self._most} bytes")
        return b"".join(done)

    def finish(self) -> bytes:
        """Return the rest as it is: an event without its end is discarded by the receiver."""
        rest, self._begun = bytes(self._begun), bytearray()
        return rest

    def _event(self, event: bytes) -> bytes:
        lines = [(line, end, _DATA.match(line)) for line, end in _LINES.findall(event)]
        document = b"\n".join(data[1] or b"" for _, _, data in lines if data)
        if not document.lstrip(b" \t\n").startswith(_CONTAINERS):
            return event
        converted = self._convert(document)
        return b"".join(_written(lines, converted))


def events(body: bytes) -> list[dict[str, bytes]]:
    """Return the complete events of a stream, each with its values by field, without comments."""
    found: list[dict[str, bytes]] = []
    event: dict[str, bytes] = {}
    for line, end in _LINES.findall(body):
        name, _, value = line.partition(b":")
        if not line:
            if event and end:
                found.append(event)
            event = {}
        elif name:
            field, value = name.decode("utf-8", "replace"), value.removeprefix(b" ")
            several = field == "data" and field in event
            event[field] = event[field] + b"\n" + value if several else value
    return found


def _written(
    lines: list[tuple[bytes, bytes, re.Match[bytes] | None]], converted: bytes
) -> Iterator[bytes]:
    pending: bytes | None = converted
    for line, end, data in lines:
        if data is None:
            yield line + end
        elif pending is not None:
            for part in pending.split(b"\n"):
                yield b"data: " + part + end
            pending = None
