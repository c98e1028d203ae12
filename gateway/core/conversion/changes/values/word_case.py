"""Cases: how the words of a name are written together, as in orderLine and order_line.

Each case writes exactly the names that each other writes, so that a name that is in one of them
comes back as it was.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum


class WordCase(StrEnum):
    """The cases."""

    CAMEL = "camel"
    PASCAL = "pascal"
    SNAKE = "snake"
    KEBAB = "kebab"
    UPPER_SNAKE = "upper_snake"


_LOWER = "[a-z][a-z0-9]*"
_NAMES = {
    WordCase.CAMEL: re.compile(rf"{_LOWER}(?:[A-Z][a-z0-9]*)*\Z", re.ASCII),
    WordCase.PASCAL: re.compile(r"(?:[A-Z][a-z0-9]*)+\Z", re.ASCII),
    WordCase.SNAKE: re.compile(rf"{_LOWER}(?:_{_LOWER})*\Z", re.ASCII),
    WordCase.KEBAB: re.compile(rf"{_LOWER}(?:-{_LOWER})*\Z", re.ASCII),
    WordCase.UPPER_SNAKE: re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*\Z", re.ASCII),
}


@dataclass(frozen=True, slots=True)
class CaseRewriting:
    """What writes the names of one case in another.

    A name that is in neither stays as it is. So does, with `keep`, one that is in the target's case
    alone, though the way back writes it otherwise; without, it is refused.
    """

    source: WordCase
    target: WordCase
    keep: bool = False

    _known: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __call__(self, name: str) -> str:
        """Return the name in the target's case; raises ValueError."""
        known = self._known.get(name)
        if known is None:
            known = self._rewritten(name)
            if len(self._known) < _MOST:
                self._known[name] = known
        return known

    def _rewritten(self, name: str) -> str:
        if _NAMES[self.source].match(name):
            return _joined(_words(name, self.source), self.target)
        in_target = _NAMES[self.target].match(name)
        if in_target and not self.keep:
            raise ValueError(f"expected {self.source} case, found {self.target} case")
        return name


# Names come from clients too, and are not to fill the memory.
_MOST = 4096


def _words(name: str, case: WordCase) -> list[str]:
    match case:
        case WordCase.CAMEL | WordCase.PASCAL:
            return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]", name)]
        case WordCase.KEBAB:
            return name.split("-")
        case _:
            return name.lower().split("_")


def _joined(words: list[str], case: WordCase) -> str:
    match case:
        case WordCase.CAMEL:
            return words[0] + "".join(word.capitalize() for word in words[1:])
        case WordCase.PASCAL:
            return "".join(word.capitalize() for word in words)
        case WordCase.SNAKE:
            return "_".join(words)
        case WordCase.KEBAB:
            return "-".join(words)
        case _:
            return "_".join(words).upper()
