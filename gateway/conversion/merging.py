"""Merges a client's write into the document of a service of another version.

A client sees only a part of the service's document. If it writes back what it has read, the rest
must not be lost (the laws of lenses: put-get and get-put).

| Name | Document | Version |
| --- | --- | --- |
| base | the document of the service | service |
| read | the base, converted for the client | client |
| written | `read` with the client's write applied | client |
| merged | the base with the difference between `read` and `written` | service |

`read` and `written` are both converted for the service. Where the two results are equal, the base
stays; elsewhere, the result for `written` replaces it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, NoReturn

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING, Document
from gateway.conversion.field_path import Keys, Tokens
from gateway.conversion.patches import (
    apply_json_patch,
    apply_merge_patch,
    json_patch,
    merge_patch,
    same,
)

# Deeper documents are refused: each level compares all values below it, so the time grows.
_DEEPEST = 64
_ELEMENT = 0
ListKeys = Mapping[Tokens, tuple[Keys, ...]]
"""The fields that identify the elements of each list, by its location.

In a location, 0 stands for any element of a list."""
DocumentConversion = Callable[[Document], Document]


class WriteForm(Enum):
    """How a client writes a document. PATCH with plain JSON is a merge patch."""

    DOCUMENT = "document"
    MERGE_PATCH = "merge patch"
    STRATEGIC_PATCH = "strategic merge patch"
    JSON_PATCH = "JSON Patch"


class MergeError(ConversionError):
    """A write cannot be merged; the location is in the document of the client or the service."""


class BaseDocumentError(ConversionError):
    """The document of the service cannot be converted."""


class Merge(NamedTuple):
    """The four documents of a merge; see the table in the docstring of this module."""

    base: Document
    read: Document
    written: Document
    merged: Document

    def body(self, form: WriteForm, *, is_patch: bool) -> Document:
        """Return the body for the service: a patch of the base, or the merged document."""
        if not is_patch:
            return self.merged
        if form is WriteForm.JSON_PATCH:
            return json_patch(self.base, self.merged)
        return merge_patch(self.base, self.merged, _refuse)


def merge(
    base: Document,
    sent: Document,
    form: WriteForm,
    keys: ListKeys,
    to_client: DocumentConversion,
    to_service: DocumentConversion,
) -> Merge:
    """Merge what a client sent into the base.

    Raises:
        BaseDocumentError: The base cannot be converted for the client and back.
        MergeError: The write cannot be merged without the loss of data, a `test` fails, or the
            client would read another document than it has written.
        ConversionError: The written document does not fit the client's version.
    """
    try:
        read = to_client(base)
        returned = to_service(read)
    except ConversionError as error:
        raise BaseDocumentError(error.reason, error.place, error.cause) from None
    written = sent
    if form is WriteForm.JSON_PATCH:
        written = apply_json_patch(read, sent, _refuse)
    elif form is not WriteForm.DOCUMENT:
        _refuse_strategies(sent if form is WriteForm.STRATEGIC_PATCH else None)
        written = apply_merge_patch(read, sent)
    if same(read, written, digits=True):
        return Merge(base, read, written, base)
    wanted = to_service(written)
    merged = _merged(base, returned, wanted, keys, ())
    seen = _seen(to_client, merged)
    if not same(seen, written):
        # The conversions themselves may alter what was written, such as by rounding.
        expected = _seen(to_client, wanted)
        if expected is MISSING or not same(seen, expected):
            reason = "the client would read something else here than it has written"
            _refuse(reason, _first_difference(seen, written))
    return Merge(base, read, written, merged)


def _refuse_strategies(patch: Document) -> None:
    """Refuse lists and directives, in which a strategic merge patch differs from a merge patch.

    https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md
    """
    for name, value in patch.items() if isinstance(patch, dict) else ():
        if name.startswith("$") or isinstance(value, list):
            _refuse("a list or directive of a strategic merge patch; use a merge patch", (name,))
        _refuse_strategies(value)


def _seen(to_client: DocumentConversion, document: Document) -> Document:
    try:
        return to_client(document)
    except ConversionError:
        return MISSING


def _first_difference(one: Document, other: Document) -> Tokens:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            if not same(one.get(name, MISSING), other.get(name, MISSING)):
                return (name, *_first_difference(one.get(name), other.get(name)))
    return ()


def _merged(base: Any, read: Any, written: Any, keys: ListKeys, at: Tokens) -> Document:
    """Merge documents of the service's version; `read` and `written` are converted for it."""
    if len(at) > _DEEPEST:
        _refuse(f"nested more than {_DEEPEST} levels deep", ())
    old = {} if read is MISSING else read
    if all(isinstance(one, dict) for one in (base, old, written)):
        made: dict[str, Document] = {}
        names = [*base]
        for name in _in_order(names, [name in old for name in names], [*written]):
            key: Any = names[name] if isinstance(name, int) else name[0]
            mine, seen, new = (one.get(key, MISSING) for one in (base, old, written))
            value = _merged(mine, seen, new, keys, (*at, key))
            if value is not MISSING:
                made[key] = value
        return made
    if same(read, written, digits=True):
        return base
    if not same(base, read) and all(isinstance(one, list) for one in (base, read, written)):
        return _merged_list(base, read, written, keys, at)
    return written


