"""The header fields of a response by which its connection goes: framing and keep-alive."""

from gateway.core.field_names import FieldNames
from gateway.core.headers import HeaderFields

_NAMES = FieldNames({b"content-length", b"keep-alive", b"transfer-encoding"})
_KNOWN = _NAMES.known
_BLANKS = (b" ", b"\t")


def framing(fields: HeaderFields) -> tuple[HeaderFields, bool]:
    """Return the fields by which a connection goes, and whether `trimmed` would change any field.

    Args:
        fields: the fields as llhttp reports them. It keeps white space behind a value, and so do
            those that are returned, with their names in lower case.
    """
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
    return found, blank


def trimmed(fields: HeaderFields) -> HeaderFields:
    """Return fields without white space behind values, no part of them (RFC 9110, section 5.5)."""
    return [(name, value.rstrip(b" \t")) for name, value in fields]
