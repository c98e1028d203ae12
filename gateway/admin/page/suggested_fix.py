"""Suggested fixes of differences that a shadow found, to be copied into the configuration."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gateway.admin.shadow_report import DifferenceSample
from gateway.rollout.shadow import VersionShadow

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
_REDACTED = re.compile(r"(missing|null|boolean|text|bytes|array|header|object|number)\b")
# A field with more distinct words is free text, for which a map would be incomplete.
_MOST_WORDS = 5
# The types of samples, by the names that `type:` has for them.
_TYPES = {"text": "text", "number": "number", "boolean": "boolean"}


class SuggestedFix(NamedTuple):
    """The fixes of a difference, of which one is right.

    Attributes:
        ignore: the line `ignore` for the shadow, if the difference is known and harmless; empty for
            what cannot be ignored.
        change: the change between the two versions, if it is a difference between them; empty if
            the samples do not show one.
    """

    ignore: str
    change: str


def suggest_fix(
    field: str, samples: Iterable[DifferenceSample], shadow: VersionShadow | None, *, newer: bool
) -> SuggestedFix:
    """Return the fixes of a difference in a field.

    Args:
        field: as a shadow reports it: a JSON Pointer with `*`, also of a request; or `status`, or
            `header` with a name, for which there is nothing to copy.
        samples: of all fields.
        shadow: its configuration; None if it was removed.
        newer: whether the shadow uses the service of a newer version, from which changes lead.
    """
    place = field.removeprefix("request ")
    if not place.startswith("/"):
        return SuggestedFix("", "")
    known = sorted("/" + "/".join(place) for place in shadow.ignored.places) if shadow else []
    ignore = f"ignore: [{', '.join(json.dumps(each) for each in (*known, place))}]"
    own = [each for each in samples if each.field == field == place and newer]
    return SuggestedFix(ignore, _change(field, own) if own else "")


def _change(field: str, samples: Sequence[DifferenceSample]) -> str:
    path, sample = _path(field), samples[-1]
    old, new = _kind(sample.old), _kind(sample.new)
    if new == "missing":  # the newer version has it no more
        return f"remove: {{ field: {path}, value: {_value(sample.old)} }}"
    if old == "missing":
        return f"default: {{ field: {path}, value: {_value(sample.new)} }}"
    if (old == "array") != (new == "array"):
        return f"{'unwrap' if new == 'array' else 'wrap'}: {{ field: {path} }}"
    if old != new and old in _TYPES and new in _TYPES:
        return f"type: {{ field: {path}, newer: {_TYPES[new]}, older: {_TYPES[old]} }}"
    return _map(path, samples) if old == new == "text" else ""


def _map(path: str, samples: Sequence[DifferenceSample]) -> str:
    """Return the map of the words that samples show; none of texts of which each is another."""
    words = {each.new: each.old for each in samples}
    pairs = {(each.new, each.old) for each in samples}
    whole = not any("…" in text or not _is_plain(text) for pair in pairs for text in pair)
    if not whole or not len(words) == len(set(words.values())) == len(pairs) <= _MOST_WORDS:
        return ""
    values = ", ".join(f"{new}: {old}" for new, old in words.items())
    return f"map: {{ field: {path}, values: {{ {values} }} }}"


def _path(pointer: str) -> str:
    """Return a JSON Pointer as changes name fields, in quotes where YAML needs them."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]
    path = ""
    for step in steps:
        path += "[]" if step == "*" else f".{step}" if path else step
    return path if _PLAIN.match(path) else json.dumps(path, ensure_ascii=False)


def _is_plain(sample: str) -> bool:
    return _REDACTED.match(sample) is None


def _kind(sample: str) -> str:
    redacted = _REDACTED.match(sample)
    if redacted is not None:
        return redacted[1]
    first = sample[:1]
    kinds = {'"': "text", "[": "array", "{": "object", "t": "boolean", "f": "boolean"}
    return kinds.get(first, "number")


def _value(sample: str) -> str:
    """Return a value to write in the rules: that of the sample if it shows a short one."""
    shown = _is_plain(sample) and "…" not in sample and sample[:1] not in "[{"
    return sample if shown else "..."
