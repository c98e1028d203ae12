r"""Lone surrogates in JSON: escapes such as \ud800 without the other half of the pair.

The grammar of JSON allows them, and the behaviour of receivers is unpredictable (RFC 8259, section
8.2). Unicode text cannot contain them, so a UTF-8 parser refuses the whole body. A conversion has
to keep them unchanged: during the conversion, each is replaced by a placeholder, a character of the
last private-use plane.
"""

import re
from functools import cache

from gateway.conversion.conversion_error import ConversionError

_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# Each half of a pair costs a microsecond or two: so many, as long as it takes to convert the rest.
_FEW = 500
_LONE = re.compile(rb"%b(?!%b)|(?<!%b)%b" % (_HIGH, _LOW, _HIGH, _LOW))
_BACKSLASH = rb"\\"
_ASIDE = b"\xff"  # a byte that never occurs in UTF-8
# The placeholders start at U+100000: one per surrogate and per upper or lower case of its digits.
_PLANE = 0x100000
_SURROGATES = 0x800
_IN_PLANE = re.compile(rb"\xf4[\x80-\x87][\x80-\xbf]{2}")
_ESCAPED_PLANE = re.compile(rb"\\u[dD][bB][cdCD][0-9a-fA-F]%b" % _LOW)


def many(body: bytes) -> bool:
    """Return whether a body has so many halves of pairs that it is slow to convert."""
    return body.count(rb"\ud") + body.count(rb"\uD") > _FEW


def replace(body: bytes) -> bytes | None:
    """Return a body with each lone surrogate replaced by a placeholder; None if it has none.

    Raises:
        ConversionError: the body already contains characters of the placeholders' plane.
    """
    if _ASIDE in body:
        return None
    # Once escaped backslashes are set aside, every other backslash begins an escape.
    text = body.replace(_BACKSLASH, _ASIDE)
    replaced = _LONE.sub(_replaced, text)
    if replaced == text:
        return None
    if is_replaced(text) or _ESCAPED_PLANE.search(text):
        raise ConversionError(
            "half of a surrogate pair (RFC 8259, section 8.2) and a character of the private"
            " plane 16, which cannot both be kept"
        )
    return replaced.replace(_ASIDE, _BACKSLASH)


def restore(body: bytes) -> bytes:
    """Return a body with each placeholder replaced by its surrogate."""
    return _IN_PLANE.sub(_restored, body)


def is_replaced(text: bytes) -> bool:
    """Whether a part of a body contains placeholders."""
    return _IN_PLANE.search(text) is not None


def _replaced(match: re.Match[bytes]) -> bytes:
    return _stand_in(match[0])


def _restored(match: re.Match[bytes]) -> bytes:
    return _escape(match[0])


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
