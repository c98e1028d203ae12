"""The mechanism `query`, and query parameters that a service may confuse with the version.

Servers parse names in different ways. PHP strips leading spaces, ends a name at NUL and reads
`a.b`, `a b` and `a[b` as `a_b`. PHP, Rack and qs read `a[]`, `a[x]` and `[a]` as `a`. ASP.NET
ignores case and decodes `%u0061`. Older parsers also split at semicolons. Other servers decode
twice or trim names.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal
from urllib.parse import quote, unquote, unquote_to_bytes

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.request import RequestHead
from gateway.base.urls import parameter_values, parameters
from gateway.versions.reader import OptionalMechanism, Reader, VersionAddress
from gateway.versions.version import Version

# A query up to the first percent sign in a name.
_CODED_NAME = re.compile(r"(?:[^=&;%]*+(?:=[^&;]*+)?[&;])*+[^=&;%]*+%")
_VALUE = re.compile(r"=[^&;]*")
_SEPARATOR = re.compile("[&;]")
_CODED_UNIT = re.compile(rb"%u([0-9A-Fa-f]{4})")
# Overlong encodings of ASCII characters, which RFC 3629 (section 3) forbids.
_OVERLONG = re.compile(
    rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80\x81][\x80-\xbf]|\xf0\x80[\x80\x81][\x80-\xbf]"
)
_DECODINGS = 2
# The characters that PHP reads as an underscore.
_UNDERSCORE = " ._["
_PLAIN = re.compile(r"[^ ._\[\]+!?]+")
_CONTROLS = re.compile(r"[\0-\x1f\x7f\ud800-\udfff]")
# The bytes 0x80 to 0x9F, which PHP reads as underscores.
_PHP_BYTES = re.compile("[\udc80-\udc9f]")


@dataclass(frozen=True, slots=True)
class _ParameterLookalikes:
    """Finds parameters that a service may confuse with the parameter `name`.

    Attributes:
        needle: A lower-case string that every look-alike without percent-encoding contains.
        exact: A pattern of the name in any encoding.
        pattern: A pattern of look-alikes in a normalized string.
    """

    name: str
    needle: str
    exact: re.Pattern[str]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, name: str, exact: re.Pattern[str]) -> "_ParameterLookalikes | None":
        base = _base(_folded(name))
        if not base:
            return None
        letters = (
            f"[{re.escape(_UNDERSCORE)}]" if c in _UNDERSCORE else re.escape(c) for c in base
        )
        needle = max(_PLAIN.findall(base), key=len, default="")
        begin, end = r"(?:\A|[&;?\0])[ !\[\]]*", r"[ \[\]]*?(?:\Z|[&;=\[\]\0])"
        pattern = re.compile(f"{begin}{''.join(letters)}{end}")
        return cls(name, needle, exact, pattern)

    def find(self, query: str) -> str | None:
        # Fast path: in most queries, `needle` occurs only in the parameter itself.
        own = f"{self.name}="
        found = query.count(f"&{own}") + query.startswith(own)
        if query.lower().count(self.needle) == found and not (
            "%" in query and _CODED_NAME.match(query)
        ):
            return None
        text = _VALUE.sub("", self.exact.sub("", query))
        if not self._is_in(text):
            return None
        names = _SEPARATOR.split(text)
        while len(names) > 1:  # bisection, so that the time is linear in the length of the query
            half = names[: len(names) // 2]
            names = half if self._is_in("&".join(half)) else names[len(half) :]
        name = names[0]
        if self.exact.fullmatch(name):  # a look-alike only because of a semicolon
            return f";{name}" if f";{name}" in query else f"{name};"
        return name

    def _is_in(self, names: str) -> bool:
        text = _decoded(names)
        forms = {_CONTROLS.sub("\0", _PHP_BYTES.sub("_", text)), _CONTROLS.sub("", text)}
        return any(self.pattern.search(_folded(form)) is not None for form in forms)


def _decoded(text: str) -> str:
    data = text.replace("+", " ").encode(errors="surrogatepass")
    for _ in range(_DECODINGS):
        if b"%" not in data:
            break
        data = _CODED_UNIT.sub(lambda unit: chr(int(unit[1], 16)).encode(errors="ignore"), data)
        data = _OVERLONG.sub(_shortest, unquote_to_bytes(data))
    return data.decode(errors="surrogateescape").replace("+", " ")


def _shortest(overlong: re.Match[bytes]) -> bytes:
    *_, high, low = overlong[0]
    return bytes([(high & 0x01) << 6 | low & 0x3F])


def _folded(text: str) -> str:
    """Return a string in lower case, without accents and invisible characters."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    # Mn and Cf are the categories of combining marks and of invisible format characters.
    shown = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Cf"))
    return shown.upper().casefold()


def _base(name: str) -> str:
    name = name.strip(" !?[]")
    closed = name.find("[")
    return name[:closed] if closed > 0 and "]" in name[closed:] else name


@dataclass(frozen=True, slots=True)
class QueryReader(Reader):
    """Reads the version from a query parameter, whose name is case-sensitive."""

    name: str
    lookalikes: _ParameterLookalikes | None = field(init=False, repr=False, compare=False)

    mechanism = "query"
    can_be_added = True
    has_lookalikes = True

    def __post_init__(self) -> None:
        found = _ParameterLookalikes.of(self.name, parameters(self.name))
        object.__setattr__(self, "lookalikes", found)

    @property
    def parameter(self) -> str:
        return self.name

    @property
    def place(self) -> str:
        return f"the query parameter '{self.name}'"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        return parameter_values(head.query, self.name)

    def lookalike(self, head: RequestHead) -> str | None:
        if not head.query or self.lookalikes is None:
            return None
        return self.lookalikes.find(head.query)

    def address(self, version: Version) -> VersionAddress:
        return VersionAddress(query=f"{quote(self.name)}={version}")

    def rewrite_query(self, query: str, label: str) -> str:
        if "%" in query or "+" in query:

            def written(found: re.Match[str]) -> str:
                named = unquote(found[3] or "") == label
                return found[0] if named else f"{found[1]}{found[2]}={label}"

            return parameters(self.name).sub(written, query)
        pairs = []
        for pair in query.split("&"):
            name = pair.partition("=")[0]
            pairs.append(f"{name}={label}" if name == self.name else pair)
        return "&".join(pairs)

    def add_to_query(self, query: str | None, label: str) -> str:
        if query and parameters(self.name).search(query):
            return query
        return f"{query}&{quote(self.name)}={label}" if query else f"{quote(self.name)}={label}"


class QueryVersion(OptionalMechanism):
    """The version is the value of a query parameter."""

    in_: Annotated[Literal["query"], Field(alias="in")]
    name: Annotated[str, Field(min_length=1)]
    """The name of the parameter, case-sensitive.

    Only & separates parameters; a semicolon is part of a value (WHATWG URL, section 5.1).
    """

    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> QueryReader:
        return QueryReader(self.name)
