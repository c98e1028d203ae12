"""What is wrong with a configuration, said so that it can be put right."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Issue:
    """One mistake.

    Attributes:
        line: from 1; 0 where no line is to blame.
        column: from 1; 0 likewise.
        place: where in the document: `apis.person.endpoints[2]`.
        text: what is wrong, and what would be right.
    """

    line: int
    column: int
    place: str
    text: str


class ConfigError(Exception):
    """A configuration that cannot be used; nothing of it takes effect."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.source = source
        once = dict.fromkeys(issues)  # endpoints that share a part of an API share its mistakes
        self.issues = tuple(sorted(once, key=lambda issue: (issue.line, issue.column)))
        super().__init__(self.report())

    def report(self) -> str:
        """Return one line for each mistake."""
        return "\n".join(report(self.source, self.issues))


def report(source: str, issues: Iterable[Issue]) -> Iterator[str]:
    """Yield one line for each issue, in the form that editors and compilers share."""
    for issue in issues:
        line = f":{issue.line}:{issue.column}: " if issue.line else ": "
        text = f"{issue.place}: {issue.text}" if issue.place else issue.text
        yield f"{source}{line}{_printable(text)}"


def _printable(text: str) -> str:
    # What is quoted from the file may hold line breaks, or what terminals take for commands.
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong at a location of the document, before its line is looked up."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Collects what is wrong, so that one run reports all of it."""

    found: list[Mistake] = field(default_factory=list)
    warnings: list[Mistake] = field(default_factory=list)

    def add(self, text: str, *location: str | int) -> None:
        """Record a mistake."""
        self.found.append(Mistake(location, text))

    def warn(self, text: str, *location: str | int) -> None:
        """Record what can be used, but should be known."""
        self.warnings.append(Mistake(location, text))

    def attempt(self, make: Callable[[], T], *location: str | int) -> T | None:
        """Return what `make` returns, or None after recording the ValueError that it raises."""
        try:
            return make()
        except ValueError as error:
            self.add(str(error), *location)
            return None

    def look_up(
        self, name: str, table: Mapping[str, T], what: str, *location: str | int
    ) -> T | None:
        """Return the entry of that name, or None after recording that there is none."""
        if name in table:
            return table[name]
        self.add(f"no {what} is called '{name}'; {suggest(name, table)}", *location)
        return None


def suggest(name: str, known: Iterable[str]) -> str:
    """Say which of the known names was probably meant, or if none is near, which there are."""
    from difflib import get_close_matches  # not before there is a mistake: it is large

    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names) or 'none'}"


def place(location: Location) -> str:
    """Return a location as an operator would say it: `apis.person.endpoints[2].path`."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
