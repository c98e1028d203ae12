"""Encodings of JSON texts other than UTF-8, and byte order marks.

JSON is encoded in UTF-8 (RFC 8259, section 8.1). Older specifications allowed UTF-16 and UTF-32,
which can be detected from the first bytes (RFC 4627, section 3). Some senders name a single-byte or
regional encoding in the parameter `charset`. A converted body keeps its encoding.
"""

import codecs
import re
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

from gateway.http.cooperative import Step

_STEP = 64 * 1024
_MARKS = (  # UTF-32 before UTF-16: its little-endian mark begins with the mark of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Correct if the first two characters are ASCII, as in every JSON text except some strings.
_ZEROS = (
    (re.compile(rb"\0\0\0[^\0]"), "utf-32-be"),
    (re.compile(rb"[^\0]\0\0\0"), "utf-32-le"),
    (re.compile(rb"\0[^\0]"), "utf-16-be"),
    (re.compile(rb"[^\0]\0"), "utf-16-le"),
)
# Supported names of Python's codecs. Other codecs are not text encodings, or may be lossy.
_KNOWN = re.compile(
    r"(ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|cp932|euc_jp|euc_kr|gb2312|gbk|gb18030|big5)\Z"
)
_DETECTED = re.compile(r"utf-(8|16|32)(-[bl]e)?\Z")
_ESCAPES = "json-escapes"


class TextEncoding(NamedTuple):
    """The encoding of a text: the name of Python's codec, and the byte order mark of the text."""

    codec: str
    mark: bytes = b""

    def decoded(self, body: bytes, step: Step) -> bytes:
        """Convert a body to UTF-8 without a byte order mark; raise UnicodeDecodeError."""
        decode = codecs.getincrementaldecoder(self.codec)().decode
        made = BytesIO()
        for begin in range(len(self.mark), len(body), _STEP):
            step()
            made.write(decode(body[begin : begin + _STEP]).encode())
        made.write(decode(b"", True).encode())
        return made.getvalue()

    def encoded(self, text: bytes, step: Step) -> bytes:
        """Convert UTF-8 to this encoding. Unsupported characters become JSON escapes."""
        if self.codec == "utf-8":  # JSON is sent without a mark (RFC 8259, section 8.1)
            return text
        decode = codecs.getincrementaldecoder("utf-8")().decode
        made = BytesIO()
        made.write(self.mark)
        for begin in range(0, len(text), _STEP):
            step()
            made.write(decode(text[begin : begin + _STEP]).encode(self.codec, _ESCAPES))
        return made.getvalue()


def detected(body: bytes) -> TextEncoding | None:
    """Detect the encoding of a JSON text; None for UTF-8 without a byte order mark."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return TextEncoding(codec, mark)
    for zeros, codec in _ZEROS:
        if zeros.match(body):
            return TextEncoding(codec)
    return None


@lru_cache(maxsize=64)
def declared(charset: str) -> TextEncoding | None:
    """Return the encoding that a charset names.

    Returns None for UTF-8, UTF-16 and UTF-32, which are detected from the first bytes of a text.

    Raises:
        LookupError: The encoding is not supported.
    """
    name = codecs.lookup(charset).name
    if _DETECTED.match(name):
        return None
    if not _KNOWN.match(name):
        raise LookupError(charset)
    return TextEncoding(name)


def converted(
    encoding: TextEncoding, body: bytes, convert: Callable[[bytes], bytes], step: Step
) -> bytes:
    """Convert a body in another encoding; return the same object if no change alters it.

    Raises:
        UnicodeDecodeError: The body is not in the encoding.
    """
    text = encoding.decoded(body, step)
    made = convert(text)
    return body if made is text else encoding.encoded(made, step)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # A character outside the Basic Multilingual Plane needs two escapes (RFC 8259, section 7).
    units = error.object[error.start : error.end].encode("utf-16-be")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return "".join(f"\\u{pair}" for pair in pairs), error.end


codecs.register_error(_ESCAPES, _escaped)
