"""HTTPRoutes of the Gateway API: what they match, and where it goes."""

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from gateway.core.snapshot import Snapshot
from gateway.export.bypass import bypass
from gateway.export.deployed import Deployed, ExportedFiles
from gateway.export.http_routes import Attachment, duration, http_routes
from gateway.export.manifest import Manifest
from tests.gateway.export.rules import rules

DEPLOYED = Deployed(rules(), ExportedFiles({}), "image")
ATTACHMENT = Attachment("public", "edge", ("api.example.com",))

# The parts of an HTTPRoute that are used, and their bounds (Gateway API, v1, HTTPRouteSpec).
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}


def of(required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has no other members."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


def array(items: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


TEXT = {"type": "string", "minLength": 1}
PATH = {"type": "string", "pattern": "^/", "maxLength": 1024}
FIELDS = array(of("name value", name=TEXT, value=TEXT), 16)
FIELDS_CHANGED = of("", set=FIELDS, add=FIELDS, remove=array(TEXT, 16))
DURATION = {"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
RULE = of(
    "matches backendRefs timeouts",
    matches=array(
        of(
            "path",
            path=of("type value", type={"enum": ["Exact", "PathPrefix"]}, value=PATH),
            method={"enum": METHODS},
        ),
        8,
    ),
    filters=array(
        of(
            "type",
            type={"enum": ["RequestHeaderModifier", "ResponseHeaderModifier", "URLRewrite"]},
            requestHeaderModifier=FIELDS_CHANGED,
            responseHeaderModifier=FIELDS_CHANGED,
            urlRewrite=of(
                "path",
                path=of(
                    "type replaceFullPath", type={"const": "ReplaceFullPath"}, replaceFullPath=PATH
                ),
            ),
        ),
        16,
    ),
    backendRefs=array(
        of("name port", name=NAME, namespace=NAME, port={"type": "integer", "maximum": 65535}), 16
    ),
    timeouts=of("request", request=DURATION),
)
HTTP_ROUTE = of(
    "apiVersion kind metadata spec",
    apiVersion={"const": "gateway.networking.k8s.io/v1"},
    kind={"const": "HTTPRoute"},
    metadata=of("name labels", name=NAME, namespace=NAME, labels={"type": "object"}),
    spec=of(
        "parentRefs rules",
        parentRefs=array(of("name", name=NAME, namespace=NAME), 32),
        hostnames=array(TEXT, 16),
        rules=array(RULE, 16),
    ),
)


def routes(
    snapshot: Snapshot, attachment: Attachment = ATTACHMENT, deployed: Deployed = DEPLOYED
) -> tuple[list[Manifest], list[str]]:
    """Return the routes, each valid, and what is printed."""
    found, lines = http_routes(deployed, bypass(snapshot), attachment)
    for route in found:
        jsonschema.validate(route.content, HTTP_ROUTE)
    return found, lines


def test_what_goes_where() -> None:
    found, lines = routes(rules())
    assert [line for line in lines if "straight" in line] == [
        "person version 2 at /v{version}/person: straight to two",
        "person version 3 at /v{version}/person: straight to one",
        "users at /users: straight to one",
        "users at /users/me: straight to one",
    ]
    twice = "the Gateway API leaves open what a value that stands there twice matches"
    assert f"person version 2 at /header: to the gateway, because {twice}" in lines
    captures = "the Gateway API leaves open how a path with captures is matched"
    assert f"users at /users/{{id}}: to the gateway, because {captures}" in lines
    assert "person version 1 at /query: to the gateway, because it is converted from version 2" in (
        lines
    )
    assert len(lines) == 6 * 4 + 3
    assert [route.comments for route in found] == [
        (
            "person version 2 at /v{version}/person: straight to two",
            "person version 3 at /v{version}/person: straight to one",
        ),
        ("users at /users: straight to one",),
        ("users at /users/me: straight to one",),
        ("Everything that no other route takes goes to the gateway.",),
    ]


def test_a_rule() -> None:
    found, _ = routes(rules())
    spec = found[0].content["spec"]
    assert spec["parentRefs"] == [{"name": "public", "namespace": "edge"}]
    assert spec["hostnames"] == ["api.example.com"]
    two, one = spec["rules"]
    path = {"type": "Exact", "value": "/v2/person"}
    assert two == {
        "matches": [{"path": path, "method": "GET"}, {"path": path, "method": "HEAD"}],
        "filters": [
            {
                "type": "RequestHeaderModifier",
                "requestHeaderModifier": {
                    "remove": [
                        "forwarded",
                        "x-http-method",
                        "x-http-method-override",
                        "x-method-override",
                        "x-shadow",
                    ]
                },
            },
            {
                "type": "URLRewrite",
                "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/person"}},
            },
            {
                "type": "ResponseHeaderModifier",
                "responseHeaderModifier": {"set": [{"name": "X-Served", "value": "2"}]},
            },
        ],
        "backendRefs": [{"name": "two", "port": 8002}, {"name": "two-b", "port": 8003}],
        "timeouts": {"request": "1m30s500ms"},
    }
    assert one["backendRefs"] == [{"name": "one", "namespace": "shop", "port": 8001}]
    assert one["timeouts"] == {"request": "0s"}
    rest = found[-1].content["spec"]["rules"]
    assert rest == [
        {
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "backendRefs": [{"name": "version-gateway", "port": 8080}],
            "timeouts": {"request": "0s"},
        }
    ]


def test_a_path_without_methods_takes_all_and_answers_vary() -> None:
    text = "  users:\n    service: one\n    endpoints:\n"
    found, _ = routes(rules(text, f"{text}      - {{ path: /any }}\n"), Attachment("g"))
    spec = found[1].content["spec"]
    assert spec["rules"][0]["matches"] == [{"path": {"type": "Exact", "value": "/any"}}]
    assert spec["parentRefs"] == [{"name": "g"}]
    assert "hostnames" not in spec


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("http://one.shop:8001", "http://127.0.0.1:8001", "service one is not addressed as a Serv"),
        ("http://one.shop:8001", "http://one.example.com", "service one is not addressed as a S"),
        ("path: /users,", "path: /us%20ers,", "the Gateway API leaves open how a path with '%' or"),
        ("path: /users,", "path: //users,", "the Gateway API leaves open how a path with '%' or '"),
        ("upstream_path: /person", "upstream_path: /a%20b", "the Gateway API leaves open how a pa"),
        ("path: /users,", f"path: /{'u' * 1024},", "the Gateway API takes no path of more than 10"),
        ("methods: [POST]", "methods: [PROPFIND]", "it has methods that the Gateway API does not"),
        ("timeouts: { whole: 90.5 }", "host: a.example", "service two is asked by another Host"),
    ],
)
def test_reasons(old: str, new: str, reason: str) -> None:
    _, lines = routes(rules(old, new))
    assert [line for line in lines if f"to the gateway, because {reason}" in line]


