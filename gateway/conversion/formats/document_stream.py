"""What formats share that are streams of JSON documents, each converted when it is whole."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from io import BytesIO

from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.turns.thread_pace import Step, no_step

DocumentConversion = Callable[[bytes, Step], bytes]
"""A function that returns one converted JSON document; it may raise ConversionError."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ConvertedStream(ABC):
    """Converts a stream of documents, piece by piece, holding back only what is incomplete.

    It raises ConversionError for a document that cannot be converted, and DecodedTooLargeError for
    a part that is too large, as soon as that is known.

    Args:
        convert: Returns one converted document; it may raise either.
        most: The maximum number of bytes of a part of the stream that has one document.
        part: What such a part is called, with its article.
    """

    def __init__(self, convert: DocumentConversion, most: int, part: str) -> None:
        self._convert = convert
        self._most = most
        self._part = part
        self._begun = bytearray()
        self._at_start = True

    @property
    def held(self) -> int:
        """The number of bytes that are held back."""
        return len(self._begun)

    def feed(self, data: bytes, step: Step = no_step) -> bytes:
        """Return what the data completes, converted; `step` is called between the steps.

        A byte order mark at the start of the stream passes: it is not part of a document.
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
        """Return what the data completes, converted; see `feed`."""

    @abstractmethod
    def finish(self, step: Step = no_step) -> bytes:
        """Return what is left at the end of the stream, converted; see `feed`."""

    def _bound(self, part: bytes | bytearray) -> None:
        """Raise DecodedTooLargeError for a part, perhaps an incomplete one, that is too large."""
        if len(part) > self._most:
            raise DecodedTooLargeError(f"{self._part} of more than {self._most} bytes")


def converted_within(
    text: bytes, around: bytes, convert: DocumentConversion, step: Step = no_step
) -> bytes:
    """Return a text with its document converted; the bytes `around` it are those that stay."""
    document = text.strip(around)
    if not document or (converted := convert(document, step)) == document:
        return text
    begin = text.index(document)
    return text[:begin] + converted + text[begin + len(document) :]


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
