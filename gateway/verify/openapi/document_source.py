"""Functions that load OpenAPI documents from files and URLs."""

import asyncio
import json
import math
import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml

from gateway.base.files import MAX_BYTES, read_regular
from gateway.base.urls import is_http_url
from gateway.verify.openapi.openapi import Description, DocumentError
from gateway.verify.schema_files import is_utf_16

# The maximum number of values. A value takes up to 300 bytes, and aliases in YAML can multiply
# values.
_MOST = 1_000_000
# The maximum nesting depth. PyYAML's composer recurses in C, so a deeper document would crash the
# process.
_DEEPEST = 500
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# No compression: a small compressed response could decompress to any size.
_UNCODED = {"Accept-Encoding": "identity"}
_TIMEOUT = aiohttp.ClientTimeout(total=10)


async def fetch(locations: Iterable[str], folder: Path) -> dict[str, Description]:
    """Load OpenAPI documents, and return them by location.

    Raises:
        DocumentError: a document cannot be loaded, or is not an OpenAPI 3 document.
    """
    texts = await fetch_texts(locations, folder)
    return {location: read(text, location) for location, text in texts.items()}


async def fetch_texts(locations: Iterable[str], folder: Path) -> dict[str, bytes]:
    """Load documents without parsing them; raises DocumentError, as `fetch` does."""
    once = tuple(dict.fromkeys(locations))
    # A new context, since aiohttp creates its default context without certificate authorities.
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
    async with aiohttp.ClientSession(
        connector=connector, timeout=_TIMEOUT, auto_decompress=False
    ) as session:
        texts = await asyncio.gather(*(_text(session, location, folder) for location in once))
    return dict(zip(once, texts, strict=True))


def read(text: bytes, source: str) -> Description:
    """Parse an OpenAPI document in JSON or YAML; `source` names it in reports.

    Raises:
        DocumentError: the content is neither JSON nor YAML, or it is not an OpenAPI 3 document.
    """
    return Description(parse(text, source), source)


def parse(text: bytes, source: str) -> object:
    """Parse a document in JSON or YAML; raises DocumentError, as `read` does."""
    if is_utf_16(text):
        raise DocumentError(f"{source}: in UTF-16; save it as UTF-8")
    try:
        return _read_json(text) if _is_json(text) else _read_yaml(text)
    except _RepeatedKeyError as error:
        raise DocumentError(f"{source}: the same key twice{_line(error)}") from None
    except RecursionError:
        raise DocumentError(f"{source}: nested too deep; is this the right location?") from None
    except _TooManyError as error:
        raise DocumentError(f"{source}: {error}") from None
    # An invalid tag such as `!!int ""` raises one of the last two errors.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        raise DocumentError(
            f"{source}: neither JSON nor YAML{_line(error)}; is this the right location?"
        ) from None


def _is_json(text: bytes) -> bool:
    """Return whether a document is JSON, without creating its values; may raise RecursionError."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def _read_json(text: bytes) -> object:
    # The second count, without strings, takes long.
    if _values(text) > _MOST and _values(_STRING.sub(b"", text)) > _MOST:
        raise _TooManyError
    data = msgspec.json.decode(text)
    if _is_deep(data):
        raise RecursionError
    if _has_repeated_keys(text):
        yaml.load(text.replace(b"\t", b" "), _Loader)  # noqa: S506  # raises an error with the line
    return data


def _values(text: bytes) -> int:
    # Each value, except the value of a key, begins after one of these characters.
    return sum(map(text.count, (b",", b"[", b"{")))


def _is_deep(data: object) -> bool:
    level: list[Any] = [data] if isinstance(data, dict | list) else []
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _read_yaml(text: bytes) -> object:
    depth = values = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if values > _MOST:
            raise _TooManyError
        if depth > _DEEPEST:
            raise RecursionError
    data = yaml.load(text, _Loader)  # noqa: S506  # derived from the safe loader
    if _size(data, {}) > _MOST:
        raise _TooManyError("its aliases (*name) make ")
    return data


def _has_repeated_keys(text: bytes) -> bool:
    """Return whether an object repeats a key, which parsers accept silently."""

    def check(pairs: list[tuple[str, object]]) -> None:
        if len({key for key, _ in pairs}) < len(pairs):
            raise _RepeatedKeyError

    try:
        json.loads(text, object_pairs_hook=check)
    except _RepeatedKeyError:
        return True
    return False


def _line(error: Exception) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ""
    return f" (line {error.problem_mark.line + 1}: {error.problem})"


def _size(value: object, known: dict[int, float]) -> float:
    """Return the number of values with expanded aliases; infinity if an alias contains itself."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(one, known) for one in inner)
    return known[id(value)]


class _TooManyError(Exception):
    def __init__(self, cause: str = "") -> None:
        of = "values of it; is this right?" if cause else "values; is this the right location?"
        super().__init__(f"{cause}more than {_MOST:,} {of}")


class _RepeatedKeyError(yaml.MarkedYAMLError):
    pass


class _Loader(yaml.CSafeLoader):
    """The safe YAML loader without dates, which JSON lacks, and with the booleans of YAML 1.2.

    OpenAPI documents are YAML 1.2 (OpenAPI 3.1.0, section 4.2). In YAML 1.2, `no` and `on` are
    strings, and the keys of a mapping are unique (YAML 1.2.2, section 3.2.1.1).
    """

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._merged: set[int] = set()
        self._copied = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge the mappings to which a node refers by `<<` into the node.

        Raises _RepeatedKeyError or _TooManyError.
        """
        known: set[str] = set()
        for key, value in () if id(node) in self._merged else node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for other in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(other, yaml.MappingNode) and other is not node:
                        self.flatten_mapping(other)
                        self._copied += len(other.value)
                    if self._copied > _MOST:
                        raise _TooManyError("its merges (<<) make ")
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in known:
                    problem = f"'{key.value}' occurs before; remove one of them"
                    raise _RepeatedKeyError(problem=problem, problem_mark=key.start_mark)
                known.add(key.value)
        self._merged.add(id(node))  # the node now has the merged keys
        super().flatten_mapping(node)


_OTHERS = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
_Loader.yaml_implicit_resolvers = {
    letter: [pair for pair in pairs if pair[0] not in _OTHERS]
    for letter, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)


async def _text(session: aiohttp.ClientSession, location: str, folder: Path) -> bytes:
    if not is_http_url(location):
        try:
            return await asyncio.to_thread(read_regular, folder / location)
        except OSError as error:
            raise DocumentError(
                f"{location}: cannot be read: {error.strerror}; is the path right?"
            ) from None
    try:
        async with session.get(location, headers=_UNCODED) as response:
            if response.status != 200:
                raise DocumentError(
                    f"{location}: responds with status {response.status}; publish the"
                    " document there, or name another location: schema: FILE or URL"
                )
            content = bytearray()
            async for piece in response.content.iter_any():
                content += piece
                if len(content) > MAX_BYTES:
                    raise DocumentError(
                        f"{location}: larger than {MAX_BYTES // 2**20} MiB; is this"
                        " the right location?"
                    )
            return bytes(content)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise DocumentError(
            f"{location}: cannot be loaded ({_cause(error)}); is the server running?"
        ) from None


def _cause(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    return "too slow" if isinstance(error, TimeoutError) else str(error).lower()