def _merged_list(
    base: list[Any], read: list[Any], written: list[Any], keys: ListKeys, at: Tokens
) -> Document:
    key = keys.get(tuple(one if isinstance(one, str) else _ELEMENT for one in at), ())
    names = [[_identity(each, key) for each in some] for some in (base, read, written)]
    if key and not _identifies(*names):
        _refuse("the key in `writes` does not identify each element", at)
    if not _identifies(*names):
        if not len(base) == len(read) == len(written):
            _refuse(_NO_KEY, at)
        for mine, old, new in zip(base, read, written, strict=True):
            if not (same(old, new, digits=True) or same(mine, old)):
                _refuse(_NO_KEY, at)
        inner = (*at, _ELEMENT)
        each = zip(base, read, written, strict=True)
        return [_merged(mine, old, new, keys, inner) for mine, old, new in each]
    of_base, of_read, of_written = (
        dict(zip(some, values, strict=True))
        for some, values in zip(names, (base, read, written), strict=True)
    )
    made = []
    for name in _in_order(names[0], [name in of_read for name in names[0]], names[2]):
        if isinstance(name, int):
            made.append(base[name])
        elif name[0] in of_read:
            mine, old, new = (some[name[0]] for some in (of_base, of_read, of_written))
            made.append(_merged(mine, old, new, keys, (*at, _ELEMENT)))
        elif name[0] in of_base and key:
            _refuse("an element has the key of one that the client cannot see", at)
        else:
            made.append(of_written[name[0]])
    return made


def _in_order(
    base: Sequence[object], visible: Sequence[bool], written: Sequence[object]
) -> Iterator[int | tuple[object]]:
    """Yield the names that were written, and the indexes of hidden names of the base.

    A hidden name stays after the name that precedes it, or moves to the end if that name is gone.
    """
    left = set(written)
    hidden: dict[object, list[int]] = {}
    before: object = _FIRST
    for index, name in enumerate(base):
        if name in left:
            before = name
        elif not visible[index]:
            hidden.setdefault(before, []).append(index)
        elif before is _FIRST:
            before = _LAST
    yield from hidden.get(_FIRST, ())
    for name in written:
        yield (name,)
        yield from hidden.get(name, ())
    yield from hidden.get(_LAST, ())


_FIRST, _LAST = object(), object()
_NO_KEY = (
    "elements of this list have data that the client cannot see; declare their key in `writes`"
)


def _identity(element: Any, key: tuple[Keys, ...]) -> object:
    """Return the identity of an element: a scalar itself, or the key of an object; or None."""
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


def _identifies(base: Sequence[object], read: Sequence[object], written: Sequence[object]) -> bool:
    """Return whether the names identify each element that was read or written."""
    known, seen = set(read), set(written)
    if None in known or None in seen or len(known) < len(read) or len(seen) < len(written):
        return False
    found = [name for name in base if name in known]
    return len(found) == len(known) == len(set(found))


def _refuse(reason: str, at: Tokens) -> NoReturn:
    raise MergeError(reason, at)
