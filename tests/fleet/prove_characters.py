"""Whatever characters rules have, Envoy by `export envoy` routes as the gateway does.

Paths, header fields, parameters and hosts are put together by chance of all characters that rules
may hold, among them those that mean something to patterns, formats and rewrites of Envoy. Requests
are those that the rules name, and some that look almost like them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.fleet.envoy import export, start_envoy
from tests.fleet.prove_envoy import Case, ask, start_backend
from tests.gateway.kit import free_port, start_program

# Characters of a path (RFC 3986, section 3.3), and octets that are encoded there.
LETTERS = [*"abz09-._~!$&'()*+,;=:@", "%24", "%7B", "%25", "%2F", "%5c", "%C3%A4", "%22", "\\1"]
# Those of the name of a field (RFC 9110, section 5.6.2), and of a parameter.
TOKENS = [*"aZ9!#$%&'*+-.^_`|~"]
NAMES = [*"aZ9._-$[]|^(*+?% {", "\u00e4"]
LABELS = ("1", "2", "10")
ENDPOINTS = 24


def text(chance: Random, letters: list[str], least: int = 1) -> str:
    return "".join(chance.choice(letters) for _ in range(chance.randint(least, 6)))


def segment(chance: Random) -> str:
    while True:
        made = text(chance, [letter for letter in LETTERS if letter != "\\1"])
        if made.lower().replace("%2e", ".").strip("."):  # no dot segment
            return made


def endpoint(chance: Random, number: int) -> dict[str, Any]:
    """Return an endpoint whose path begins with its number, so that no two are alike."""
    parts = [f"e{number}", *(segment(chance) for _ in range(chance.randint(0, 2)))]
    if chance.random() < 0.4:
        parts.append(f"{text(chance, [*'a$.(+'], 0)}{{x}}{text(chance, [*'0$.)+'], 0)}")
    place = chance.choice(("path", "header", "query", "host", "none"))
    made: dict[str, Any] = {}
    if place == "path":
        parts.insert(1, f"{text(chance, [*'v$.(+'], 0)}{{version}}{text(chance, [*'$.)+'], 0)}")
        made["version"] = {"in": "path"}
    elif place == "header":
        made["version"] = {"in": "header", "name": f"X{text(chance, TOKENS)}"}
    elif place == "query":
        made["version"] = {"in": "query", "name": text(chance, NAMES)}
    elif place == "host":
        made["version"] = {"in": "host", "name": f"v{{version}}.h{number}.example.com"}
    made["path"] = "/" + "/".join(parts)
    if chance.random() < 0.5:
        capture = "/{x}0$1" if "{x}" in made["path"] else ""
        made["upstream_path"] = f"/{segment(chance)}{capture}/" + segment(chance)
    if chance.random() < 0.5:
        made["methods"] = ["GET"]
    return made


def rules(chance: Random, one: int, two: int) -> dict[str, Any]:
    """Return rules with all of these endpoints, some with versions and some without."""
    made = [endpoint(chance, number) for number in range(ENDPOINTS)]
    found: dict[str, Any] = {"bypass": True, "workers": 1, "apis": {}}
    found["services"] = {
        "one": {"targets": [f"http://127.0.0.1:{one}"]},
        "two": {"targets": [f"http://127.0.0.1:{two}"]},
    }
    versions = {"1": {"service": "one"}, "2": {"service": "two"}, "10": {"service": "one"}}
    for name, chosen in (
        ("plain", [each for each in made if "version" not in each]),
        ("versions", [each for each in made if "version" in each]),
    ):
        served = {"versions": versions} if name == "versions" else {"service": "two"}
        found["apis"][name] = {"version_header": "X-Served", "endpoints": chosen, **served}
    del found["apis"]["plain"]["version_header"]
    return found


def requests(chance: Random, made: dict[str, Any]) -> Iterator[Case]:
    """Yield requests of an endpoint, and some that look almost like them."""
    way = made.get("version", {"in": "none"})
    for label in (*LABELS, "3", "1,2", "%31"):
        for captured in ("7", "$1", "a.b", "\\1"):
            path = made["path"].replace("{version}", label).replace("{x}", captured)
            host, fields, query = "api.example.com", tuple[str, ...](), ""
            if way["in"] == "header":
                fields = (f"{way['name']}: {label}",)
            elif way["in"] == "query":
                query = f"?{quote(way['name'])}={label}"
            elif way["in"] == "host" and label.isdigit():
                host = way["name"].replace("{version}", label)
            yield Case("GET", path + query, fields, host)
            yield Case("GET", almost(chance, path) + query, fields, host)
            yield Case("PUT", path + query, fields, host)
            if fields:
                yield Case("GET", path + query, (*fields, f"{way['name']}: \xff"), host)
                yield Case("GET", path + query, (f"{way['name']}: \xff", *fields), host)
            if query:
                yield Case("GET", path + almost(chance, query), fields, host)
                yield Case("GET", f"{path}{query}&%FF=1", fields, host)
            if "{x}" not in made["path"]:
                break


def almost(chance: Random, path: str) -> str:
    """Return a path that differs in one place."""
    place: int = chance.randrange(1, len(path))
    return f"{path[:place]}{chance.choice(LETTERS)}{path[place + 1 :]}"


@pytest.mark.parametrize("seed", range(2))
def test_both_route_alike(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    with ExitStack() as stack:
        made = rules(chance, start_backend(stack, "one"), start_backend(stack, "two"))
        written = yaml.safe_dump(made, sort_keys=False).replace("$", "$$")  # no variables
        (tmp_path / "gateway.yaml").write_text(written)
        gateway = start_program(stack, tmp_path, "gateway", GATEWAY_CONFIG="gateway.yaml")
        port = free_port()
        where = (f"--listen=127.0.0.1:{port}", f"--gateway=127.0.0.1:{gateway.port}")
        export(tmp_path, *where, f"--log={tmp_path}/access.log")
        start_envoy(stack, tmp_path, port)
        straight = 0
        for api in made["apis"].values():
            for each in api["endpoints"]:
                for case in requests(chance, each):
                    alone, through = ask(gateway.port, case), ask(port, case)
                    assert through == alone, f"{case!r} at {each}"
                    straight += alone[0] == 200
        assert straight > 200
