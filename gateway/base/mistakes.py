"""Mistakes in a configuration, each with its location and a suggested fix."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from gateway.base.files import Stamp

T = TypeVar("T")
U = TypeVar("U")
Location = tuple[str | int, ...]

# The maximum number of mistakes in a report, and the maximum length of each in characters.
_MAX_SHOWN = 100
_MAX_LENGTH = 1000
# A hint lists all known names up to the first number. If there are more, it lists only the nearest.
_MAX_KNOWN, _NEAREST = 8, 5

LOSSY = "warning: lossy towards"
_WARNING, _ALLOWED = "warning: ", "allowed: "


class Issue(NamedTuple):
    """The line and the column count from 1; they are 0 if the position is unknown.

    `file` is the name of an included file, and `before` the number of lines before it in the text
    of all files.
    """

    line: int
    column: int
    place: str
    text: str
    file: str = ""
    before: int = 0

    @property
    def is_allowed(self) -> bool:
        return self.text.startswith(_ALLOWED)


class ConfigError(Exception):
    """A configuration that cannot be used; `files` has the stamps of its files, as far as known."""

    def __init__(
        self, source: str, issues: list[Issue], files: Mapping[Path, Stamp] | None = None
    ) -> None:
        self.source = source
        self.files = files or {}
        once = dict.fromkeys(issues)  # the same mistake of an API may be found at each endpoint
        self.issues = tuple(in_order(once))
        super().__init__(self.report())

    def report(self) -> str:
        lines = list(report(self.source, self.issues[:_MAX_SHOWN]))
        if len(self.issues) > _MAX_SHOWN:
            lines.append(f"{self.source}: and {len(self.issues) - _MAX_SHOWN} more")
        return "\n".join(lines)


def in_order(issues: Iterable[Issue]) -> list[Issue]:
    """Sort issues by position in the file, with lossy conversions and allowed losses last."""

    def key(one: Issue) -> tuple[bool, bool, int, int]:
        line = one.before + one.line
        return one.is_allowed, one.text.startswith(LOSSY), line, one.column

    return sorted(issues, key=key)


def report(source: str, issues: Iterable[Issue]) -> Iterator[str]:
    """Yield one line per issue in the format of compilers, `file:line:column: text`."""
    for issue in issues:
        line = f":{issue.line}:{issue.column}: " if issue.line else ": "
        file = Path(source).parent / issue.file if issue.file else source
        text = f"{issue.place}: {issue.text}" if issue.place else issue.text
        shown = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
        yield f"{file}{line}{printable(shown)}"


def printable(text: str) -> str:
    """Escape the unprintable characters of a string, such as line ends and terminal sequences.

    Quoted parts of files and bodies may contain any character.
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


class Mistake(NamedTuple):
    """A mistake or warning at a location of the document; the line is determined later."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Collects mistakes and warnings, so that one run reports all; all locations start at `at`."""

    found: list[Mistake] = field(default_factory=list)
    warnings: list[Mistake] = field(default_factory=list)
    at: Location = ()

    def below(self, *location: str | int) -> "Mistakes":
        """Return a view on the same lists with locations relative to a part of the document."""
        return replace(self, at=(*self.at, *location))

    @property
    def root(self) -> "Mistakes":
        return replace(self, at=())

    def add(self, text: str, *location: str | int) -> None:
        self.found.append(Mistake((*self.at, *location), text))

    def warn(self, text: str, *location: str | int) -> None:
        self.warnings.append(Mistake((*self.at, *location), text))

    def warn_of_loss(self, text: str, reason: str | None, *location: str | int) -> None:
        """Add a warning about lost data, which is allowed if `allow_loss` has a reason.

        A loss that was already added is ignored, since conversions may share a group.
        """
        if reason is not None:
            text = f"{_ALLOWED}{text.removeprefix(_WARNING)} ({reason})"
        loss = Mistake((*self.at, *location), text)
        if loss not in self.warnings:
            self.warnings.append(loss)

    def attempt(self, make: Callable[[], T], *location: str | int) -> T | None:
        """Return the result of `make`; on ValueError, add the mistake and return None."""
        try:
            return make()
        except ValueError as error:
            self.add(str(error), *location)
            return None

    def attempt_each(
        self, make: Callable[[U], T], values: Iterable[U], *location: str | int
    ) -> tuple[T, ...]:
        """Return the results for all values; on ValueError, add the mistake at the index."""
        made = (
            self.attempt(partial(make, each), *location, index) for index, each in enumerate(values)
        )
        return tuple(each for each in made if each is not None)

    def look_up(
        self, name: str, table: Mapping[str, T], what: str, *location: str | int
    ) -> T | None:
        """Return the entry with this name; if there is none, add a mistake and return None."""
        if name in table:
            return table[name]
        self.add(f"no {what} is called '{name}'; {suggest(name, table)}", *location)
        return None


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the name that was probably meant, or the known names."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if len(names) <= _MAX_KNOWN:
        return f"known: {', '.join(names) or 'none'}"
    nearest = get_close_matches(name, names, n=_NEAREST, cutoff=0.0)
    return f"known: {', '.join(nearest)} and {len(names) - _NEAREST} more"


def place(location: Location) -> str:
    """Format a location, for example as `apis.person.endpoints[2].path`."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
