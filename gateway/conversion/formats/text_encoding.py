"""The encodings of JSON texts other than UTF-8, and the mark that may stand before one.

JSON is UTF-8 (RFC 8259, section 8.1). Older specifications allowed UTF-16 and UTF-32, which the
first bytes show (RFC 4627, section 3), and some senders use an encoding of one byte or of a region,
which the parameter `charset` of the media type names. What is converted is sent in the encoding
that it came in.
"""

import codecs
import re
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

from gateway.http.cooperative import Step

# Bytes of one step, during which other threads wait.
_STEP = 64 * 1024
_MARKS = (  # that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Where the first two characters are in ASCII, as those of JSON are, but for those of a text.
_ZEROS = (
    (re.compile(rb"\0\0\0[^\0]"), "utf-32-be"),
    (re.compile(rb"[^\0]\0\0\0"), "utf-32-le"),
    (re.compile(rb"\0[^\0]"), "utf-16-be"),
    (re.compile(rb"[^\0]\0"), "utf-16-le"),
)
# The names of Python's codecs. Others are no encodings of texts, or may not be written back.
_KNOWN = re.compile(
    r"(ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|cp932|euc_jp|euc_kr|gb2312|gbk|gb18030|big5)\Z"
)
_DETECTED = re.compile(r"utf-(8|16|32)(-[bl]e)?\Z")
_ESCAPES = "json-escapes"


class TextEncoding(NamedTuple):
    """An encoding of texts, by the name of Python's codec; and the mark before this text."""

    codec: str
    mark: bytes = b""

    def decoded(self, body: bytes, step: Step) -> bytes:
        """Return a body in UTF-8; raises UnicodeDecodeError."""
        decode = codecs.getincrementaldecoder(self.codec)().decode
        made = BytesIO()
        for begin in range(len(self.mark), len(body), _STEP):
            step()
            made.write(decode(body[begin : begin + _STEP]).encode())
        made.write(decode(b"", True).encode())
        return made.getvalue()

    def encoded(self, text: bytes, step: Step) -> bytes:
        """Return a text of UTF-8 in the encoding; a character that it lacks becomes an escape."""
        if self.codec == "utf-8":  # which has no mark (RFC 8259, section 8.1)
            return text
        decode = codecs.getincrementaldecoder("utf-8")().decode
        made = BytesIO()
        made.write(self.mark)
        for begin in range(0, len(text), _STEP):
            step()
            made.write(decode(text[begin : begin + _STEP]).encode(self.codec, _ESCAPES))
        return made.getvalue()


def detected(body: bytes) -> TextEncoding | None:
    """Return the encoding that the first bytes of a JSON text show; None for UTF-8 without mark."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return TextEncoding(codec, mark)
    for zeros, codec in _ZEROS:
        if zeros.match(body):
            return TextEncoding(codec)
    return None


@lru_cache(maxsize=64)
def declared(charset: str) -> TextEncoding | None:
    """Return the encoding of a name; None for those that the first bytes show.

    Raises:
        LookupError: The encoding is not known.
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
    """Return a converted body in its encoding: the very object that is given if nothing alters it.

    Raises:
        UnicodeDecodeError: The body is not in the encoding.
    """
    text = encoding.decoded(body, step)
    made = convert(text)
    return body if made is text else encoding.encoded(made, step)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # A character beyond the first plane is two escapes (RFC 8259, section 7).
    units = error.object[error.start : error.end].encode("utf-16-be")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return "".join(f"\\u{pair}" for pair in pairs), error.end


codecs.register_error(_ESCAPES, _escaped)
