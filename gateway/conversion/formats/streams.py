"""Streams of JSON documents, each converted as soon as it is complete.

JSON text sequences, `application/json-seq` (RFC 7464): each JSON text ends with a line feed, may
contain line feeds, and may begin with a record separator. Kubernetes sends such texts as
`application/json`, without separators.

Server-sent events, `text/event-stream` (WHATWG HTML, section 9.2): the data of an event is
converted if it is a JSON object or array. Other data, such as `[DONE]`, comments and other fields
keep their bytes.
"""

import re
from abc import ABC, abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Callable
from io import BytesIO

import msgspec

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats.text_encoding import TextEncoding, detected
from gateway.conversion.version_step import event_names
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.cooperative import Step, no_step

DocumentConversion = Callable[[bytes, Step], bytes]
"""A function that converts one JSON document; it may raise ConversionError."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ConvertedStream(ABC):
    """Converts a stream of documents piece by piece, and holds back only incomplete documents.

    Its methods raise ConversionError for a document that cannot be converted. They raise
    DecodedTooLargeError as soon as a part of the stream, such as a line, exceeds the size limit.

    Args:
        most: The maximum number of bytes of a part.
    """

    def __init__(self, convert: DocumentConversion, most: int, part: str) -> None:
        self._convert = convert
        self._most = most
        self._part = part
        self._begun = bytearray()
        self._at_start = True

    @property
    def held(self) -> int:
        return len(self._begun)

    def feed(self, data: bytes, step: Step = no_step) -> bytes:
        """Add data, convert the documents that are now complete, and return them.

        A byte order mark at the start of the stream is returned unchanged, because it is not part
        of a document.
        """
        if not self._at_start:
            return self._feed(data, step)
        data = bytes(self._begun) + data
        self._begun.clear()
        if len(data) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(data):
            self._begun += data
            return b""
        self._at_start = False
        mark = _BYTE_ORDER_MARK if data.startswith(_BYTE_ORDER_MARK) else b""
        return mark + self._feed(data[len(mark) :], step)

    @abstractmethod
    def _feed(self, data: bytes, step: Step) -> bytes:
        pass

    @abstractmethod
    def finish(self, step: Step = no_step) -> bytes:
        """Convert the rest of the stream after its last byte, and return it."""

    def _bound(self, part: bytes | bytearray) -> None:
        if len(part) > self._most:
            raise DecodedTooLargeError(f"{self._part} of more than {self._most} bytes")


def _converted_within(
    text: bytes, around: bytes, convert: DocumentConversion, step: Step = no_step
) -> bytes:
    document = text.strip(around)
    if not document or (converted := convert(document, step)) == document:
        return text
    begin = text.index(document)
    return text[:begin] + converted + text[begin + len(document) :]


class JsonLineStream(ConvertedStream):
    def __init__(self, convert: DocumentConversion, most: int) -> None:
        super().__init__(convert, most, "a line")

    def _feed(self, data: bytes, step: Step) -> bytes:
        done = BytesIO()  # the data may be a whole body, with as many lines as bytes
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
        last, self._begun = bytes(self._begun), bytearray()
        return self._line(last, step)

    def _line(self, line: bytes, step: Step) -> bytes:
        step()
        self._bound(line)
        return _converted_within(line, b" \t\r", self._convert, step)


_AROUND = b" \t\r\n\x1e"
_INK = re.compile(rb"[^ \t\r\n\x1e]")
_MARK = re.compile(rb'\\.|["\[\]{}\n\x1e]', re.DOTALL)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NO_MARKS = bytes(sorted({*range(256)} - {*b'"[]{}\n'}))
_SEPARATOR, _BACKSLASH = b"\x1e", b"\\"
_STEP = 64 * 1024
# The maximum number of rounds. Each round removes the innermost pairs of brackets, so that deeply
# nested texts would need many rounds.
_LEVELS = 32


class _TextEnds:
    """Finds the line feeds that end JSON texts in a stream that arrives in arbitrary pieces.

    The texts are not validated. A line feed inside a string, which is invalid JSON, ends the
    string.
    """

    def __init__(self) -> None:
        self.blank = True
        self.container = False
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def find(self, piece: bytes, begin: int = 0, step: Step = no_step) -> int | None:
        at = begin
        if self.blank:
            ink = _INK.search(piece, begin)
            at = len(piece) if ink is None else ink.start()
            if (line := piece.find(b"\n", begin, at)) >= 0:
                return line + 1  # a blank line counts as a text
            if ink is None:
                return None
            self.blank, self.container = False, ink[0] in b"{["
        while at < len(piece):
            step()
            if self._escaped:
                self._escaped, at = False, at + 1
            end = min(len(piece), at + _STEP)
            if not self._goes_on(piece[at:end]):
                found = self._search(piece, at, end)
                if found is not None:
                    return found
            at = end
        return None

    def _goes_on(self, window: bytes) -> bool:
        if not self._depth or _SEPARATOR in window or window.endswith(_BACKSLASH):
            return False
        if _BACKSLASH in window:
            window = _ESCAPE.sub(b"", window)
        parts = window.translate(None, _NO_MARKS).split(b'"')
        quoted = int(self._quoted)
        if any(b"\n" in part for part in parts[1 - quoted :: 2]):
            return False
        outside = b"".join(parts[quoted::2]).replace(b"\n", b"")
        for _ in range(_LEVELS):
            fewer = outside.replace(b"{}", b"").replace(b"[]", b"")
            if len(fewer) == len(outside):
                break
            outside = fewer
        closing = outside.count(b"}") + outside.count(b"]")
        if closing >= self._depth:
            return False
        self._depth += len(outside) - 2 * closing
        self._quoted ^= len(parts) % 2 == 0
        return True

    def _search(self, piece: bytes, begin: int, end: int) -> int | None:
        behind = begin
        for mark in _MARK.finditer(piece, begin, end):
            behind, sign = mark.end(), mark[0]
            if sign == b"\n":
                self._quoted = False
                if not self._depth:
                    return behind
            elif sign == _SEPARATOR:
                return mark.start()
            elif sign == b'"':
                self._quoted = not self._quoted
            elif not self._quoted and sign in b"{[":
                self._depth += 1
            elif not self._quoted and sign in b"}]":
                self._depth = max(0, self._depth - 1)
        self._escaped = behind < end and piece.endswith(_BACKSLASH, begin, end)
        return None


class JsonSequenceStream(ConvertedStream):
    def __init__(self, convert: DocumentConversion, most: int) -> None:
        super().__init__(convert, most, "a document")
        self._ends = _TextEnds()

    def _feed(self, data: bytes, step: Step) -> bytes:
        done = BytesIO()
        begin = 0
        while (end := self._ends.find(data, begin, step)) is not None:
            self._begun += data[begin:end]
            done.write(self.finish(step))
            begin = end
        self._begun += data[begin:]
        self._bound(self._begun)
        return done.getvalue()

    def finish(self, step: Step = no_step) -> bytes:
        text, self._begun, self._ends = bytes(self._begun), bytearray(), _TextEnds()
        self._bound(text)
        return _converted_within(text, _AROUND, self._convert, step)


class SeriesSearch:
    """Detects whether a JSON body that is still arriving is a series of JSON texts.

    The body is a series if a line feed ends an object or array, and then either more data follows,
    or the sender pauses without ending the body.

    Attributes:
        pause: The length of such a pause in seconds. None if a pause has no meaning.
    """

    def __init__(self, pause: float | None = None) -> None:
        self.pause = pause
        self.found = False
        self._ends: _TextEnds | None = _TextEnds()
        self._ended = False

    def ends_text(self, piece: bytes) -> bool:
        begin = 0
        if b"\0" in piece:  # UTF-16 or UTF-32, in which _TextEnds cannot find texts
            self._ends = None
        while self._ends is not None and not self._ended:
            end = self._ends.find(piece, begin)
            if not self._ends.blank and not self._ends.container:
                self._ends = None
            if end is None:
                return False
            self._ended = self._ends is not None and not self._ends.blank
            begin = end
        if not self._ended:
            return False
        self.found = _INK.search(piece, begin) is not None
        return not self.found


# A number at the end of the received text, which may be incomplete.
_NUMBER = re.compile(rb"-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?)?\Z")
_MOST_DIGITS = 64
_TRUNCATED = "Input data was truncated"
# Bytes that occur at the start of JSON in UTF-16 or UTF-32, or in a byte order mark. Four bytes are
# needed to detect the encoding.
_OF_ENCODINGS = re.compile(rb"[\0\xef\xfe\xff]")
# Each check parses all the text received so far. Beyond _EACH bytes, the next check takes place
# when the text has doubled. Beyond _LOOKED_AT bytes, the text is assumed to be JSON.
_EACH, _LOOKED_AT = 64 * 1024, 1024 * 1024
_syntax = msgspec.json.Decoder(msgspec.Raw).decode


class TextSearch:
    """Detects whether a text that is still arriving is not JSON; see `SeriesSearch`.

    Args:
        pause: The seconds without data after which complete JSON is taken as the whole body.
            None to wait for the end of the text.

    Attributes:
        found: Whether the search is over: the text is not JSON, is too long, or was followed by a
            pause.
    """

    def __init__(self, encoding: TextEncoding | None, pause: float | None) -> None:
        self.pause = pause
        self.found = False
        self.json = True
        self._encoding = encoding
        self._text = bytearray()
        self._next = 0

    def ends_text(self, piece: bytes) -> bool:
        """Add a piece; return whether the received text is complete JSON."""
        if self._next > _LOOKED_AT:
            return False
        self._text += piece
        if len(self._text) < self._next:
            return False
        if len(self._text) > _EACH:
            self._next = 2 * len(self._text)
        whole = self._look(bytes(self._text))
        if whole is None:
            self.found, self.json = True, False
        return bool(whole)

    def _look(self, text: bytes) -> bool | None:
        encoding = self._encoding
        if encoding is None:
            if len(text) < 4 and _OF_ENCODINGS.search(text):
                return False
            encoding = detected(text)
        if encoding is not None:
            decode = getincrementaldecoder(encoding.codec)().decode
            try:
                text = decode(text[len(encoding.mark) :]).encode()
            except UnicodeError:
                return None
        number = _NUMBER.search(text, max(0, len(text) - _MOST_DIGITS))
        end = len(text) if number is None else number.start()
        try:
            _syntax(text[:end])
        except msgspec.DecodeError as mistake:
            return False if str(mistake) == _TRUNCATED else None
        except RecursionError:
            return False
        return True if end == len(text) else None


# A line ends with CRLF, LF or CR. An event ends with an empty line (WHATWG HTML, section 9.2.5).
_END_OF_EVENT = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINES = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")
_END_OF_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")
_DATA = re.compile(rb"data(?:: ?(.*))?\Z")
# Not anchored at the start of a line, which makes the search ten times as fast.
_NAME = re.compile(rb"(event: ?)([^\r\n]*)")
_CONVERTED = (b"data", b"event")
_BEFORE_A_LINE = (b"", b"\r", b"\n")


class EventStream(ConvertedStream):
    """Converts each event of an event stream as soon as it is complete."""

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
            # Comments keep a connection alive, and `retry` takes effect at once. Lines before the
            # first `data` or `event` line are therefore sent before the event is complete.
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
        # The end of an event has up to four bytes, and its last bytes may not have arrived yet.
        self._searched = max(0, len(self._begun) - 3)
        self._bound(self._begun)
        return b"".join(done)

    def finish(self, step: Step = no_step) -> bytes:
        """Convert the last event, which does not end with an empty line, and return it.

        The standard requires receivers to discard such an event, but many clients accept it.
        """
        rest, self._begun = bytes(self._begun), bytearray()
        return self._event(rest, step)

    def _event(self, event: bytes, step: Step) -> bytes:
        self._bound(event)
        if len(event) > self._lines < _count_lines(event):
            raise DecodedTooLargeError(f"an event of more than {self._lines} lines")
        # Do not store the lines. Each would need many times the memory of its bytes.
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
