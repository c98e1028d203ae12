"""The plan of the house, kept: imports go downward only, the core is pure, files are short.

Read from the source by `ast`, so that an import inside a function counts as well.
"""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = ("gateway", "backend_v1", "backend_v2", "users_service")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for program in PROGRAMS
    for path in sorted((ROOT / program).rglob("*.py"))
}
GATEWAY = [name for name in MODULES if name.startswith("gateway")]
CORE = [name for name in MODULES if name.startswith("gateway.core")]

# From the ground up. What stands on one floor may use what is on it and below.
FLOORS = (
    ("core",),
    ("config",),
    ("wire",),
    ("operation", "settings", "verification"),
    ("app", "command"),
    ("__main__",),
)
# The gateway's own docstring is the glossary, and imports nothing.
FLOOR = {"": 0} | {part: height for height, parts in enumerate(FLOORS) for part in parts}

# The core decides and does nothing: no I/O, no clock, no chance, no event loop.
IMPURE = {
    *("asyncio", "concurrent", "multiprocessing", "sched", "signal", "subprocess", "threading"),
    *("http", "select", "selectors", "socket", "socketserver", "ssl", "urllib.request"),
    *("fileinput", "io", "logging", "os", "pathlib", "shutil", "sqlite3", "sys", "tempfile"),
    *("random", "secrets", "time", "uuid"),
}
MAX_LINES = 350


def tree(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[module].read_text())


def imports(module: str) -> set[str]:
    """Return the full names of the modules that a module imports."""
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{_origin(module, node)}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else name.rpartition(".")[0] for name in inner}
    return names


def _origin(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".")
    if MODULES[module].stem != "__init__":
        package.pop()
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def floor(module: str) -> int:
    """Return how high a module of the gateway stands."""
    return FLOOR[module.split(".")[1] if "." in module else ""]


def test_there_is_something_to_read() -> None:
    assert len(MODULES) > 40
    assert "gateway.core.conversion.changes" in imports("gateway.config.declared")
    assert "backend_v1.model" in imports("backend_v1.app")


@pytest.mark.parametrize("module", GATEWAY)
def test_imports_go_downward(module: str) -> None:
    upward = [
        other for other in imports(module) if other in MODULES and floor(other) > floor(module)
    ]
    assert not upward


@pytest.mark.parametrize("module", MODULES)
def test_no_program_imports_another(module: str) -> None:
    own = module.partition(".")[0]
    others = {*PROGRAMS, "tests", "stack"} - {own}
    assert not others & {name.partition(".")[0] for name in imports(module)}


def test_no_imports_in_a_circle() -> None:
    above = {name: imports(name) & MODULES.keys() for name in MODULES}
    # What needs nothing that is left can be taken away; a circle is what never can be.
    while free := [name for name, needs in above.items() if not needs]:
        above = {name: needs - set(free) for name, needs in above.items() if name not in free}
    assert not above


@pytest.mark.parametrize("module", CORE)
def test_the_core_needs_the_standard_library_only(module: str) -> None:
    roots = {name.partition(".")[0] for name in imports(module)} - {"gateway"}
    assert roots <= sys.stdlib_module_names


@pytest.mark.parametrize("module", CORE)
def test_the_core_does_nothing(module: str) -> None:
    assert not any(name in IMPURE or name.partition(".")[0] in IMPURE for name in imports(module))
    called = {
        node.func.id
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "print", "input", "exec", "eval", "__import__"}
    asynchronous = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    assert not any(isinstance(node, asynchronous) for node in ast.walk(tree(module)))


@pytest.mark.parametrize("module", CORE)
def test_the_core_is_frozen(module: str) -> None:
    """Every dataclass; `_Node` alone is filled by the constructor of the Router that owns it."""
    loose = [
        node.name
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if "dataclass" in ast.unparse(decorator) and "frozen=True" not in ast.unparse(decorator)
    ]
    assert loose == (["_Node"] if module == "gateway.core.routing" else [])


@pytest.mark.parametrize("module", MODULES)
def test_files_are_short(module: str) -> None:
    assert len(MODULES[module].read_text().splitlines()) <= MAX_LINES
