"""Patches of parsed documents: JSON Merge Patch (RFC 7396) and JSON Patch (RFC 6902).

`refuse` raises the caller's error, for a reason and a location in the document.
"""

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NoReturn

from gateway.conversion.document import MISSING, Document
from gateway.conversion.field_path import Tokens, pointer

Refuse = Callable[[str, Tokens], NoReturn]
# The maximum number of operations in a JSON Patch. Each `add` moves the elements after it.
_MOST_OPERATIONS = 1_000
_VALUED = ("add", "replace", "test")
_END = "-"
_INDEX = re.compile("0|[1-9][0-9]{0,8}")


def same(one: Document, other: Document, *, digits: bool = False) -> bool:
    """Return whether two documents are equal.

    Numbers are compared by value, so 1.0 equals 1. With `digits`, 1.0 differs from 1.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            name in other and same(value, other[name], digits=digits) for name, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(*pair, digits=digits) for pair in pairs)
    if one != other or isinstance(one, bool) != isinstance(other, bool):
        return False
    return not digits or str(one) == str(other)


def apply_merge_patch(document: Document, patch: Document) -> Document:
    if not isinstance(patch, dict):
        return patch
    made = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = apply_merge_patch(made.get(name), value)
    return made


def merge_patch(before: Document, after: Document, refuse: Refuse, at: Tokens = ()) -> Document:
    """Return the merge patch that changes one document to another.

    A merge patch cannot set a member to null, so this is refused.
    """
    if not (isinstance(before, dict) and isinstance(after, dict)):
        _refuse_nulls(after, refuse, at)
        return after
    patch: dict[str, Document] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name, MISSING)
        if not same(old, value):
            patch[name] = merge_patch(old, value, refuse, (*at, name))
    return patch


def _refuse_nulls(value: Document, refuse: Refuse, at: Tokens) -> None:
    if value is None and at:
        refuse("a merge patch cannot write null (RFC 7396)", at)
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_nulls(inner, refuse, (*at, name))


def json_patch(before: Document, after: Document, at: Tokens = ()) -> list[Document]:
    """Return the JSON Patch that changes one document to another. Lists are replaced as a whole."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        changed = {"op": "replace", "path": pointer(*at), "value": after}
        return [] if same(before, after) else [changed]
    made: list[Document] = [
        {"op": "remove", "path": pointer(*at, name)} for name in before if name not in after
    ]
    for name, value in after.items():
        here = (*at, name)
        if name in before:
            made += json_patch(before[name], value, here)
        else:
            made.append({"op": "add", "path": pointer(*here), "value": value})
    return made


def apply_json_patch(document: Document, patch: Document, refuse: Refuse) -> Document:
    """Return a document after a JSON Patch; refuse an invalid patch, and a `test` that fails.

    `copy` is refused, since each `copy` could double the document.
    """
    if not isinstance(patch, list) or len(patch) > _MOST_OPERATIONS:
        refuse(f"not a JSON Patch (RFC 6902) of at most {_MOST_OPERATIONS} operations", ())
    document = deepcopy(document)
    for operation in patch:
        op, tokens = _member(operation, "op", refuse), _tokens(operation, "path", refuse)
        value = operation.get("value", MISSING)
        if op == "move":
            source = _tokens(operation, "from", refuse)
            value = _found(document, source, refuse)
            document = _changed(document, source, "remove", MISSING, refuse)
            op = "add"
        elif op != "remove" and (op not in _VALUED or value is MISSING):
            refuse("an operation without a value, or one that JSON Patch does not have", tokens)
        if op != "test":
            document = _changed(document, tokens, op, value, refuse)
        elif not same(_found(document, tokens, refuse), value):
            refuse("a `test` of the JSON Patch fails here", tokens)
    return document


def _member(operation: Any, name: str, refuse: Refuse) -> str:
    value = operation.get(name) if isinstance(operation, dict) else None
    return value if isinstance(value, str) else refuse(f"an operation has no {name}", ())


def _tokens(operation: Any, name: str, refuse: Refuse) -> tuple[str, ...]:
    text = _member(operation, name, refuse)
    if text and not text.startswith("/"):
        refuse("not a JSON Pointer (RFC 6901)", ())
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _found(document: Any, tokens: tuple[str, ...], refuse: Refuse) -> Document:
    for depth, token in enumerate(tokens):
        if isinstance(document, list):
            document = document[_index(document, token, 1, refuse, tokens[: depth + 1])]
        elif isinstance(document, dict) and token in document:
            document = document[token]
        else:
            refuse("does not exist", tokens[: depth + 1])
    return document


def _changed(
    document: Document, tokens: tuple[str, ...], op: str, value: Document, refuse: Refuse
) -> Document:
    """Change a document in place; return it, or the value that replaces it."""
    if not tokens:
        return None if op == "remove" else value
    holder, key = _found(document, tokens[:-1], refuse), tokens[-1]
    if op != "add":
        _found(document, tokens, refuse)
    if isinstance(holder, list):
        index = len(holder) if key == _END else _index(holder, key, op != "add", refuse, tokens)
        holder[index : index + (op != "add")] = [] if op == "remove" else [value]
    elif not isinstance(holder, dict):
        refuse("does not exist", tokens)
    elif op == "remove":
        del holder[key]
    else:
        holder[key] = value
    return document


def _index(array: list[Any], token: str, below: int, refuse: Refuse, at: Tokens) -> int:
    """Parse an index; refuse one above the length of the array minus `below`."""
    if not _INDEX.fullmatch(token) or int(token) > len(array) - below:
        refuse("does not exist", at)
    return int(token)
