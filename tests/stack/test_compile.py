"""The modules that stack/compile.py compiles: they exist, and mypyc can compile them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.compile import modules
from tests.gateway.kit import ROOT

SOURCES = {name: ROOT / f"{name.replace('.', '/')}.py" for name in modules()}


def test_the_compiled_modules_are_sorted_and_exist() -> None:
    assert list(SOURCES) == sorted(set(SOURCES))
    assert [name for name, path in SOURCES.items() if not path.is_file()] == []


def test_there_are_no_compiled_modules_next_to_the_sources() -> None:
    """Python would import a compiled module instead of its source, even after edits."""
    assert list((ROOT / "gateway").rglob("*.so")) == []


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_an_exception_variable_has_only_one_type_in_a_function(source: Path) -> None:
    """A variable in a compiled coroutine has one type; assigning another raises TypeError."""
    assert list(_ambiguous(source.read_text())) == []


def test_an_exception_variable_with_two_types_is_found() -> None:
    text = "def f():\n try: g()\n except A as e: h(e)\n except B as e: h(e)\n"
    assert list(_ambiguous(text)) == ["f: e"]
    assert list(_ambiguous(text.replace("B as e", "B as other"))) == []


def _ambiguous(text: str) -> Iterator[str]:
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            types = defaultdict(set)
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                    types[node.name].add(ast.unparse(node.type))
            yield from (f"{function.name}: {name}" for name in types if len(types[name]) > 1)
