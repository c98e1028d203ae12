"""Suggested fixes: the change, or the line `ignore`, that removes a difference of a shadow."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from gateway.base.overrides import VersionKey
from gateway.conversion.field_path import tokens_of
from gateway.rollout.shadow import VersionShadow
from gateway.usage.totals import Totals


class DifferenceSample(msgspec.Struct):
    """One difference between the response to a client and the response of the shadow.

    Attributes:
        old: the value in the client's response. For a request field, the status of the response.
        new: the value in the shadow's response. For a request field, the reason why the other
            version would refuse the request.
    """

    endpoint: str
    field: str
    old: str
    new: str
    request_id: str
    method: str
    path: str


def shadow_samples(totals: Totals, key: VersionKey) -> Iterator[DifferenceSample]:
    """Yield the samples of a version's shadow, the latest last."""
    for each in totals.samples.get(("differences", *key), ()):
        document = {**msgspec.to_builtins(each.document), **each.request}
        yield msgspec.convert(document, DifferenceSample)


_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
_REDACTED = re.compile(r"(missing|null|boolean|text|bytes|array|header|object|number)\b")
# A field with more distinct words is probably free text, for which a map would be incomplete.
_MOST_WORDS = 5
# The types between which the change `type` converts.
_TYPES = ("text", "number", "boolean")


class SuggestedFix(NamedTuple):
    """Two possible fixes for a difference; an empty string if there is no suggestion.

    Attributes:
        ignore: the line `ignore` for the shadow. It is the right fix if the difference is harmless.
        change: a change between the two versions. It is the right fix if the versions really
            differ.
    """

    ignore: str
    change: str


def suggest_fix(
    field: str, samples: Iterable[DifferenceSample], shadow: VersionShadow | None, *, newer: bool
) -> SuggestedFix:
    """Suggest fixes for a difference in a field, to copy into the configuration.

    Args:
        field: a JSON Pointer with `*` for array items, with the prefix `request ` for a field of a
            request. For `status`, and `header` with a name, no fix is suggested.
        newer: whether the shadow uses the service of a newer version. Only then can a change be
            suggested.
    """
    place = field.removeprefix("request ")
    if not place.startswith("/"):
        return SuggestedFix("", "")
    known = sorted("/" + "/".join(place) for place in shadow.ignored.places) if shadow else []
    ignore = f"ignore: [{', '.join(json.dumps(each) for each in (*known, place))}]"
    own = [each for each in samples if each.field == field == place and newer]
    return SuggestedFix(ignore, _suggested_change(field, own) if own else "")


def _suggested_change(field: str, samples: Sequence[DifferenceSample]) -> str:
    path, sample = _path(field), samples[-1]
    old, new = _kind(sample.old), _kind(sample.new)
    if new == "missing":  # the newer version no longer has the field
        return f"remove: {{ field: {path}, value: {_value(sample.old)} }}"
    if old == "missing":
        return f"default: {{ field: {path}, value: {_value(sample.new)} }}"
    if (old == "array") != (new == "array"):
        return f"{'unwrap' if new == 'array' else 'wrap'}: {{ field: {path} }}"
    if old != new and old in _TYPES and new in _TYPES:
        return f"type: {{ field: {path}, newer: {new}, older: {old} }}"
    return _map(path, samples) if old == new == "text" else ""


def _map(path: str, samples: Sequence[DifferenceSample]) -> str:
    """Return a `map` change for the word pairs in samples; empty if they look like free text.

    The result is also empty if a sample is truncated or redacted, or if the pairs are not
    one-to-one.
    """
    words = {each.new: each.old for each in samples}
    pairs = {(each.new, each.old) for each in samples}
    whole = not any("…" in text or _REDACTED.match(text) for pair in pairs for text in pair)
    if not whole or not len(words) == len(set(words.values())) == len(pairs) <= _MOST_WORDS:
        return ""
    values = ", ".join(f"{new}: {old}" for new, old in words.items())
    return f"map: {{ field: {path}, values: {{ {values} }} }}"


def _path(pointer: str) -> str:
    """Convert a JSON Pointer to the field syntax of changes, quoted if YAML requires it."""
    path = ""
    for step in tokens_of(pointer):
        path += "[]" if step == "*" else f".{step}" if path else step
    return path if _PLAIN.match(path) else json.dumps(path, ensure_ascii=False)


def _kind(sample: str) -> str:
    redacted = _REDACTED.match(sample)
    if redacted is not None:
        return redacted[1]
    kinds = {'"': "text", "[": "array", "{": "object", "t": "boolean", "f": "boolean"}
    return kinds.get(sample[:1], "number")


def _value(sample: str) -> str:
    """Return a sample as a value for the configuration; `...` if it is hidden or not a scalar."""
    hidden = _REDACTED.match(sample) or "…" in sample or sample[:1] in "[{"
    return "..." if hidden else sample
