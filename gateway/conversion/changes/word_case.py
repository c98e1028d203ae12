"""Cases: how the words of a name are written together, as in orderLine and order_line.

Each case writes exactly the names that each other writes, so that a name that is in one of them
comes back as it was.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


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
    """A function that rewrites names of one case in another.

    A name in neither case stays as it is. A name in the target's case alone is refused; with
    `keep`, it stays as it is too, although the way back changes it.
    """

    source: WordCase
    target: WordCase
    keep: bool = False

    def __call__(self, name: str) -> str:
        """Return the name in the target's case; raises ValueError."""
        if len(name) > _LONGEST:
            return _rewritten(name, self.source, self.target, self.keep)
        return _known(name, self.source, self.target, self.keep)


def _rewritten(name: str, source: WordCase, target: WordCase, keep: bool) -> str:
    if _NAMES[source].match(name):
        return _joined(_words(name, source), target)
    if _NAMES[target].match(name) and not keep:
        raise ValueError(f"expected {source} case, found {target} case")
    return name


# Names come from clients too, and are not to fill the memory: few are remembered, and short ones.
_LONGEST = 64
_known = lru_cache(maxsize=4096)(_rewritten)


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
