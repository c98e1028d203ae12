"""Media types with the version in a parameter, as in `application/json; v=2`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from gateway.base.headers import HeaderFields
from gateway.base.mistakes import Mistakes
from gateway.versions.mechanisms.media_range import MediaRange, parse_accept
from gateway.versions.reader import Reader

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE = rb'(?:%b|"(?:[^"\\]|\\.)*")' % _TOKEN
_WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ParameterReader(Reader):
    """Reads a parameter of media types in Accept or Content-Type.

    Attributes:
        essence: the type and subtype in lower case. `*/*` matches all media types, and `text/*` all
            types of text.
        names_response: whether responses get the requested media type. Otherwise they keep the
            media type of the service.
    """

    essence: str
    parameter: str
    names_response: bool = False
    _pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    header = "Accept"

    def __post_init__(self) -> None:
        kind, _, subtype = (re.escape(part.encode()) for part in self.essence.partition("/"))
        wildcard = re.escape(_WILDCARD.encode())
        essence = rb"%b/%b" % (
            _TOKEN if kind == wildcard else kind,
            _TOKEN if subtype == wildcard else subtype,
        )
        # A member of a list: its essence, other parameters, and the value of this parameter.
        others = rb"(?:[ \t]*;[ \t]*(?:(?!%b=)%b=%b)?)*"
        name = re.escape(self.parameter.encode())
        begin = rb"((?<![^ \t,])%b%b[ \t]*;[ \t]*%b=)" % (
            essence,
            others % (name, _TOKEN, _VALUE),
            name,
        )
        found = re.compile(begin + rb"(%b)" % _VALUE, re.IGNORECASE)
        object.__setattr__(self, "_pattern", found)

    @property
    def place(self) -> str:
        return f"the header {self.header}, as {self.media_type('<version>')}"

    @property
    def vary(self) -> tuple[str, ...]:
        return (self.header,)

    def media_type(self, version: object) -> str:
        return f"{self.essence}; {self.parameter}={version}"

    def versions(self, ranges: Sequence[MediaRange]) -> Iterator[tuple[str, float]]:
        for member in ranges:
            if _matches(member.essence, self.essence):
                named = [value for name, value in member.parameters if name == self.parameter]
                if len(named) == 1:  # a repeated parameter has no meaning
                    yield named[0], member.weight

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        def value_of(name: bytes, value: bytes) -> bytes:
            def written(found: re.Match[bytes]) -> bytes:
                known = found[2].strip(b'"').decode("latin-1")
                keeps = name == b"content-type" and not is_replaced(known)
                return found[0] if keeps else found[1] + label.encode()

            return self._pattern.sub(written, value)

        return [
            (line[0], value_of(low, line[1]))
            if (low := line[0].lower()) in (b"accept", b"content-type")
            else line
            for line in fields
        ]


_PLACE = re.compile(
    r"(\*/\*|[a-z0-9][a-z0-9!#$&^_.+-]*/(?:\*|[a-z0-9!#$&^_.+-]+))"
    r"[ \t]*;[ \t]*([a-z0-9!#$&^_.+-]+)=\{version\}\Z"
)


def names_parameter(media_type: str) -> bool:
    return ";" in media_type.partition("{version}")[0]


def parse_parameter(media_type: str, mistakes: Mistakes) -> tuple[str, str] | None:
    """Return the lower-case media type and the name of its parameter; None after a mistake."""
    match = _PLACE.match(media_type.lower())
    if match is None or match[2] == "q":
        mistakes.add(
            "not a media type with one parameter that is the version; write one like"
            " application/json; v={version}, or */*; v={version} for any media type"
        )
        return None
    return match[1], match[2]


@lru_cache(maxsize=1024)
def parsed_ranges(*lines: str) -> tuple[MediaRange, ...]:
    return tuple(parse_accept(lines))


def _matches(essence: str, pattern: str) -> bool:
    return all(
        one in (_WILDCARD, other)
        for one, other in zip(pattern.split("/"), essence.split("/"), strict=True)
    )
