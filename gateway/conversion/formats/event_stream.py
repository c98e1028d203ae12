"""Conversion of server-sent events: `text/event-stream` (WHATWG HTML, section 9.2).

The data of an event is converted if it is a JSON object or array. Any other data, such as `[DONE]`,
passes, and so do comments and the other fields, byte for byte, but for names of events that differ
in the other version. An event that no change alters keeps all its bytes.
"""

import re
from collections.abc import Callable
from io import BytesIO

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats.document_stream import ConvertedStream, DocumentConversion
from gateway.conversion.version_link import event_names
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.turns.thread_pace import Step, no_step

# A line ends with CRLF, LF or CR, and an event with an empty line (WHATWG HTML, section 9.2.5).
_END_OF_EVENT = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINES = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")
_END_OF_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")
_DATA = re.compile(rb"data(?:: ?(.*))?\Z")
_NAME = re.compile(rb"(event: ?)([^\r\n]*)")  # of a line that begins so: ten times as fast
_CONVERTED = (b"data", b"event")
_BEFORE_A_LINE = (b"", b"\r", b"\n")


class EventStream(ConvertedStream):
    """Converts the events of a stream, each as it becomes complete.

    Args:
        convert: Returns one converted document; it may raise ConversionError.
        most: The maximum number of bytes of an event.
        lines: The maximum number of lines of an event.
        conversion: The conversion that the names of events have; None where none differs.
    """

    def __init__(
        self,
        convert: DocumentConversion,
        most: int,
        lines: int,
        conversion: BodyConversion | None = None,
    ) -> None:
        super().__init__(convert, most, "an event")
        self._lines = lines
        way = None if conversion is None else (conversion.links, conversion.direction)
        self._named = None if way is None else event_names(*way)
        self._searched = 0

    def _feed(self, data: bytes, step: Step) -> bytes:
        self._begun += data
        done = []
        begin = 0
        while True:
            # Comments keep a connection alive, and `retry` counts at once: lines before those that
            # are converted do not wait for an event to end.
            ahead = not self._begun.startswith(_CONVERTED, begin)
            end = _END_OF_LINE if ahead else _END_OF_EVENT
            found = end.search(self._begun, max(begin, self._searched))
            if found is None:
                break
            part = bytes(self._begun[begin : found.end()])
            if ahead:
                step()
                self._bound(part)
            done.append(part if ahead else self._event(part, step))
            begin = found.end()
        del self._begun[:begin]
        # The end of an event has up to four bytes, of which the last may still be missing.
        self._searched = max(0, len(self._begun) - 3)
        self._bound(self._begun)
        return b"".join(done)

    def finish(self, step: Step = no_step) -> bytes:
        """Return the last event, which has no end.

        The standard has its receiver discard it, and many clients do not.
        """
        rest, self._begun = bytes(self._begun), bytearray()
        return self._event(rest, step)

    def _event(self, event: bytes, step: Step) -> bytes:
        self._bound(event)
        if len(event) > self._lines < _count_lines(event):
            raise DecodedTooLargeError(f"an event of more than {self._lines} lines")
        # The lines are not held: each would take many times the memory of its bytes.
        data = BytesIO()
        for line in _LINES.finditer(event):
            step()
            if found := _DATA.match(line[1]):
                data.write((found[1] or b"") + b"\n")
        document = data.getvalue()[:-1]
        if self._named is not None:
            event = _renamed(event, self._named, step)
        converted = self._convert(document, step)
        return event if converted == document else _written(event, converted, step)


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


def _renamed(event: bytes, named: Callable[[str], str], step: Step) -> bytes:
    def renamed(line: re.Match[bytes]) -> bytes:
        step()
        if event[line.start() - 1 : line.start()] not in _BEFORE_A_LINE:
            return line[0]
        name = line[2].decode("utf-8", "surrogateescape")
        return line[1] + named(name).encode("utf-8", "surrogateescape")

    return _NAME.sub(renamed, event)


def _count_lines(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _written(event: bytes, converted: bytes, step: Step) -> bytes:
    """Return an event with its data replaced, which stands where the first line of it stood."""
    written = BytesIO()
    pending: bytes | None = converted
    for line in _LINES.finditer(event):
        step()
        if not _DATA.match(line[1]):
            written.write(line[0])
        elif pending is not None:
            parts, end = pending.split(b"\n"), line[2]
            written.write(b"data: " + ((end or b"\n") + b"data: ").join(parts) + end)
            pending = None
    return written.getvalue()
