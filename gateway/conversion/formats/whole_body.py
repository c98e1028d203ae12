"""Conversion of whole bodies: one function for each format that is not a stream."""

from collections.abc import Callable, Mapping

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import json_body, text_encoding
from gateway.conversion.formats.body_format import BodyFormat
from gateway.conversion.formats.form_body import convert_form
from gateway.conversion.formats.json_patch import convert_patch
from gateway.conversion.formats.text_encoding import TextEncoding
from gateway.conversion.formats.yaml_body import convert_yaml
from gateway.conversion.message import Message
from gateway.http.cooperative import Step

WholeConversion = Callable[[bytes, BodyConversion, Message | None, Step], bytes]
"""A function that converts a whole body and its message.

It returns the same bytes object if no change alters the body. It may raise ConversionError, or an
error raised by the Step."""


def in_encoding(encoding: TextEncoding, convert: WholeConversion) -> WholeConversion:
    def convert_encoded(
        body: bytes, conversion: BodyConversion, message: Message | None, step: Step
    ) -> bytes:
        def convert_text(text: bytes) -> bytes:
            return convert(text, conversion, message, step)

        try:
            return text_encoding.converted(encoding, body, convert_text, step)
        except UnicodeDecodeError:
            if encoding.codec == "ascii":  # the body may be UTF-8, which is a superset of ASCII
                return convert_text(body)
            raise json_body.NotJsonError(f"not {encoding.codec}, as its charset says") from None

    return convert_encoded


def _convert_patch(
    body: bytes, conversion: BodyConversion, message: Message | None, step: Step
) -> bytes:
    encoding = text_encoding.detected(body)
    convert = convert_patch if encoding is None else in_encoding(encoding, convert_patch)
    return convert(body, conversion, message, step)


CONVERSIONS: Mapping[BodyFormat, WholeConversion] = {
    BodyFormat.JSON: json_body.convert,
    BodyFormat.MERGE_PATCH: json_body.convert,
    BodyFormat.TEXT: json_body.convert,
    BodyFormat.UNTYPED: json_body.convert,
    BodyFormat.JSON_PATCH: _convert_patch,
    BodyFormat.FORM: convert_form,
    BodyFormat.YAML: convert_yaml,
}
