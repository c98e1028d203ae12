"""Routes of Envoy: their order, what they match, and where they lead."""

from gateway.export.bypass import bypass
from gateway.export.envoy_routes import matched, routes
from gateway.export.manifest import Object
from tests.gateway.export.rules import rules


def made(old: str = "", new: str = "") -> dict[str, Object]:
    """Return the routes by name, in their order."""
    found = list(routes(matched(bypass(rules(old, new)))))
    return {f"{number} {route['name']}": route for number, route in enumerate(found)}


def named(name: str, old: str = "", new: str = "") -> Object:
    """Return the one route of a name."""
    (found,) = (route for key, route in made(old, new).items() if key.split(" ", 1)[1] == name)
    return found


def test_guards_come_first_and_the_rest_last() -> None:
    names = [name.split(" ", 1)[1] for name in made()]
    assert names[:4] == ["method overrides"] * 3 + ["expectations"]
    assert names[-1] == "everything else"
    assert names.index("the rest of users at /users/me") < names.index(
        "straight users  /users/{id}"
    )
    for endpoint in ("/header", "/query", "/v{version}/person"):
        assert names.index(f"straight person 2 {endpoint}") < names.index(
            f"the rest of person at {endpoint}"
        )


def test_whole_paths_come_first_in_the_order_of_the_rules() -> None:
    order = [name.split(" ", 1)[1] for name in made() if " straight " in name]
    assert [name for name in order if name.startswith("straight person 2")] == [
        f"straight person 2 {path}" for path in ("/v{version}/person", "/query", "/header", "/host")
    ]
    assert order[-1] == "straight users  /users/{id}"


def test_a_path_of_another_endpoint_does_not_come_first() -> None:
    """The router gives /v2/person to the endpoint that has that path in full."""
    names = [
        name.split(" ", 1)[1]
        for name in made("path: /users/me, methods: [GET]", "path: /v2/person, methods: [GET]")
    ]
    assert names.index("the rest of users at /v2/person") < names.index(
        "straight person 2 /v{version}/person"
    )


def test_a_route_matches_the_methods_of_its_endpoint_alone() -> None:
    """So that no other route need stand before it for the others, and most requests are there."""
    names = [name.split(" ", 1)[1] for name in made()]
    post = {"name": ":method", "string_match": {"exact": "POST"}}
    reads = {"name": ":method", "string_match": {"safe_regex": {"regex": "GET|HEAD"}}}
    assert named("straight users  /users")["match"] == {"path": "/users", "headers": [post]}
    assert named("straight users  /users/{id}")["match"]["headers"] == [reads]
    here = [name for name in names if name.endswith((" /users", " /users, another method"))]
    assert here == [
        "straight users  /users",
        "fixed answer 405 of users at /users, another method",
        "the rest of users at /users",
    ]


def test_a_version_in_the_path() -> None:
    route = named("straight person 2 /v{version}/person")
    assert route["match"]["path"] == "/v2/person"
    assert route["route"] == {
        "cluster": "service two",
        "timeout": "90.5s",
        "idle_timeout": "60s",
        "prefix_rewrite": "/person",
    }
    (served,) = route["response_headers_to_add"]
    assert served["header"] == {"key": "X-Served", "value": "2"}
    assert route["response_headers_to_remove"] == ["x-served"]


def test_a_version_in_a_header_stands_there_alone() -> None:
    exact, other, _ = named("straight person 3 /header")["match"]["headers"]
    assert exact == {"name": "x-api-version", "string_match": {"exact": "3"}}
    assert other["invert_match"] is True


def test_a_version_in_the_query_and_in_the_host() -> None:
    target, methods = named("straight person 3 /query")["match"]["headers"]
    assert target["name"] == ":path"
    assert methods["string_match"]["safe_regex"]["regex"] == "GET|HEAD|POST"
    host, *_ = named("straight person 3 /host")["match"]["headers"]
    assert host["string_match"]["safe_regex"]["regex"] == r"(?i)v3\.example\.com\.?(?::[0-9]*)?"


def test_a_parameter_of_an_unusual_name_goes_to_the_gateway() -> None:
    edit = "name: version }, methods: [GET, POST]", 'name: "v[]" }, methods: [GET, POST]'
    names = made(*edit)
    assert not [name for name in names if name.endswith("person 3 /query")]
    because = "to the gateway, because Envoy cannot tell its requests apart by a pattern"
    assert f"person version 3 at /query: {because}" in matched(bypass(rules(*edit))).lines


def test_captures_are_kept() -> None:
    route = named("straight users  /users/{id}")
    assert "prefix_rewrite" not in route["route"]
    route = named(
        "straight users  /users/{id}",
        '"/users/{id}", methods',
        '"/users/{id}", upstream_path: "/people/{id}", methods',
    )
    assert route["route"]["regex_rewrite"]["substitution"] == r"/people/\1"


def test_more_captures_than_a_substitution_can_name_go_to_the_gateway() -> None:
    for count, straight in ((9, True), (10, False)):
        path = "/users/" + "/".join(f"{{{letter}}}" for letter in "abcdefghij"[:count])
        names = made('"/users/{id}", methods', f'"{path}", upstream_path: "/p{path}", methods')
        name = f"straight users  {path}"
        assert any(each.endswith(name) for each in names) is straight


def test_hosts() -> None:
    for host, written in (("a.example", "a.example"), ("target", "one.shop:8001")):
        service = '["http://one.shop:8001"]'
        route = named("straight users  /users", service, f"{service}, host: {host}")
        assert route["route"]["host_rewrite_literal"] == written


def test_fixed_answers() -> None:
    route = named("fixed answer 405 of users at /users, another method")
    assert route["direct_response"]["status"] == 405
    assert route["match"]["headers"] == [
        {"name": ":method", "string_match": {"exact": name}, "invert_match": True}
        for name in ("POST", "OPTIONS")
    ]
    assert named("fixed answer 204 of users at /users, OPTIONS")["direct_response"] == {
        "status": 204
    }