@pytest.mark.parametrize(
    ("deployed", "count"),
    [
        (
            replace(DEPLOYED, files=ExportedFiles({}, variable_services=frozenset({"one", "two"}))),
            4,
        ),
        (
            replace(
                DEPLOYED, files=ExportedFiles({}, variable_apis=frozenset({"person", "users"}))
            ),
            2,
        ),
    ],
)
def test_values_of_variables_are_not_written(deployed: Deployed, count: int) -> None:
    found, lines = routes(rules(), deployed=deployed)
    assert len(found) == 1
    reason = "it is written with environment variables, whose values are not exported"
    assert sum(reason in line for line in lines) == count


def test_a_change_of_one_endpoint_leaves_the_others() -> None:
    def texts(snapshot: Snapshot) -> dict[str, str]:
        return {route.name: route.text for route in routes(snapshot)[0]}

    before = texts(rules())
    after = texts(rules("/users, methods: [POST]", "/users, methods: [GET, POST]"))
    assert sum(before[name] != after[name] for name in before) == 1
    more = texts(rules('"2": { service: two }', '"2": { via: "3" }'))
    assert sum(before[name] != more[name] for name in before) == 1


def test_many_versions_are_several_routes() -> None:
    versions = "".join(f'      "{number}": {{ service: one }}\n' for number in range(5, 40))
    text = '      "4": { service: one, lifecycle: { deprecated: 2025-01-01 } }\n'
    found, _ = routes(rules(text, text + versions))
    sizes = [len(route.content["spec"]["rules"]) for route in found]
    assert sizes[:3] == [16, 16, 5]
    assert len({route.name for route in found}) == len(found)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0001, "1ms"), (1, "1s"), (90.5, "1m30s500ms"), (7200, "2h"), (86400, "24h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
