"""Hints: the change, as gateway.yaml would declare it, that probably mends a finding."""

import json
import re

from gateway.verify.claim import Claim, MessagePart
from gateway.verify.openapi.body_shape import spelt
from gateway.verify.openapi.schema_fields import Declared, declared
from gateway.verify.proof import Finding

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
# The types of JSON Schema, by the names that `type:` has for them in gateway.yaml: its `integer`
# counts decimal places of the other type, which schemas do not give.
_TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}


def hint(claim: Claim, finding: Finding) -> str | None:
    """Return the change that is probably missing between the two versions, or None.

    A change reads from the newer version to the older one, whichever way the message travels.
    """
    if claim.part in (MessagePart.MESSAGE, MessagePart.FORM_MESSAGE):
        return None  # a place in it may be in the body, in the query or in a header field
    field = _spelt(claim, finding.field)
    down = (claim.part is MessagePart.RESPONSE) == (claim.client < claim.service)
    if field is None:
        return _reshaped(claim, down) if finding.keyword == "type" else None
    match finding.keyword:
        case "required" | "lost" if (other := _other_name(claim, finding.field)) is not None:
            newer, older = (other, field) if down else (field, other)
            return f"rename: {{ field: {newer}, to: {older} }}"
        case "required" | "lost":
            return f"{'remove' if down else 'default'}: {{ field: {field}, value: ... }}"
        case "ignored" if finding.field.endswith("/*"):
            return None  # no change names keys that are free
        case "additionalProperties" | "unevaluatedProperties" | "ignored":
            return f"{'default' if down else 'remove'}: {{ field: {field}, value: ... }}"
        case "type":
            return _retyped(claim, finding.field, field, down)
        case "enum" | "const":
            return f"map: {{ field: {field}, values: {{ ... }} }}"
    return None


def _spelt(claim: Claim, pointer: str) -> str | None:
    """Return a field as YAML in braces takes it, in quotes where it holds other signs.

    None stands for the body, or for an element of a body that is an array.
    """
    path = spelt(pointer, claim.given, claim.wanted)
    if not path:
        return None
    return path if _PLAIN.match(path) else json.dumps(path, ensure_ascii=False)


def _sides(claim: Claim, down: bool) -> tuple[Declared, Declared]:
    """Return what the newer and what the older version declares."""
    given, wanted = declared(claim.given), declared(claim.wanted)
    return (given, wanted) if down else (wanted, given)


def _types(side: Declared, pointer: str) -> set[str]:
    return side.types.get(pointer, set()) - {"null"}


def _reshaped(claim: Claim, down: bool) -> str | None:
    """Return the change between a bare array and an envelope that holds one."""
    newer, older = _sides(claim, down)
    if _types(newer, "") == {"object"} and _types(older, "") == {"array"}:
        held, change = _arrays(newer), "extract: {{ key: {} }}"
    elif _types(newer, "") == {"array"} and _types(older, "") == {"object"}:
        held, change = _arrays(older), "envelope: {{ into: {} }}"
    else:
        return None
    return change.format(_spelt(claim, held[0])) if len(held) == 1 else None


def _arrays(side: Declared) -> list[str]:
    return [name for name in side.fields if name.count("/") == 1 and "array" in _types(side, name)]


def _retyped(claim: Claim, pointer: str, field: str, down: bool) -> str | None:
    newer, older = _sides(claim, down)
    before, after = _types(newer, pointer), _types(older, pointer)
    if "object" in before and "object" not in after | {"array"}:
        parts = _parts(claim, newer, pointer) if after == {"string"} else []
        if len(parts) > 1:
            return f"join: {{ fields: [{', '.join(parts)}], into: {field} }}"
        key = _only_key(newer, pointer)
        return key and f"extract: {{ field: {field}, key: {key} }}"
    if "object" in after and "object" not in before | {"array"}:
        parts = _parts(claim, older, pointer) if before == {"string"} else []
        if len(parts) > 1:
            return f"split: {{ field: {field}, into: [{', '.join(parts)}] }}"
        key = _only_key(older, pointer)
        return key and f"envelope: {{ field: {field}, into: {key} }}"
    if ("array" in before) != ("array" in after):
        return f"{'unwrap' if 'array' in before else 'wrap'}: {{ field: {field} }}"
    names = [_TYPES.get(min(types, default="")) for types in (before, after)]
    if None in names or names[0] == names[1]:
        return None
    return f"type: {{ field: {field}, newer: {names[0]}, older: {names[1]} }}"


def _parts(claim: Claim, side: Declared, pointer: str) -> list[str]:
    """Return the texts in an object."""
    inside = sorted(name for name in side.fields if name.startswith(f"{pointer}/"))
    return [str(_spelt(claim, name)) for name in inside if _types(side, name) == {"string"}]


def _only_key(side: Declared, pointer: str) -> str | None:
    """Return the key in an object that is probably the value that the other version has bare."""
    inside = [name for name in side.fields if name.rpartition("/")[0] == pointer]
    keys = [name.rpartition("/")[2] for name in inside]
    found = keys[0] if len(keys) == 1 else "id"
    return found if found in keys and _PLAIN.match(found) else None


def _other_name(claim: Claim, field: str) -> str | None:
    """Return the only field beside this one that the sender has and the recipient lacks."""
    parent = field.rpartition("/")[0]
    given, wanted = declared(claim.given).fields, declared(claim.wanted).fields
    known = [name for name in given - wanted if name.rpartition("/")[0] == parent]
    return _spelt(claim, known[0]) if len(known) == 1 else None
