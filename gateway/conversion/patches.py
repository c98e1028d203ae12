"""Patches of parsed documents: JSON Merge Patch, JSON Patch and Kubernetes' strategic merge patch.

RFC 7396, RFC 6902, and
https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

import re
from collections.abc import Container, Mapping, Sequence
from copy import deepcopy
from typing import Any, NoReturn

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING, Document, same
from gateway.conversion.field_path import Keys, Tokens, pointer, tokens_of

ListKeys = Mapping[Tokens, tuple[Keys, ...]]
"""The fields that identify the elements of each list, by its location.

In a location, 0 stands for any element of a list. A strategic merge patch replaces a list that is
declared without fields."""
# The maximum number of operations in a JSON Patch. Each `add` moves the elements after it.
_MOST_OPERATIONS = 1_000
_OPERATIONS = ("add", "remove", "replace", "test")
_END = "-"
_INDEX = re.compile("0|[1-9][0-9]{0,8}")
_DIRECTIVE, _RETAINED = "$patch", "$retainKeys"
_ORDER, _DELETED = "$setElementOrder/", "$deleteFromPrimitiveList/"
ELEMENT = 0
NO_IDENTITY = "the key in `writes` does not identify each element"
_NO_KEY = (
    "the key of this list is unknown, which a strategic merge patch needs; declare it in `writes`"
)
_FIRST, _LAST = object(), object()


class MergeError(ConversionError):
    """A write cannot be merged; the location is in the document of the client or the service."""


def refuse(reason: str, at: Tokens) -> NoReturn:
    raise MergeError(reason, at)


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


def merge_patch(before: Document, after: Document, at: Tokens = ()) -> Document:
    """Return the merge patch that changes one document to another.

    A merge patch cannot set a member to null, so this is refused.
    """
    if after is None and at:
        refuse("a merge patch cannot write null (RFC 7396)", at)
    if not isinstance(after, dict):
        return after
    old = before if isinstance(before, dict) else {}
    patch: dict[str, Document] = {name: None for name in old if name not in after}
    for name, value in after.items():
        if not same(old.get(name, MISSING), value):
            patch[name] = merge_patch(old.get(name, MISSING), value, (*at, name))
    return patch


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


def apply_json_patch(document: Document, patch: Document) -> Document:
    """Return a document after a JSON Patch; refuse an invalid patch, and a `test` that fails.

    `copy` is refused, since each `copy` could double the document.
    """
    if not isinstance(patch, list) or len(patch) > _MOST_OPERATIONS:
        refuse(f"not a JSON Patch (RFC 6902) of at most {_MOST_OPERATIONS} operations", ())
    root: dict[str, Document] = {
        "": deepcopy(document)
    }  # the first token of each JSON Pointer is empty
    operation: Any
    for operation in patch:
        op, path = _member(operation, "op"), _tokens(operation, "path")
        value: Any = operation.get("value", MISSING)
        if op == "move":
            source = _tokens(operation, "from")
            if path != source == path[: len(source)]:
                refuse("a `move` into itself", path[1:])
            holder, key = _found(root, source)
            value, op = holder.pop(key), "add"
        elif op not in _OPERATIONS or (op != "remove" and value is MISSING):
            refuse("an operation without a value, or one that JSON Patch does not have", path[1:])
        holder, key = _found(root, path, adds=op == "add")
        if op == "remove":
            del holder[key]
        elif op == "add" and isinstance(holder, list):
            holder.insert(key, value)
        elif op != "test":
            holder[key] = value
        elif not same(holder[key], value):
            refuse("a `test` of the JSON Patch fails here", path[1:])
    return root.get("")


def _member(operation: Any, name: str) -> str:
    value = operation.get(name) if isinstance(operation, dict) else None
    return value if isinstance(value, str) else refuse(f"an operation has no {name}", ())


def _tokens(operation: Any, name: str) -> tuple[str, ...]:
    text = _member(operation, name)
    if text and not text.startswith("/"):
        refuse("not a JSON Pointer (RFC 6901)", ())
    return "", *tokens_of(text)


def _found(root: Document, tokens: tuple[str, ...], *, adds: bool = False) -> tuple[Any, Any]:
    """Return the object or list that has a location, and the name or index there.

    A location that does not exist is refused, unless it is that of a value to be added.
    """
    value: Any = root
    holder: Any
    key: Any
    for depth, token in enumerate(tokens, 1):
        holder, key, is_new = value, token, adds and depth == len(tokens)
        if isinstance(holder, list):
            end = len(holder) + is_new
            key = int(token) if _INDEX.fullmatch(token) else end - (token == _END and is_new)
            exists = key < end
        else:
            exists = isinstance(holder, dict) and (is_new or token in holder)
        if not exists:
            refuse("does not exist", tokens[1:depth])
        value = None if is_new else holder[key]
    return holder, key


def apply_strategic_patch(
    document: Document, patch: Document, keys: ListKeys, at: Tokens = ()
) -> Document:
    """Return a document after a strategic merge patch.

    A list is merged by its declared key. Without a declaration, only a list of texts or numbers
    with a directive is merged, and a list that the document lacks is added; others are refused,
    since Kubernetes merges some lists and replaces others.
    """
    if not isinstance(patch, dict):
        return patch
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return {}
    if directive not in (None, "replace"):
        refuse(f"{_DIRECTIVE} is neither delete nor replace", at)
    made = dict(document) if isinstance(document, dict) and directive is None else {}
    retained = _listed(patch, _RETAINED, at)
    if retained is not None:
        if not all(isinstance(name, str) for name in retained):
            refuse("not names", (*at, _RETAINED))
        made = {name: value for name, value in made.items() if name in retained}
    of_lists = (name.removeprefix(_ORDER).removeprefix(_DELETED) for name in patch)
    for name in dict.fromkeys(of_lists):
        value, here = patch.get(name, MISSING), (*at, name)
        lists = _listed(patch, _ORDER + name, at), _listed(patch, _DELETED + name, at)
        if name in (_DIRECTIVE, _RETAINED) or (value is MISSING and name not in made):
            continue
        if value is None:
            made.pop(name, None)
        elif isinstance(value, list) or value is MISSING:
            items = value if isinstance(value, list) else []
            made[name] = _patched_list(made.get(name), items, *lists, keys, here)
        else:
            made[name] = apply_strategic_patch(made.get(name), value, keys, here)
    return made


def _listed(patch: dict[str, Document], name: str, at: Tokens) -> list[Document] | None:
    value = patch.get(name)
    return value if isinstance(value, list | None) else refuse("not a list", (*at, name))


def _patched_list(
    old: Document,
    items: list[Document],
    order: list[Document] | None,
    deleted: list[Document] | None,
    keys: ListKeys,
    at: Tokens,
) -> list[Document]:
    key, inner, elements = keys.get(at), (*at, ELEMENT), old if isinstance(old, list) else []
    directives = [item.get(_DIRECTIVE) if isinstance(item, dict) else None for item in items]
    if "replace" in directives or not (key or order is not None or deleted is not None):
        if elements and key is None and "replace" not in directives:
            refuse(_NO_KEY, at)
        given = zip(items, directives, strict=True)
        kept = [item for item, directive in given if directive not in ("replace", "delete")]
        return [apply_strategic_patch(MISSING, item, keys, inner) for item in kept]
    if not isinstance(old, list | None):
        refuse("not a list", at)
    key = key or ()
    names = [identity(item, key) for item in items]
    made = {identity(element, key): element for element in elements}
    if None in (*made, *names) or len(made) < len(elements):
        refuse(NO_IDENTITY, at)
    for name, item, directive in zip(names, items, directives, strict=True):
        if directive == "delete":
            made.pop(name, None)
        else:
            made[name] = apply_strategic_patch(made.get(name, MISSING), item, keys, inner)
    for value in deleted or ():
        made.pop(identity(value, key), None)
    ordered = [name for each in order or () if (name := identity(each, key)) in made]
    return [made[name] for name in in_order([*made], (), ordered)]


def identity(element: Any, key: tuple[Keys, ...]) -> object:
    """Return what identifies an element: a scalar itself, or the key of an object; or None."""
    if not isinstance(element, dict):
        return None if isinstance(element, list) else _comparable(element)
    parts: list[object] = []
    for keys in key:
        value: Any = element
        for name in keys:
            value = value.get(name) if isinstance(value, dict) else None
        parts.append(_comparable(value))
    return None if all(part is None for part in parts) else tuple(parts)


def _comparable(value: object) -> object:
    # In Python, True equals 1 and has the same hash.
    if isinstance(value, dict | list):
        return None
    return value if isinstance(value, str | None) else (isinstance(value, bool), value)


def in_order(base: Sequence[Any], seen: Container[object], written: Sequence[Any]) -> list[Any]:
    """Return the names that were written, and those of the base that the client has not seen.

    An unseen name stays after the name that precedes it in the base, or moves to the end if no
    name before it was written.
    """
    after: dict[object, list[object]] = {_FIRST: [], **{name: [] for name in written}, _LAST: []}
    before: object = _FIRST
    for name in base:
        if name in after:
            before = name
        elif name not in seen:
            after[before].append(name)
        elif before is _FIRST:
            before = _LAST
    found = (one for name, unseen in after.items() for one in (name, *unseen))
    return [name for name in found if name is not _FIRST and name is not _LAST]
