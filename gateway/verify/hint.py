"""Hints: the changes, as gateway.yaml would declare them, that probably mend a finding."""

import re
from collections.abc import Iterator

from gateway.verify.claim import Claim, MessagePart
from gateway.verify.openapi.body_shape import spelt
from gateway.verify.openapi.schema_fields import Declared, declared
from gateway.verify.proof import Finding
from gateway.verify.reshaping import quoted, reshapings

# Documents do not say what stands between them.
_PAIRS = 'separator: ",", pairs: "="'
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
# The types of JSON Schema, by the names that `type:` has for them in gateway.yaml: its `integer`
# counts decimal places of the other type, which schemas do not give.
_TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}
_BODIES = (MessagePart.REQUEST, MessagePart.RESPONSE)
_BEYOND = ("additionalProperties", "unevaluatedProperties", "ignored")
_SHAPED = ("required", "lost", "ignored", "additionalProperties", "unevaluatedProperties", "type")


def hints(claim: Claim, finding: Finding) -> Iterator[str]:
    """Yield the changes one of which is probably missing between the two versions.

    A change reads from the newer version to the older one, whichever way the message travels.
    """
    if claim.part in (MessagePart.MESSAGE, MessagePart.FORM_MESSAGE):
        return  # a place in it may be in the body, in the query or in a header field
    name = spelt(finding.field, claim.given, claim.wanted)
    down = (claim.part is MessagePart.RESPONSE) == (claim.client < claim.service)
    if claim.part in _BODIES and finding.keyword in _SHAPED:
        yield from reshapings(claim.given, claim.wanted, name, down=down)
    one = _of_field(claim, finding, quoted(name), down) if name else None
    if one is not None:
        yield one


def hint(claim: Claim, finding: Finding) -> str | None:
    """Return the first of them, or None."""
    return next(hints(claim, finding), None)


def _of_field(claim: Claim, finding: Finding, field: str, down: bool) -> str | None:
    match finding.keyword:
        case "required" | "lost" if (other := _other_name(claim, finding.field)) is not None:
            newer, older = (other, field) if down else (field, other)
            return f"rename: {{ field: {newer}, to: {older} }}"
        case "required" | "lost":
            return f"{'remove' if down else 'default'}: {{ field: {field}, value: ... }}"
        case _ if finding.keyword in _BEYOND and _is_free(claim, finding.field):
            return None  # no change names keys that are free
        case "additionalProperties" | "unevaluatedProperties" | "ignored":
            return f"{'default' if down else 'remove'}: {{ field: {field}, value: ... }}"
        case "type":
            return _retyped(claim, finding.field, field, down)
        case "enum" | "const":
            return f"map: {{ field: {field}, values: {{ ... }} }}"
    return None


def _is_free(claim: Claim, field: str) -> bool:
    """Return whether the sender's bodies do not declare a field: an example has made it up."""
    made_up = claim.part in _BODIES and field not in declared(claim.given).fields
    return made_up or field.endswith("/*")


def _spelt(claim: Claim, pointer: str) -> str:
    """Return a field as YAML in braces takes it."""
    return quoted(spelt(pointer, claim.given, claim.wanted))


def _sides(claim: Claim, down: bool) -> tuple[Declared, Declared]:
    """Return what the newer and what the older version declares."""
    given, wanted = declared(claim.given), declared(claim.wanted)
    return (given, wanted) if down else (wanted, given)


def _types(side: Declared, pointer: str) -> set[str]:
    return side.types.get(pointer, set()) - {"null"}


def _retyped(claim: Claim, pointer: str, field: str, down: bool) -> str | None:
    newer, older = _sides(claim, down)
    before, after = _types(newer, pointer), _types(older, pointer)
    for one, other, name in ((before, after, "unwrap"), (after, before, "wrap")):
        if one == {"array"} and other and other != one:
            many = ", many: keep" if "array" in other else ""
            return f"{name}: {{ field: {field}{many} }}"
    if "object" in before and "object" not in after | {"array"}:
        parts = _parts(claim, newer, pointer) if after == {"string"} else []
        if len(parts) > 1:
            return f"join: {{ fields: [{', '.join(parts)}], into: {field} }}"
        if after == {"string"} and not _inside(newer, pointer):
            return f"join_list: {{ field: {field}, {_PAIRS} }}"
        key = _only_key(newer, pointer)
        return key and f"extract: {{ field: {field}, key: {key} }}"
    if "object" in after and "object" not in before | {"array"}:
        parts = _parts(claim, older, pointer) if before == {"string"} else []
        if len(parts) > 1:
            return f"split: {{ field: {field}, into: [{', '.join(parts)}] }}"
        if before == {"string"} and not _inside(older, pointer):
            return f"split_list: {{ field: {field}, {_PAIRS} }}"
        key = _only_key(older, pointer)
        return key and f"envelope: {{ field: {field}, into: {key} }}"
    names = [_TYPES.get(min(types, default="")) for types in (before, after)]
    if None in names or names[0] == names[1]:
        return None
    return f"type: {{ field: {field}, newer: {names[0]}, older: {names[1]} }}"


def _parts(claim: Claim, side: Declared, pointer: str) -> list[str]:
    """Return the texts in an object."""
    inside = _inside(side, pointer)
    return [_spelt(claim, name) for name in inside if _types(side, name) == {"string"}]


def _inside(side: Declared, pointer: str) -> list[str]:
    return sorted(name for name in side.fields if name.startswith(f"{pointer}/"))


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
