"""Generated rules and requests: what HTTPRoutes send past the gateway, it would send there itself.

The routes are read by the letter of the Gateway API; see `tests.fleet.route_engine`.
"""

from random import Random
from typing import Any

import pytest
import yaml

from gateway.config.text.mistakes import ConfigError
from gateway.core.context import RequestContext
from gateway.core.plan import Plan, plan
from gateway.core.snapshot import Snapshot
from gateway.export.bypass import bypass
from gateway.export.deployed import Deployed, ExportedFiles
from gateway.export.http_routes import Attachment, http_routes
from tests.fleet.route_engine import matches, ranked
from tests.gateway.config.rules import loaded
from tests.gateway.core.world import head

SERVICES = {f"s{number}": {"targets": [f"http://s{number}:80"]} for number in range(4)}
PARTS = ("a", "b", "v2", "2", "{id}", "c-{id}", "a.b")
VERSIONED = ("v{version}", "{version}", "r{version}")
METHODS = ("GET", "HEAD", "POST", "PUT", "OPTIONS", "PATCH")
HEADER = {"in": "header", "name": "X-V"}
QUERY = {"in": "query", "name": "v"}
REQUESTS = 150


def template(chance: Random, *parts: str) -> str:
    """Return a path of some parts and one of these, wherever it stands."""
    found = [chance.choice(PARTS) for _ in range(chance.randint(0, 2))]
    for part in parts:
        found.insert(chance.randint(0, len(found)), part)
    return "/" + "/".join(found)


def endpoint(chance: Random, *, versions: bool) -> dict[str, Any]:
    """Return an endpoint, with versions in its path or beside it, or without."""
    made: dict[str, Any] = {"path": template(chance, "a")}
    if versions:
        place = chance.choice(({"in": "path"}, {"in": "path"}, HEADER, [HEADER, QUERY]))
        made["version"] = place
        if place == {"in": "path"}:
            made["path"] = template(chance, chance.choice(VERSIONED))
    if chance.random() < 0.6:
        made["methods"] = chance.sample(METHODS, chance.randint(1, 3))
    if chance.random() < 0.3:
        made["upstream_path"] = "/up"
    return made


def rules(chance: Random) -> str:
    """Return rules: APIs whose paths may overlap, with versions and without."""
    apis: dict[str, Any] = {}
    for name in "pqr"[: chance.randint(1, 3)]:
        versions = chance.random() < 0.7
        endpoints = [endpoint(chance, versions=versions) for _ in range(chance.randint(1, 4))]
        api: dict[str, Any] = {"endpoints": endpoints}
        if versions:
            served = {str(one): {"service": chance.choice([*SERVICES])} for one in (1, 2, 3)}
            if chance.random() < 0.5:
                served["1"] = {"via": "2"}
                changes = [{"rename": {"field": "a", "to": "b"}}]
                between = [["1", "2"], ["2", "3"]]
                api["conversions"] = [{"between": one, "changes": changes} for one in between]
            api["versions"] = served
        else:
            api["service"] = chance.choice([*SERVICES])
        apis[name] = api
    return yaml.safe_dump({"bypass": True, "services": SERVICES, "apis": apis})


def request(chance: Random) -> tuple[str, str, tuple[str, ...]]:
    """Return a method, a target and the values of X-V."""
    words = (*("a", "b", "v1", "v2", "v3", "v9", "1", "2", "02", "r3", "7", "c-7", "a.b"), "")
    path = "/" + "/".join(chance.choice(words) for _ in range(chance.randint(1, 4)))
    query = chance.choice(("", "", "?v=2", "?v=2&v=3", "?x=1"))
    fields = chance.choice(((), (), ("2",), ("2", "3")))
    return chance.choice(METHODS), path + query, fields


def sent(snapshot: Snapshot, routes: list[Any], chance: Random) -> int:
    """Check requests; return how many of them went straight to a service."""
    straight = 0
    for _ in range(REQUESTS):
        method, target, fields = request(chance)
        path, mark, query = target.partition("?")
        rule = next(rule for match, rule in routes if matches(match, method, path))
        services = {each["name"] for each in rule["backendRefs"]}
        if services == {"version-gateway"}:
            continue
        straight += 1
        asked = head(target, *(("X-V", value) for value in fields), method=method)
        planned = plan(snapshot, asked, RequestContext())
        case = f"{method} {target} {fields}"
        assert isinstance(planned, Plan), case
        assert (planned.request, planned.response, planned.cutover_route) == (None,) * 3, case
        assert {each.host for each in planned.route.service.targets} == services, case
        rewrites = [each["urlRewrite"] for each in rule["filters"] if "urlRewrite" in each]
        path = rewrites[0]["path"]["replaceFullPath"] if rewrites else path
        assert planned.target == path + mark + query, case
    return straight


@pytest.mark.parametrize("seed", range(8))
def test_what_goes_straight_reaches_the_same(seed: int) -> None:
    chance, straight, worlds = Random(seed), 0, 0
    while worlds < 20:
        try:
            snapshot = loaded(rules(chance))
        except ConfigError:
            continue  # two of its endpoints are the same
        worlds += 1
        deployed = Deployed(snapshot, ExportedFiles({}), "image")
        found, _ = http_routes(deployed, bypass(snapshot), Attachment("public"))
        straight += sent(snapshot, ranked([route.content for route in found]), chance)
    assert straight > 20
