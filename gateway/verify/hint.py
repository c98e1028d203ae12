"""Hints: the change, as gateway.yaml would declare it, that probably mends a finding."""

import json
import re

from gateway.verify.claim import Claim, MessagePart
from gateway.verify.openapi.schema_fields import declared
from gateway.verify.proof import Finding

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
# The types of JSON Schema, by the names that `type:` has for them in gateway.yaml: its `integer`
# counts decimal places of the other type, which schemas do not give.
_TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}


def hint(claim: Claim, finding: Finding) -> str | None:
    """Return the change that is probably missing between the two versions, or None.

    A change reads from the newer version to the older one, whichever way the message travels.
    """
    field = _spelt(finding.field)
    down = (claim.part is MessagePart.RESPONSE) == (claim.client < claim.service)
    match finding.keyword:
        case "required" | "lost" if (other := _other_name(claim, finding.field)) is not None:
            newer, older = (_spelt(other), field) if down else (field, _spelt(other))
            return f"rename: {{ field: {newer}, to: {older} }}"
        case "required" | "lost":
            return f"{'remove' if down else 'default'}: {{ field: {field}, value: ... }}"
        case "additionalProperties" | "unevaluatedProperties" | "ignored":
            return f"{'default' if down else 'remove'}: {{ field: {field}, value: ... }}"
        case "type":
            return _retyped(claim, finding.field, down)
        case "enum" | "const":
            return f"map: {{ field: {field}, values: {{ ... }} }}"
    return None


def _spelt(pointer: str) -> str:
    """Return a field path as YAML in braces takes it: in quotes where it holds other signs."""
    path = path_of(pointer)
    return path if _PLAIN.match(path) else json.dumps(path, ensure_ascii=False)


def path_of(pointer: str) -> str:
    """Return a field as changes name it: `items[].price` for `/items/*/price`."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    return ".".join(steps).replace(".*", "[]")


def _retyped(claim: Claim, pointer: str, down: bool) -> str | None:
    given, wanted = declared(claim.given), declared(claim.wanted)
    newer, older = (given, wanted) if down else (wanted, given)
    before, after = (side.types.get(pointer, set()) - {"null"} for side in (newer, older))
    field = _spelt(pointer)
    if "object" in before and after == {"string"}:
        return f"join: {{ fields: [{_inside(newer.fields, pointer)}], into: {field} }}"
    if before == {"string"} and "object" in after:
        return f"split: {{ field: {field}, into: [{_inside(older.fields, pointer)}] }}"
    if ("array" in before) != ("array" in after):
        return f"{'unwrap' if 'array' in before else 'wrap'}: {{ field: {field} }}"
    names = [_TYPES.get(min(types, default="")) for types in (before, after)]
    if None in names or names[0] == names[1]:
        return None
    return f"type: {{ field: {field}, newer: {names[0]}, older: {names[1]} }}"


def _inside(fields: set[str], pointer: str) -> str:
    return ", ".join(sorted(_spelt(name) for name in fields if name.startswith(f"{pointer}/")))


def _other_name(claim: Claim, field: str) -> str | None:
    """Return the only field beside this one that the sender has and the recipient lacks."""
    parent = field.rpartition("/")[0]
    given, wanted = declared(claim.given).fields, declared(claim.wanted).fields
    known = [name for name in given - wanted if name.rpartition("/")[0] == parent]
    return known[0] if len(known) == 1 else None
