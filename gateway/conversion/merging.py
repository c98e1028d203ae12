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

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING, Document, same
from gateway.conversion.field_path import Tokens
from gateway.conversion.patches import (
    ELEMENT,
    NO_IDENTITY,
    ListKeys,
    apply_json_patch,
    apply_merge_patch,
    apply_strategic_patch,
    identity,
    in_order,
    json_patch,
    merge_patch,
    refuse,
)

# Deeper documents are refused: each level compares all values below it, so the time grows.
_DEEPEST = 64
_UNSEEN = object()
OTHER_READ = "the client would read something else here than it has written"
DocumentConversion = Callable[[Document], Document]
NO_KEY = "elements of this list have data that the client cannot see; declare their key in `writes`"


class WriteForm(Enum):
    """The format of a client's write. PATCH with plain JSON is a merge patch."""

    DOCUMENT = "document"
    MERGE_PATCH = "merge patch"
    STRATEGIC_PATCH = "strategic merge patch"
    JSON_PATCH = "JSON Patch"


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
        return merge_patch(self.base, self.merged)


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
    _check_depth(base)
    _check_depth(sent)
    try:
        read = to_client(base)
        returned = to_service(read)
    except ConversionError as error:
        raise BaseDocumentError(error.reason, error.place, error.cause) from None
    written = sent
    if form is WriteForm.JSON_PATCH:
        written = apply_json_patch(read, sent)
        _check_depth(written)
    elif form is WriteForm.STRATEGIC_PATCH:
        written = apply_strategic_patch(read, sent, keys)
    elif form is WriteForm.MERGE_PATCH:
        written = apply_merge_patch(read, sent)
    if same(read, written, digits=True):
        return Merge(base, read, written, base)
    if isinstance(base, dict) and not isinstance(written, dict):
        refuse("the document is an object, and the write would replace it by another value", ())
    wanted = to_service(written)
    merged = _merged(base, returned, wanted, keys, ())
    try:
        seen = to_client(merged)
        # The conversions themselves may alter what was written, such as by rounding.
        agrees = same(seen, written) or same(seen, to_client(wanted))
    except ConversionError:
        seen, agrees = MISSING, False
    if not agrees:
        refuse(OTHER_READ, _first_difference(seen, written))
    return Merge(base, read, written, merged)


def _check_depth(document: Document) -> None:
    level: list[Any] = [[document]]
    for _ in range(_DEEPEST + 1):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    if level:
        refuse(f"nested more than {_DEEPEST} levels deep", ())


def _first_difference(one: Document, other: Document) -> Tokens:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            if not same(one.get(name, MISSING), other.get(name, MISSING)):
                return (name, *_first_difference(one.get(name), other.get(name)))
    return ()


def _merged(base: Any, read: Any, written: Any, keys: ListKeys, at: Tokens) -> Document:
    """Merge documents of the service's version; `read` and `written` are converted for it."""
    if same(read, written, digits=True):
        return base
    documents: Any = (base, {} if read is MISSING else read, written)
    is_object = all(isinstance(one, dict) for one in documents)
    if not is_object:
        if same(base, read) or not all(isinstance(one, list) for one in documents):
            return written
        documents = _by_identity(base, read, written, keys, at)
    mine, seen, new = documents
    made: dict[Any, Document] = {}
    for name in in_order([*mine], seen, [*new]):
        own, old, now = (one.get(name, MISSING) for one in documents)
        value = _merged(own, old, now, keys, (*at, name if is_object else ELEMENT))
        if value is not MISSING:
            made[name] = value
    return made if is_object else [*made.values()]


def _by_identity(
    base: list[Any], read: list[Any], written: list[Any], keys: ListKeys, at: Tokens
) -> tuple[dict[Any, Any], ...]:
    """Return the elements of each list by their identity, or by their position without one."""
    key, lists = keys.get(at, ()), (base, read, written)
    mine, seen, new = names = [[identity(each, key) for each in some] for some in lists]
    known = set(seen)
    shown = [name for name in mine if name in known]
    unique = all(len(set(some)) == len(some) for some in (shown, seen, new))
    if None in (*seen, *new) or len(shown) < len(seen) or not unique:
        if key or not len(base) == len(read) == len(written):
            refuse(NO_IDENTITY if key else NO_KEY, at)
        for own, old, now in zip(*lists, strict=True):
            if not (same(old, now, digits=True) or same(own, old)):
                refuse(NO_KEY, at)
        names = [[*range(len(base))]] * 3
    elif key and not known.issuperset({*mine} & {*new}):
        refuse("an element has the key of one that the client cannot see", at)
    else:
        names[0] = [name if name in known else (_UNSEEN, n) for n, name in enumerate(mine)]
    return tuple(dict(zip(*each, strict=True)) for each in zip(names, lists, strict=True))
