"""Every module of the gateway with logic has its mirror under tests/, or says what covers it.

The mirror of `gateway/state/totals.py` is `tests/gateway/state/test_totals.py`. A module that is
better covered elsewhere stands in tests/mirrors.txt, a line each:

    gateway/proxy/handler.py  tests/gateway/live/test_faults.py  why there, in a few words

A `*` in the name of the module stands for all of a family that one test takes from a list.
"""

import ast
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "mirrors.txt"
MODULES = {
    path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "gateway").rglob("*.py"))
}


class Exempt(NamedTuple):
    """A line of the list: a module, the tests that cover it, and why there."""

    module: str
    tests: tuple[str, ...]
    reason: str


def exempt() -> list[Exempt]:
    """Return the lines of the list; tests are those words that are paths."""
    found = []
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            module, *words = line.split()
            tests = tuple(word for word in words if word.startswith("tests/"))
            found.append(Exempt(module, tests, " ".join(words[len(tests) :])))
    return found


def mirror(module: str) -> Path:
    """Return where the mirror of a module belongs."""
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.stem}.py"


def has_logic(module: str) -> bool:
    """Whether a module has a branch, a loop or a call in a function; names and docs have none."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(
        isinstance(inner, ast.Call | ast.If | ast.IfExp | ast.For | ast.While | ast.Compare)
        for node in ast.walk(ast.parse(MODULES[module].read_text()))
        if isinstance(node, functions)
        for statement in node.body
        for inner in ast.walk(statement)
    )


EXEMPT = {line.module: line for line in exempt()}


def test_a_module_has_its_mirror_or_a_reason() -> None:
    bare = [
        module
        for module in MODULES
        if not mirror(module).exists()
        and not any(fnmatch(module, name) for name in EXEMPT)
        and has_logic(module)
    ]
    assert bare == [], (
        f"{bare[0]} has no {mirror(bare[0]).relative_to(ROOT)}; write it, or add a line to"
        f" tests/mirrors.txt: {bare[0]}  THE TESTS THAT COVER IT  WHY THERE"
    )


@pytest.mark.parametrize("line", EXEMPT.values(), ids=list(EXEMPT))
def test_the_list_is_true(line: Exempt) -> None:
    meant = [name for name in MODULES if fnmatch(name, line.module)]
    bare = [name for name in meant if not mirror(name).exists()]
    assert meant, f"{line.module} is gone; take its line out of tests/mirrors.txt"
    assert bare, f"{line.module} has a mirror; take its line out"
    assert line.tests, f"{line.module}: name the tests that cover it"
    missing = [name for name in line.tests if not (ROOT / name).exists()]
    assert not missing, f"{line.module}: there are no such tests; name those that cover it"
    assert line.reason, f"{line.module}: say why it is covered there"


def test_the_list_is_in_order_and_names_each_once() -> None:
    names = [line.module for line in exempt()]
    assert names == sorted(set(names))


def test_what_counts_as_logic() -> None:
    assert has_logic("gateway/state/totals.py")
    assert not has_logic("gateway/verify/live/answer_sample.py")
