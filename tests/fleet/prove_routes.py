"""The conformance suite of the front proxies once more: HTTPRoutes by `export kubernetes`, run.

The gateway alone is asked the same. Where an implementation puts a path in normal form first, the
gateway is asked with that path.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fleet.exported import exported
from tests.fleet.prove_envoy import CASES, RULES, Case, ask, random_cases, start_backend
from tests.fleet.route_engine import RouteEngine, modified, normal, ranked
from tests.gateway.kit import start_program

# Versions that go straight, of those that the suite asks for.
STRAIGHT = 6


class Ways:
    """The ports of the gateway, and of an implementation of the Gateway API before it.

    Attributes:
        gateway: the gateway alone.
        plain: an implementation that compares paths as they are.
        normal: one that puts them in normal form.
    """

    def __init__(self, gateway: int, plain: int, normal: int) -> None:
        self.gateway = gateway
        self.plain = plain
        self.normal = normal


def routes_of(folder: Path, rules: str) -> list[Any]:
    """Return the HTTPRoutes for rules."""
    (folder / "cluster.yaml").write_text(rules)
    words = ("kubernetes", "cluster.yaml", "--gateway-api", "--parent=public")
    objects = yaml.safe_load_all(exported(folder, *words))
    return [each for each in objects if each["kind"] == "HTTPRoute"]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp("routes")
    with ExitStack() as stack:
        ports = {name: start_backend(stack, name) for name in ("one", "two")} | {"down": 1}
        hosts = re.compile(r"http://[a-z0-9.]+:([A-Z0-9]+)")
        names = {"ONE": "one", "TWO": "two", "1": "down"}
        here = hosts.sub(lambda found: f"http://127.0.0.1:{ports[names[found[1]]]}", RULES)
        there = hosts.sub(lambda found: f"http://{names[found[1]]}:8000", RULES)
        (folder / "gateway.yaml").write_text(here)
        gateway = start_program(stack, folder, "gateway", GATEWAY_CONFIG="gateway.yaml")
        routes = routes_of(folder, there)
        assert sum(len(route["spec"]["rules"]) for route in routes) == STRAIGHT + 1
        ports["version-gateway"] = gateway.port
        plain, other = (
            stack.enter_context(RouteEngine(routes, ports, form).listening())
            for form in (str, normal)
        )
        yield Ways(gateway.port, plain, other)


def in_normal_form(case: Case) -> Case:
    path, mark, query = case.target.partition("?")
    return Case(case.method, normal(path) + mark + query, case.fields, case.host, case.body)


def check(case: Case, ways: Ways) -> None:
    """Check that the same service gives the same answer by all ways."""
    pairs = (
        (ask(ways.plain, case), ask(ways.gateway, case)),
        (ask(ways.normal, case), ask(ways.gateway, in_normal_form(case))),
    )
    for through, alone in pairs:
        assert through == alone, case


@pytest.mark.parametrize("case", [case for case in CASES if case.target != "/down"], ids=str)
def test_all_answer_alike(case: Case, ways: Ways) -> None:
    check(case, ways)


def test_all_answer_alike_whatever_is_asked(ways: Ways) -> None:
    for case in random_cases(400):
        check(case, ways)


def test_what_takes_precedence() -> None:
    def match(kind: str, value: str, **more: Any) -> dict[str, Any]:
        return {"path": {"type": kind, "value": value}, **more}

    matches = [
        match("PathPrefix", "/"),
        match("PathPrefix", "/longer"),
        match("PathPrefix", "/longer", method="GET"),
        match("PathPrefix", "/longer", headers=[{}]),
        match("Exact", "/a"),
        match("PathPrefix", "/longer", headers=[{}, {}]),
        match("PathPrefix", "/longer", queryParams=[{}]),
    ]
    routes: list[Any] = [
        {"metadata": {"name": name}, "spec": {"rules": [{"matches": matches}]}} for name in "ba"
    ]
    order = [4, 2, 5, 3, 6, 1, 0]
    assert [found for found, _ in ranked(routes)] == [
        matches[number] for number in order for _ in routes
    ]
    first = next(rule for _, rule in ranked(routes))
    assert first is routes[1]["spec"]["rules"][0]  # of the name that comes first


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/", "/"),
        ("/a/./b//c", "/a/b/c"),
        ("/a/b/../c", "/a/c"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/../a/", "/a/"),
        ("/%61%2f%2E%2e", "/a%2F.."),
    ],
)
def test_the_normal_form(path: str, form: str) -> None:
    assert normal(path) == form


def test_changed_fields() -> None:
    fields = [("A", "1"), ("b", "2"), ("a", "3"), ("C", "4")]
    change = {
        "set": [{"name": "a", "value": "5"}],
        "add": [{"name": "B", "value": "6"}],
        "remove": ["c"],
    }
    assert modified(fields, change) == [("b", "2"), ("a", "5"), ("B", "6")]
