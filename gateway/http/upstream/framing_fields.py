"""The header fields of a response by which its connection goes: framing and keep-alive."""

from typing import Final

from gateway.base.headers import FieldNames, HeaderFields

_NAMES: Final = FieldNames({b"content-length", b"keep-alive", b"transfer-encoding"})
_KNOWN: Final = _NAMES.known
# What llhttp keeps behind a value, blanks and tabs, and no other octet of a value is below.
_SPACE: Final = 0x20
# Each field costs some microseconds, however short it is, and a link more; requests wait meanwhile.
MOST_FIELDS: Final = 2048
_DIGITS: Final = 18  # of a length; llhttp takes more
_TOO_MANY = f"it sent more than {MOST_FIELDS} fields together"

FRAMINGS: Final = {("1.1", b""), ("1.1", b"chunked,"), ("1.0", b"")}
"""The versions of HTTP and the codings of each (RFC 9112, section 6.1); llhttp takes more."""


class FramingError(Exception):
    """The fields of a head, or of a trailer section, are too many, or their length is too long."""


def framing(fields: HeaderFields) -> tuple[HeaderFields, int | None, bytes, bytes | None]:
    """Return the fields as `trimmed` does, and what they say of the body and of the connection.

    That is the declared length of the body, None without one; its transfer codings in lower case,
    each with a comma behind it; and the value of Keep-Alive, None without one.

    Args:
        fields: the fields as llhttp reports them.

    Raises:
        FramingError: there are too many, or the length has too many digits.
    """
    if fields[MOST_FIELDS:]:
        raise FramingError(_TOO_MANY)
    length, coding, keep_alive = None, b"", None
    blank = False
    for name, value in fields:
        try:
            known = _KNOWN[name]
        except KeyError:
            known = _NAMES.examine(name)
        if known == b"content-length":
            if value[_DIGITS:]:
                raise FramingError("a length of too many digits")
            length = int(value)
        elif known == b"keep-alive":
            keep_alive = value
        elif known is not None:
            coding += value.rstrip(b" ").lower() + b","  # llhttp misses chunked by a tab
        if value and value[-1] <= _SPACE:
            blank = True
    return trimmed(fields) if blank else fields, length, coding, keep_alive


def trimmed(fields: HeaderFields) -> HeaderFields:
    """Return fields without white space behind their values, which llhttp keeps.

    It is no part of a value (RFC 9110, section 5.5).

    Raises:
        FramingError: there are too many.
    """
    if fields[MOST_FIELDS:]:
        raise FramingError(_TOO_MANY)
    return [(name, value.rstrip(b" \t")) for name, value in fields]
