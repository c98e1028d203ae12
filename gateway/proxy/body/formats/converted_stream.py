"""What formats share that are streams of JSON documents, each converted when it is whole."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from gateway.proxy.body.content_coding import DecodedTooLargeError
from gateway.proxy.turns.thread_pace import Step, no_step

DocumentConversion = Callable[[bytes, Step], bytes]
"""A function that returns one converted JSON document; it may raise ConversionError."""


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

    @property
    def held(self) -> int:
        """The number of bytes that are held back."""
        return len(self._begun)

    @abstractmethod
    def feed(self, data: bytes, step: Step = no_step) -> bytes:
        """Return what the data completes, converted; `step` is called between the steps."""

    @abstractmethod
    def finish(self, step: Step = no_step) -> bytes:
        """Return what is left at the end of the stream; see `feed`."""

    def _bound(self, part: bytes | bytearray) -> None:
        """Raise DecodedTooLargeError for a part, perhaps an incomplete one, that is too large."""
        if len(part) > self._most:
            raise DecodedTooLargeError(f"{self._part} of more than {self._most} bytes")
