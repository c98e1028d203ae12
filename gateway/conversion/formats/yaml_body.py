"""Conversion of YAML bodies: `application/apply-patch+yaml` of Kubernetes, which may be JSON.

A YAML body is read as JSON, and converted as JSON. JSON is also valid YAML, so an altered body is
sent as JSON. Plain scalars have the values that Kubernetes reads (go-yaml 2): `yes` and `on` are
true, `0644` is octal, and dates are strings.
"""

import re
from collections.abc import Iterator
from json import dumps

# PyYAML: its events come one by one from the C scanner of libyaml, so that the depth is limited.
import yaml

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import json_body
from gateway.conversion.formats.json_body import NotJsonError
from gateway.conversion.message import Message
from gateway.conversion.scalars import NUMBER_TEXT
from gateway.http.cooperative import Step, no_step

# Kubernetes refuses larger requests. The scanner holds the interpreter lock for a whole scalar.
_MOST_BYTES = 3 * 1024 * 1024
_DEEPEST = 64
# The events of a value take some microseconds. Large custom resources have 50,000 values.
_MOST_VALUES = 100_000
_MOST_DIGITS = 400
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), "null"),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), "true"),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), "false"),
}
_WHOLE = re.compile(r"([-+]?)(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)\Z")
_FLOAT = re.compile(r"([-+]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?\Z")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)\Z")


def convert_yaml(
    body: bytes, conversion: BodyConversion, message: Message | None, step: Step = no_step
) -> bytes:
    """Convert a YAML or JSON body; return the same object if no change alters it.

    Raises:
        ConversionError: The body is not one YAML document that JSON can represent, is too large or
            nested too deeply, or does not fit the declared changes.
    """
    if body.lstrip(b" \t\r\n").startswith((b"{", b"[")):
        try:
            return json_body.convert(body, conversion, message, step)
        except NotJsonError:
            if message is not None:
                message.restore()
    text = json_of(body, step)
    made = json_body.convert(text, conversion, message, step)
    return body if made is text else made


def json_of(body: bytes, step: Step = no_step) -> bytes:
    """Return a YAML document as JSON; raises NotJsonError, with the line of the mistake."""
    if len(body) > _MOST_BYTES:
        raise NotJsonError(f"a YAML body of more than {_MOST_BYTES} bytes")
    try:
        return "".join(_pieces(body, step)).encode()
    except yaml.YAMLError as error:
        problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
        line = "" if mark is None else f"line {mark.line + 1}: "
        raise NotJsonError(f"not YAML: {line}{problem or 'a character is not allowed'}") from None


def _pieces(body: bytes, step: Step) -> Iterator[str]:
    # One count for each open array or object: the number of its elements, or of keys and values.
    counts: list[int] = []
    maps: list[bool] = []
    documents = values = 0
    for event in yaml.parse(body, Loader=yaml.CSafeLoader):
        step()
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if documents > 1:
            raise _refused(event, "a second document")
        if isinstance(event, yaml.CollectionEndEvent):
            counts.pop()
            yield "}" if maps.pop() else "]"
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        values += 1
        if values > _MOST_VALUES:
            raise _refused(event, f"more than {_MOST_VALUES} values")
        _check(event, len(counts))
        is_key = bool(maps) and maps[-1] and counts[-1] % 2 == 0
        if counts:
            if counts[-1]:
                yield ":" if maps[-1] and not is_key else ","
            counts[-1] += 1
        if isinstance(event, yaml.ScalarEvent):
            yield _key(event) if is_key else _scalar(event)
            continue
        if is_key:
            raise _refused(event, "a key that is a list or an object")
        counts.append(0)
        maps.append(isinstance(event, yaml.MappingStartEvent))
        yield "{" if maps[-1] else "["
    if not documents:
        yield "null"


def _check(event: yaml.NodeEvent, depth: int) -> None:
    if event.anchor is not None:  # aliases can multiply the size of a document
        raise _refused(event, "an anchor or alias")
    if getattr(event, "tag", None) is not None:
        raise _refused(event, "a tag")
    if depth >= _DEEPEST:
        raise _refused(event, f"more than {_DEEPEST} levels")


def _refused(event: yaml.Event, found: str) -> NotJsonError:
    mark = event.start_mark
    return NotJsonError(f"YAML with {found}, in line {mark.line + 1 if mark else 1}")


def _key(event: yaml.ScalarEvent) -> str:
    text = _scalar(event)
    if text == "null" or (event.value == "<<" and event.implicit[0]):
        raise _refused(event, "a key that JSON does not have")
    return text if text.startswith('"') else f'"{text}"'


def _scalar(event: yaml.ScalarEvent) -> str:
    text: str = event.value
    if not event.implicit[0]:  # the scalar is quoted
        return dumps(text)
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _MOST_DIGITS or NUMBER_TEXT.match(text):
        return text if len(text) <= _MOST_DIGITS else dumps(text)
    if _NO_NUMBER.match(text):
        raise _refused(event, "a number that JSON does not have")
    if whole := _WHOLE.match(text):
        digits = whole[2].replace("_", "")
        octal = digits[1:] if digits[0] == "0" and digits[1:].isdigit() else ""
        try:
            number = int(octal, 8) if octal else int(digits, 0)
        except ValueError:  # a number such as 089 or 0x
            raise _refused(event, "an ambiguous number") from None
        return f"-{number}" if whole[1] == "-" else str(number)
    if parts := _FLOAT.match(text):
        sign, before, behind, exponent = parts.groups()
        made = f"{'-' * (sign == '-')}{before.lstrip('0') or '0'}"
        return made + (f".{behind}" if behind else "") + (f"e{exponent}" if exponent else "")
    return dumps(text)
