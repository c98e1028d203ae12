r"""Placeholders that replace values which the JSON parser refuses, during a conversion.

Lone surrogates: escapes such as \ud800 without the other half of the pair. The grammar of JSON
allows them, but the behaviour of receivers is unpredictable (RFC 8259, section 8.2). Each is
replaced by a character of the last private-use plane.

NaN and Infinity: they are not part of RFC 8259, but some encoders write them. Each is replaced by a
string that does not occur elsewhere in the body. The value can then move with its field.
"""

import re
from functools import cache

from gateway.conversion.conversion_error import ConversionError

_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# To replace a surrogate takes one or two microseconds. So many surrogates take as long as the rest
# of a conversion.
_FEW = 500
_LONE = re.compile(rb"%b(?!%b)|(?<!%b)%b" % (_HIGH, _LOW, _HIGH, _LOW))
_BACKSLASH = rb"\\"
_ASIDE = b"\xff"  # a byte that never occurs in UTF-8
# The first placeholder is U+100000. Each spelling of a surrogate, with its combination of
# upper-case and lower-case digits, has its own placeholder.
_PLANE = 0x100000
_SURROGATES = 0x800
_IN_PLANE = re.compile(rb"\xf4[\x80-\x87][\x80-\xbf]{2}")
_ESCAPED_PLANE = re.compile(rb"\\u[dD][bB][cdCD][0-9a-fA-F]%b" % _LOW)

# Strings are matched as a whole, so that NaN or Infinity inside a string is not replaced.
_WORDS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b', re.DOTALL)
MARK = b"\xf4\x8f\xbf\xbd"
"""The prefix of the strings that replace NaN and Infinity: U+10FFFD, a private-use character."""
_MARKED = re.compile(rb'"%b(-?Infinity|NaN)"' % MARK)
# The maximum bytes of a body to search. The search blocks other threads for about a millisecond.
_MOST = 1024 * 1024


def many_surrogates(body: bytes) -> bool:
    return body.count(rb"\ud") + body.count(rb"\uD") > _FEW


def replace_surrogates(body: bytes) -> bytes | None:
    """Replace each lone surrogate in a body by a placeholder; return None if it has none.

    Raises:
        ConversionError: The body already contains characters of the private plane 16.
    """
    if _ASIDE in body:
        return None
    # Replace escaped backslashes, so that every remaining backslash begins an escape.
    text = body.replace(_BACKSLASH, _ASIDE)
    replaced = _LONE.sub(lambda match: _stand_in(match[0]), text)
    if replaced == text:
        return None
    if has_surrogates(text) or _ESCAPED_PLANE.search(text):
        raise ConversionError(
            "half of a surrogate pair (RFC 8259, section 8.2) and a character of the private"
            " plane 16, which cannot both be kept"
        )
    return replaced.replace(_ASIDE, _BACKSLASH)


def restore_surrogates(body: bytes) -> bytes:
    return _IN_PLANE.sub(lambda match: _escape(match[0]), body)


def has_surrogates(text: bytes) -> bool:
    return _IN_PLANE.search(text) is not None


@cache  # the cache is bounded: there are 32,768 different escapes
def _stand_in(escape: bytes) -> bytes:
    digits = escape[2:].decode()
    capitals = sum(digit.isupper() << place for place, digit in enumerate(digits))
    return chr(_PLANE + capitals * _SURROGATES + int(digits, 16) - 0xD800).encode()


@cache
def _escape(character: bytes) -> bytes:
    capitals, surrogate = divmod(ord(character.decode()) - _PLANE, _SURROGATES)
    digits = f"{0xD800 + surrogate:04x}"
    spelled = (
        digit.upper() if capitals >> place & 1 else digit for place, digit in enumerate(digits)
    )
    return b"\\u" + "".join(spelled).encode()


def replace_literals(body: bytes) -> bytes | None:
    """Replace NaN and Infinity in a body by strings.

    Returns None if the body has neither, is too large, or already contains MARK.
    """
    if len(body) > _MOST or MARK in body or not (b"NaN" in body or b"Infinity" in body):
        return None
    replaced = _WORDS.sub(_marked, body)
    return None if replaced == body else replaced


def restore_literals(body: bytes) -> bytes:
    """Restore the literals; raise ConversionError if a change has modified such a string."""
    restored = _MARKED.sub(rb"\1", body)
    if MARK in restored:
        raise ConversionError("NaN or Infinity, which no change can convert")
    return restored


def _marked(match: re.Match[bytes]) -> bytes:
    word = match[0]
    return word if word.startswith(b'"') else b'"%b%b"' % (MARK, word)
