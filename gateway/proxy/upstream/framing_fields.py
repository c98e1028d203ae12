"""The header fields of a response by which its connection goes: framing and keep-alive."""

from gateway.core.field_names import FieldNames
from gateway.core.headers import HeaderFields

_NAMES = FieldNames({b"content-length", b"keep-alive", b"transfer-encoding"})
_KNOWN = _NAMES.known
_BLANKS = (b" ", b"\t")
# Each field costs some microseconds, however short it is, and a link more; requests wait meanwhile.
_MOST_FIELDS = 2048
_TOO_MANY = f"it sent more than {_MOST_FIELDS} fields together"

FRAMINGS = {("1.1", b""), ("1.1", b"chunked,"), ("1.0", b"")}
"""The versions of HTTP and the codings of each (RFC 9112, section 6.1); llhttp takes more."""


class TooManyFieldsError(Exception):
    """A head or a trailer section has too many fields."""


def framing(fields: HeaderFields) -> tuple[HeaderFields, HeaderFields]:
    """Return the fields as `trimmed` does, and those by which the connection goes as they came.

    The names of the latter are in lower case.

    Args:
        fields: the fields as llhttp reports them.

    Raises:
        TooManyFieldsError: there are too many.
    """
    if fields[_MOST_FIELDS:]:
        raise TooManyFieldsError(_TOO_MANY)
    found: HeaderFields = []
    blank = False
    for name, value in fields:
        try:
            known = _KNOWN[name]
        except KeyError:
            known = _NAMES.examine(name)
        if known is not None:
            found.append((known, value))
        if value.endswith(_BLANKS):
            blank = True
    return trimmed(fields) if blank else fields, found


def trimmed(fields: HeaderFields) -> HeaderFields:
    """Return fields without white space behind their values, which llhttp keeps.

    It is no part of a value (RFC 9110, section 5.5).

    Raises:
        TooManyFieldsError: there are too many.
    """
    if fields[_MOST_FIELDS:]:
        raise TooManyFieldsError(_TOO_MANY)
    return [(name, value.rstrip(b" \t")) for name, value in fields]
