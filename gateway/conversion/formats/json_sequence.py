"""Conversion of JSON texts that follow each other: `application/json-seq` (RFC 7464).

Each ends with a line feed and may have others inside. A record separator may begin it. Kubernetes
sends such texts, without the separators, as `application/json`.
"""

import re
from codecs import getincrementaldecoder
from io import BytesIO

import msgspec

from gateway.conversion.formats.document_stream import (
    ConvertedStream,
    DocumentConversion,
    converted_within,
)
from gateway.conversion.formats.text_encoding import TextEncoding, detected
from gateway.http.turns.thread_pace import Step, no_step

_AROUND = b" \t\r\n\x1e"
_INK = re.compile(rb"[^ \t\r\n\x1e]")
_MARK = re.compile(rb'\\.|["\[\]{}\n\x1e]', re.DOTALL)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NO_MARKS = bytes(sorted({*range(256)} - {*b'"[]{}\n'}))
_SEPARATOR, _BACKSLASH = b"\x1e", b"\\"
# For how many bytes other threads wait at a time.
_STEP = 64 * 1024
# Pairs of brackets are removed from inside to outside, which is slow for deeply nested texts.
_LEVELS = 32


class TextEnds:
    """Finds the line feeds that end JSON texts, however the pieces of the texts are cut.

    A text is not checked. A line feed in a string is not JSON, so it ends the string.

    Attributes:
        blank: Whether the text so far has nothing but white space.
        container: Whether the text so far begins as an object or an array.
    """

    def __init__(self) -> None:
        self.blank = True
        self.container = False
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def find(self, piece: bytes, begin: int = 0, step: Step = no_step) -> int | None:
        """Return where the current text ends in the piece, from `begin` on; None if it goes on."""
        at = begin
        if self.blank:
            ink = _INK.search(piece, begin)
            at = len(piece) if ink is None else ink.start()
            if (line := piece.find(b"\n", begin, at)) >= 0:
                return line + 1  # a blank line is a text of its own
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
        """Return whether the text goes on behind a window, and skip that, if it is known fast."""
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
    """Converts the texts of a stream, each as it becomes complete."""

    def __init__(self, convert: DocumentConversion, most: int) -> None:
        super().__init__(convert, most, "a document")
        self._ends = TextEnds()

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
        """Return the last text, which has no end."""
        text, self._begun, self._ends = bytes(self._begun), bytearray(), TextEnds()
        self._bound(text)
        return converted_within(text, _AROUND, self._convert, step)


class SeriesSearch:
    """Finds out whether a JSON body that is still coming is a series of JSON texts.

    It is one if an object or an array ends with a line feed, and more follows or is to follow.

    Attributes:
        pause: The seconds without a byte after which more is to follow; None waits for more.
        found: Whether the body is a series, as far as is known.
    """

    def __init__(self, pause: float | None = None) -> None:
        self.pause = pause
        self.found = False
        self._ends: TextEnds | None = TextEnds()
        self._ended = False

    def ends_text(self, piece: bytes) -> bool:
        """Add a piece; return whether a text has ended, with it or before, and nothing follows."""
        begin = 0
        if b"\0" in piece:  # UTF-16 or UTF-32, whose texts are not found
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


# A number at the end of what has come, which may go on.
_NUMBER = re.compile(rb"-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?)?\Z")
_MOST_DIGITS = 64
_TRUNCATED = "Input data was truncated"
# The bytes that begin a JSON text in UTF-16 or UTF-32, or a byte order mark. The encoding is known
# when four bytes have come.
_OF_ENCODINGS = re.compile(rb"[\0\xef\xfe\xff]")
# Each look takes time for all that has come. After so many bytes, what comes has to double first;
# a text of more than these at the end is JSON for all that matters.
_EACH, _LOOKED_AT = 64 * 1024, 1024 * 1024
_syntax = msgspec.json.Decoder(msgspec.Raw).decode


class TextSearch:
    """Finds out whether a text that is still coming is no JSON; see `SeriesSearch`.

    Args:
        encoding: The encoding that the charset of the text names; None for none.
        pause: The seconds without a byte after which JSON that is complete is taken for all of it;
            None waits for more.

    Attributes:
        found: Whether the text is not JSON, or is followed by more after the pause.
        json: Whether what has come may be JSON.
    """

    def __init__(self, encoding: TextEncoding | None, pause: float | None) -> None:
        self.pause = pause
        self.found = False
        self.json = True
        self._encoding = encoding
        self._text = bytearray()
        self._next = 0

    def ends_text(self, piece: bytes) -> bool:
        """Add a piece; return whether what has come is JSON that is complete."""
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
        """Return whether a text is complete JSON; None if it does not begin as JSON does."""
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
