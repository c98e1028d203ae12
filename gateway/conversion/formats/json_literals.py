"""NaN and Infinity in JSON, which RFC 8259 lacks and some encoders write.

During a conversion, each is replaced by a text that no body has, so that it moves with its field.
"""

import re

from gateway.conversion.conversion_error import ConversionError

# Strings are matched as a whole, so that no word inside one is replaced.
_WORDS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b', re.DOTALL)
MARK = b"\xf4\x8f\xbf\xbd"
"""What stands before such a word while it is a text: U+10FFFD, a private character."""
_REPLACED = re.compile(rb'"%b(-?Infinity|NaN)"' % MARK)
# A search holds up other threads: about a millisecond for so many bytes.
_MOST = 1024 * 1024


def replace(body: bytes) -> bytes | None:
    """Return a body with each such word replaced; None if it has none, or is large."""
    if len(body) > _MOST or MARK in body or not (b"NaN" in body or b"Infinity" in body):
        return None
    replaced = _WORDS.sub(_replaced, body)
    return None if replaced == body else replaced


def restore(body: bytes) -> bytes:
    """Return a body with the words put back.

    Raises:
        ConversionError: a change has made another text of one.
    """
    restored = _REPLACED.sub(rb"\1", body)
    if MARK in restored:
        raise ConversionError("NaN or Infinity, of which no change can make another text")
    return restored


def _replaced(match: re.Match[bytes]) -> bytes:
    word = match[0]
    return word if word.startswith(b'"') else b'"%b%b"' % (MARK, word)
