"""The router: finds the endpoint whose path template matches a raw path.

Paths match segment by segment and byte for byte. Nothing is decoded, trimmed or converted to lower
case. The cost of a lookup grows with the depth of the path, not with the number of endpoints.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

T = TypeVar("T")

# The maximum length of a path in the lookup cache, which limits the memory.
_SHORT: Final = 256
# The memory of one generation of that cache, and of a cache entry without its strings, in bytes.
# The strings of an entry contain each character of the path at most twice.
_CACHE_BYTES = 4 * 1024 * 1024
_ENTRY_BYTES = 500

_CAPTURE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\*?)\}")
# The characters and percent-encoded octets of a path segment (RFC 3986, section 3.3).
_LITERAL = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*\Z")
# A dot segment in a template.
_DOTS = re.compile(r"(?:\.|%2[Ee]){1,2}\Z")
# A string that a service may read as a dot segment. With a dot segment in a capture, a client could
# leave the folder of the template or of the service's path. Services strip or drop control
# characters and spaces, or end a string at them. A service that decodes the path before it parses
# it also ends a segment before parameters, a query or a fragment.
_BLANK = rb"[\0-\x20]*"
_DOT_SEGMENT = re.compile(rb"(?:\A|[/\\])%b\.%b(?:\.%b)?(?:[/\\;?#]|\Z)" % (_BLANK, _BLANK, _BLANK))
# Overlong UTF-8 encodings of a dot, a slash and a backslash. RFC 3629 (section 3) forbids them, but
# lenient decoders accept them.
_OVERLONG = (
    *((overlong, b".") for overlong in (b"\xc0\xae", b"\xe0\x80\xae", b"\xf0\x80\x80\xae")),
    *((overlong, b"/") for overlong in (b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf")),
    *((overlong, b"\\") for overlong in (b"\xc1\x9c", b"\xe0\x81\x9c", b"\xf0\x80\x81\x9c")),
)
# Captured strings are searched for dot segments as received, decoded once and decoded twice. Some
# services decode twice; no service is known to decode more often.
_DECODINGS = 3
_SLASHES: Final = re.compile("//+")


class Segment(NamedTuple):
    """One segment of a template: `prefix{capture}suffix`, or only `prefix` if it is literal.

    A `tail` capture, written `{name*}`, captures the rest of the path including its slashes. For a
    path that ends in the slash before it, it captures an empty string.
    """

    prefix: str
    capture: str | None = None
    suffix: str = ""
    tail: bool = False

    def match(self, text: str) -> str | None:
        """Return the captured part of `text`, which is never empty; None without a match."""
        end = len(text) - len(self.suffix)
        if (
            end <= len(self.prefix)
            or not text.startswith(self.prefix)
            or not text.endswith(self.suffix)
        ):
            return None
        return text[len(self.prefix) : end]

    @property
    def shape(self) -> tuple[str, bool, str, bool]:
        """The properties that determine the matching strings: all but the name of the capture."""
        return (self.prefix, self.capture is not None, self.suffix, self.tail)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The sort key of captures at the same position; more literal text is tried first.

        Among captures with equally long text, the one with the longer prefix is tried first, so
        that the order of declaration has no effect.
        """
        return (self.tail, -len(self.prefix) - len(self.suffix), -len(self.prefix))


class Template(NamedTuple):
    """A path template: a path with captures, such as `/v{version}/person` or `/users/{id}`."""

    text: str
    segments: tuple[Segment, ...]
    captures: tuple[str, ...]

    @property
    def shape(self) -> tuple[tuple[str, bool, str, bool], ...]:
        """The properties that determine the matching paths; equal shapes are ambiguous."""
        return tuple(part.shape for part in self.segments)

    @property
    def literal(self) -> int:
        return sum(len(part.prefix) + len(part.suffix) for part in self.segments)

    def fill(self, captures: Mapping[str, str]) -> str:
        """Replace every capture by its raw value; raises KeyError if a value is missing."""
        if not self.captures:
            return self.text
        path = "".join(
            f"/{part.prefix}{'' if part.capture is None else captures[part.capture]}{part.suffix}"
            for part in self.segments
        )
        if "//" in path and "//" not in self.text:
            # The value of a tail capture was empty or ended in a slash, and another slash follows
            # here.
            return _SLASHES.sub("/", path)
        return path


