"""JSON bodies: parsed only as deep as a conversion looks, so that nothing else can change.

What no change touches stays a slice of the original bytes: every digit of a number, the order of
keys and unknown fields pass as they came, and converting is fast.
"""

import re

# msgspec: the JSON library that can leave values unparsed (`Raw`), and the fastest that does.
import msgspec

from gateway.core.conversion.chain import Conversion
from gateway.core.conversion.document import Document, Unconvertible
from gateway.core.differences import number

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_scalar = msgspec.json.Decoder()
_compared = msgspec.json.Decoder(float_hook=number)
_encoder = msgspec.json.Encoder()
# What a value begins with, behind the white space of RFC 8259, section 2.
_BRACKET = re.compile(rb"[ \t\n\r]*([{\[]?)")


def convert(body: bytes, conversion: Conversion) -> bytes:
    """Return a JSON body, converted.

    Raises:
        Unconvertible: not JSON (RFC 8259), nested too deep, or not what the declarations say.
    """
    try:
        body.decode()  # a sealed value is not looked into, so its text is checked here
        return _encoder.encode(conversion.convert(msgspec.Raw(body), _open))
    except UnicodeDecodeError:
        raise Unconvertible("not UTF-8, which JSON is (RFC 8259, section 8.1)") from None
    except msgspec.MsgspecError as error:
        raise Unconvertible(f"not JSON: {error}") from None
    except RecursionError:
        raise Unconvertible("nested too deep") from None


def parse(body: bytes) -> Document:
    """Return a JSON body as it is compared, or the body itself where it is no JSON."""
    try:
        return _compared.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return body


def _open(value: Document) -> Document:
    if not isinstance(value, msgspec.Raw):
        return value
    begin = _BRACKET.match(memoryview(value))
    assert begin is not None  # it matches anything
    bracket = begin[1]
    if bracket == b"{":
        return _object.decode(value)
    if bracket == b"[":
        return _array.decode(value)
    return _scalar.decode(value)
