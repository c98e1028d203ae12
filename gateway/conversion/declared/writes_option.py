"""The key `writes`: PUT and PATCH of clients keep the data that their version lacks."""

from collections.abc import Mapping
from functools import partial
from typing import Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.model import OneOrList, SectionModel, TextOr
from gateway.conversion.field_path import Keys, Members, Tokens, keys_of, parse_path
from gateway.conversion.operation import OperationPattern, WriteRule, parse_operation

_MERGED = frozenset({"PUT", "PATCH"})


class WritesConfig(SectionModel):
    """The settings for merging writes into the document of the service."""

    key: Mapping[str, OneOrList[str]] = Field(default_factory=dict)
    """For each list, the fields that identify its elements: `lines: id`, or
    `orders[].lines: [sku, size]`. All names are those of the service's version. Without a key, the
    elements are matched by their position. With `[]`, a strategic merge patch replaces the list."""
    read: str | None = None
    """The operation of the service that reads the document, such as `GET /orders/{id}/all`. The
    default is GET with the path of the write."""
    without_tag: Literal["refuse", "accept"] = "refuse"
    """The treatment of a write if the service sends no strong entity tag: the write is refused
    (`refuse`), or is sent although it may overwrite a concurrent write (`accept`). The default is
    refuse."""


WritesOption = TextOr[Literal["merge"], WritesConfig]


def write_rule(
    option: Literal["merge"] | WritesConfig | None,
    mistakes: Mistakes,
    methods: frozenset[str] = _MERGED,
) -> WriteRule | None:
    if option is None:
        return None
    if isinstance(option, str):
        return WriteRule(methods)
    keys: dict[Tokens, tuple[Keys, ...]] = {}
    for text, named in option.key.items():
        fields = (named,) if isinstance(named, str) else named
        try:
            place, paths = _place(text), tuple(map(parse_path, fields))
            if any(path.scopes or path.elements or path.members for path in paths):
                raise ValueError(
                    "the key is not a field of the element; write a path such as detail.size"
                )
            keys[place] = tuple(path.keys for path in paths)
        except ValueError as error:
            mistakes.add(str(error), "key", text)
    read: OperationPattern | None = None
    if option.read is not None:
        read = mistakes.attempt(partial(parse_operation, option.read), "read")
        if read is not None and (read.method != "GET" or read.query):
            mistakes.add(
                "not GET and a path without a query; write, for example, GET /orders/{id}",
                "read",
            )
    return WriteRule(methods, keys, read, option.without_tag == "accept")


def _place(text: str) -> Tokens:
    """Return the location of a list, with 0 for any element; raises ValueError."""
    if text == "[]":
        return ()
    path = parse_path(text.removesuffix("[]"))
    place: Tokens = ()
    for scope in path.scopes:
        if isinstance(scope, Members):
            raise ValueError(f"'{text}' has the wildcard *; name each list")
        place = (*place, *keys_of(scope), 0)
    return (*place, *path.keys)