def parse_template(text: str) -> Template:
    """Parse a path template; raises ValueError, whose message is a sentence for the operator."""
    if not text.startswith("/"):
        raise ValueError(f"a path starts with a slash; write '/{text}'")
    parts = text[1:].split("/")
    if parts[-1] == "" and text.endswith("*}/"):
        raise ValueError(
            f"'{parts[-2]}' matches paths with and without a final slash; remove the slash"
            " behind it"
        )
    segments = tuple(
        _segment(part, last=index == len(parts) - 1) for index, part in enumerate(parts)
    )
    captures = tuple(part.capture for part in segments if part.capture is not None)
    for name in captures:
        if captures.count(name) > 1:
            raise ValueError(f"'{{{name}}}' occurs twice; every capture needs a different name")
    return Template(text, segments, captures)


def _segment(text: str, *, last: bool) -> Segment:
    captures = list(_CAPTURE.finditer(text))
    if len(captures) > 1:
        raise ValueError(f"segment '{text}' has several captures; a segment can have one")
    if not captures:
        _check_literal(text, text)
        if _DOTS.match(text):
            raise ValueError("dot segments never match; remove them")
        return Segment(text)
    (capture,) = captures
    prefix, suffix = text[: capture.start()], text[capture.end() :]
    _check_literal(prefix, text)
    _check_literal(suffix, text)
    tail = bool(capture.group(2))
    if tail and (prefix or suffix or not last):
        raise ValueError(
            f"'{text}' captures the rest of the path; it must be the whole last segment"
        )
    return Segment(prefix, capture.group(1), suffix, tail)


def _check_literal(literal: str, segment: str) -> None:
    if not _LITERAL.match(literal):
        raise ValueError(
            f"segment '{segment}' has a character that is invalid in a path (RFC 3986, 3.3);"
            " percent-encode it, and write captures as '{name}'"
        )


class _Node(Generic[T]):
    __slots__ = ("captures", "end", "literals")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[T]] = {}
        self.captures: list[tuple[Segment, _Node[T]]] = []
        self.end: tuple[Template, T] | None = None


_Found = tuple[T, Mapping[str, str]] | None


class _LookupCache(dict[str, _Found[T]]):
    """A cache of lookups by path, within a memory budget.

    The cache has two generations. When the younger generation has used up its half of the budget,
    it replaces the older one. A path that is found in the older generation moves to the younger
    one.
    """

    def __init__(self, search: Callable[[str], _Found[T]], room: int) -> None:
        super().__init__()
        self._search = search
        self._older: dict[str, _Found[T]] = {}
        self._room = self._left = room

    def __missing__(self, path: str) -> _Found[T]:
        found = self._older[path] if path in self._older else self._search(path)
        self._left -= _ENTRY_BYTES + 2 * len(path) * (1 if path.isascii() else 4)
        if self._left < 0:
            self._older = dict(self)
            self.clear()
            self._left = self._room
        self[path] = found
        return found


