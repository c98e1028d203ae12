"""The import rules of the architecture: one direction between packages, and decisions without I/O.

They are checked in the source by `ast`, so imports inside functions count too.
"""

import ast
import re
from collections.abc import Callable, Iterable
from functools import cache
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

# A package may import only packages before it.
ORDER = (
    *(
        *("convert", "base", "http", "access", "versions", "conversion", "lifecycle", "rollout"),
        "routing",
    ),
    *("usage", "observe", "store", "proxy", "verify", "findings", "rules", "admin", "process"),
    *("app", "cli", "__main__"),
)
# These packages only decide: they use no I/O, clock, randomness or event loop.
DECIDING = ("versions", "conversion", "lifecycle", "rollout", "routing")
IMPURE = {
    *("asyncio", "concurrent", "multiprocessing", "sched", "signal", "subprocess", "threading"),
    *("aiohttp", "http", "select", "selectors", "socket", "socketserver", "ssl"),
    *("fileinput", "logging", "shutil", "sqlalchemy", "sqlite3", "tempfile"),
    *("random", "secrets", "time", "uuid"),
}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


@cache
def imports(module: str) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{_origin(module, node)}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else name.rpartition(".")[0] for name in inner}
    return frozenset(names)


def _origin(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".")
    if MODULES[module].stem != "__init__":
        package.pop()
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def public_types(module: str) -> list[str]:
    names = []
    for node in tree(module).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.append(node.targets[0].id)
    return [name for name in names if name[0].isupper() and not name.isupper()]


def package(module: str) -> str:
    return module.split(".")[1]


def circle(uses: dict[str, set[str]]) -> set[str]:
    """Return the modules that are part of import cycles or that use such modules."""
    left = {name: others & uses.keys() for name, others in uses.items()}
    while free := {name for name, others in left.items() if not others}:
        left = {name: others - free for name, others in left.items() if name not in free}
    return set(left)


def breaches(places: Iterable[str], found: Callable[[str], object]) -> dict[str, object]:
    """Return the violations by module. One test per module would take longer in total."""
    return {place: wrong for place in places if (wrong := found(place))}


def test_all_modules_are_found_and_their_imports_are_read() -> None:
    assert len(MODULES) > 40
    assert "gateway.conversion.version_step" in imports("gateway.conversion.declared.links")
    assert circle({"a": {"b"}, "b": {"c", "a"}, "c": set()}) == {"a", "b"}
    assert "backend_v1.app" in imports("backend_v1.__main__")


def test_every_package_has_a_position_in_the_order() -> None:
    assert {package(name) for name in GATEWAY if "." in name} == {*ORDER}


def test_packages_import_only_packages_before_them() -> None:
    def upward(module: str) -> list[str]:
        others = [other for other in imports(module) if other.startswith("gateway.")]
        here = ORDER.index(package(module))
        return [other for other in others if ORDER.index(package(other)) > here]

    assert breaches(GATEWAY[1:], upward) == {}


def test_no_program_imports_another() -> None:
    def others(module: str) -> set[str]:
        own = module.partition(".")[0]
        programs = {*PROGRAMS, "tests", "stack"} - {own}
        return programs & {name.partition(".")[0] for name in imports(module)}

    assert breaches(MODULES, others) == {}


def test_there_are_no_import_cycles() -> None:
    assert not circle({name: {*imports(name)} & MODULES.keys() for name in MODULES})


def test_deciding_packages_do_no_io() -> None:
    asynchronous = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    doing = {"open", "print", "input", "exec", "eval", "__import__"}

    def deeds(module: str) -> set[str]:
        found = {name for name in imports(module) if {name, name.partition(".")[0]} & IMPURE}
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found |= {node.func.id} & doing
            elif isinstance(node, asynchronous):
                found.add(type(node).__name__)
        return found

    deciding = [name for name in GATEWAY[1:] if package(name) in DECIDING]
    assert breaches(deciding, deeds) == {}


# A mechanism is described in its own files. No other code may distinguish it from others.
MECHANISMS = [name for name in GATEWAY if name.startswith("gateway.versions.mechanisms.")]
MECHANISM_NAMES = {name for module in MECHANISMS for name in public_types(module)}


def switches(syntax: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(syntax):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            found |= set(re.findall(r"\w+", ast.unparse(node.args[1])))
        elif isinstance(node, ast.MatchClass | ast.Compare):  # as in `type(reader) is QueryReader`
            found |= set(re.findall(r"\w+", ast.unparse(node)))
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    return found & MECHANISM_NAMES


def test_no_code_outside_the_mechanisms_distinguishes_them() -> None:
    others = sorted(set(GATEWAY) - set(MECHANISMS))
    assert breaches(others, lambda module: switches(tree(module))) == {}


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(reader, A | AcceptReader)",
        "type(reader) is AcceptReader",
        "match reader:\n    case readers.AcceptReader(): pass",
    ],
)
def test_code_that_distinguishes_mechanisms_is_detected(code: str) -> None:
    assert len(switches(ast.parse(code))) == 1
