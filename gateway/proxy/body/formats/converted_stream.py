"""What formats share that are streams of JSON documents, each converted when it is whole."""

from abc import ABC, abstractmethod
from collections.abc import Callable

DocumentConversion = Callable[[bytes], bytes]
"""A function that returns one converted JSON document; it may raise ConversionError."""


class ConvertedStream(ABC):
    """Converts a stream of documents, piece by piece, holding back only what is incomplete.

    Args:
        convert: Returns one converted document; it may raise ConversionError.
        most: The maximum number of bytes of a part of the stream that has one document.
    """

    def __init__(self, convert: DocumentConversion, most: int) -> None:
        self._convert = convert
        self._most = most
        self._begun = bytearray()

    @property
    def held(self) -> int:
        """The number of bytes that are held back."""
        return len(self._begun)

    @abstractmethod
    def feed(self, data: bytes) -> bytes:
        """Return what the data completes, converted; may raise ConversionError."""

    @abstractmethod
    def finish(self) -> bytes:
        """Return what is left at the end of the stream; may raise ConversionError."""