class Router(Generic[T]):
    """An immutable map from path templates to targets, such as endpoints."""

    __slots__ = ("_cache", "_exact", "_root", "_search", "_targets")

    def __init__(
        self, routes: Iterable[tuple[Template, T]], cache_bytes: int = 2 * _CACHE_BYTES
    ) -> None:
        """Build the map; raises ValueError if two templates match the same paths."""
        self._exact: dict[str, tuple[T, Mapping[str, str]]] = {}
        self._root: _Node[T] = _Node()
        # Not a method: the cache would then form a reference cycle, and only a garbage collection
        # could free a replaced router.
        self._search = partial(_search, self._root, self._exact)
        self._cache = _LookupCache(self._search, cache_bytes // 2)
        targets: list[T] = []
        seen: dict[object, Template] = {}
        for template, target in routes:
            other = seen.setdefault(template.shape, template)
            if other is not template:
                raise ValueError(f"'{template.text}' matches the same paths as '{other.text}'")
            targets.append(target)
            if template.captures:
                self._insert(template, target)
            else:
                self._exact[template.text] = (target, {})
        self._targets = tuple(targets)

    def _insert(self, template: Template, target: T) -> None:
        node = self._root
        for segment in template.segments:
            if segment.capture is None:
                node = node.literals.setdefault(segment.prefix, _Node())
                continue
            # Captures of the same shape share a node regardless of their names. Otherwise the names
            # would determine which template is tried first.
            for known, child in node.captures:
                if known.shape == segment.shape:
                    node = child
                    break
            else:
                child = _Node()
                node.captures.append((segment, child))
                node.captures.sort(key=lambda pair: pair[0].rank)
                node = child
        node.end = (template, target)

    def __len__(self) -> int:
        return len(self._targets)

    def __iter__(self) -> Iterator[T]:
        return iter(self._targets)

    def find(self, path: str) -> tuple[T, Mapping[str, str]] | None:
        """Return the target whose template matches `path` and the raw captures, or None.

        A literal segment takes precedence over a capture, and a capture with more literal text over
        one with less. A path that ends in a slash does not match a tail capture if another template
        matches the path without that slash: many services ignore the slash, so the request would
        bypass the configuration of the other template.
        """
        exact = self._exact.get(path)
        if exact is not None:
            return exact
        return self._cache[path] if len(path) <= _SHORT else self._search(path)


def _search(
    root: _Node[T], exact: Mapping[str, tuple[T, Mapping[str, str]]], path: str
) -> tuple[T, Mapping[str, str]] | None:
    if not path.startswith("/"):
        return None
    values: list[str] = []
    parts = path[1:].split("/")
    end = _walk(root, parts, 0, values)
    if end is None:
        return None
    template, target = end
    if path.endswith("/") and template.segments[-1].tail:
        other = _walk(root, parts[:-1], 0, [])
        if path[:-1] in exact or (other is not None and other[0] is not template):
            return None
    return target, dict(zip(template.captures, values, strict=True))


def _walk(
    node: _Node[T], parts: list[str], index: int, values: list[str]
) -> tuple[Template, T] | None:
    if index == len(parts):
        return node.end
    child = node.literals.get(parts[index])
    if child is not None:
        found = _walk(child, parts, index + 1, values)
        if found is not None:
            return found
    for segment, child in node.captures:
        if segment.tail:
            rest = "/".join(parts[index:])
            if not all(parts[index:-1]) or has_dot_segment(rest):
                continue
            values.append(rest)
            return child.end
        taken = segment.match(parts[index])
        if taken is None or has_dot_segment(taken) or has_dot_segment(parts[index]):
            continue
        values.append(taken)
        found = _walk(child, parts, index + 1, values)
        if found is not None:
            return found
        values.pop()
    return None


def has_dot_segment(text: str) -> bool:
    r"""Return whether a service could read a dot segment (`.` or `..`) in a captured string.

    Examples are `..%2fadmin`, `..\`, `..;/`, `..%20` and `..%00`. Services may percent-decode the
    string, treat a backslash as a slash (WHATWG URL, section 4.4), drop parameters after a
    semicolon (RFC 3986, section 3.3), drop blanks, or end the string at a zero byte.
    """
    if "." not in text and "%" not in text:
        return False
    data = text.encode("utf-8", "surrogateescape")
    for _ in range(_DECODINGS):
        for overlong, plain in _OVERLONG:
            data = data.replace(overlong, plain)
        if _DOT_SEGMENT.search(data):
            return True
        if b"%" not in data:
            return False
        data = unquote_to_bytes(data)
    return False


ANY = "~any~"
"""The placeholder for captured text in a path; no configured path contains it."""


def shared_path(one: Template, other: Template) -> str | None:
    """Return the most general path that both templates match, or None if there is no such path."""
    count = max(len(one.segments), len(other.segments))
    segments = _stretched(one, count), _stretched(other, count)
    if len(segments[0]) != len(segments[1]):
        return None
    texts = [_shared_text(*pair) for pair in zip(*segments, strict=True)]
    return None if None in texts else "".join(f"/{text}" for text in texts)


def _stretched(template: Template, count: int) -> tuple[Segment, ...]:
    """If the last segment is a tail capture, repeat it to get `count` segments."""
    *others, last = template.segments
    if not last.tail:
        return template.segments
    return (*others, *[last._replace(tail=False)] * (count - len(others) - 1), last)


def _shared_text(one: Segment, other: Segment) -> str | None:
    text = next((each.prefix for each in (one, other) if each.capture is None), None)
    if text is None:
        prefix = max(one.prefix, other.prefix, key=len)
        text = f"{prefix}{ANY}{max(one.suffix, other.suffix, key=len)}"
    return text if _matches(one, text) and _matches(other, text) else None


def _matches(segment: Segment, text: str) -> bool:
    if segment.capture is None:
        return text == segment.prefix
    # A tail capture matches an empty string after a slash.
    return segment.match(text) is not None or (segment.tail and not text)
