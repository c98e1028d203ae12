"""Endpoints of an API: mechanisms, methods, and the route of each version."""

import pytest

from gateway.conversion.chain import Conversion
from gateway.routing.snapshot import Endpoint, Route
from gateway.rules.load import check
from gateway.versions.mechanisms.accept import AcceptReader
from gateway.versions.mechanisms.header import HeaderReader
from gateway.versions.mechanisms.path import PathReader
from gateway.versions.mechanisms.query import QueryReader
from gateway.versions.reader import Reader
from gateway.versions.version import Version
from tests.gateway.rules.rules import RULES, edited, loaded


def test_an_api_without_versions_has_one_route() -> None:
    found = loaded(RULES).router.find("/users")
    assert found is not None
    (route,) = found[0].routes.values()
    assert (route.version, route.service_version, route.service.name, route.request) == (
        None,
        None,
        "old",
        None,
    )


def test_adjacent_versions_with_their_own_services_need_no_conversion() -> None:
    begin, end = RULES.index("    conversions:"), RULES.index("  users:")
    assert loaded(RULES[:begin] + RULES[end:]).summary == "2 services, 5 endpoints"


def routes(versions: str) -> dict[str, Route]:
    conversions = (
        "    conversions:\n"
        '      - { between: ["2", "10"], changes: [default: { field: b, value: 2 }] }\n'
        '      - { between: ["1", "2"], changes: [default: { field: a, value: 1 }] }\n'
    )
    begin, end = RULES.index("    versions:"), RULES.index("  users:")
    text = f"{RULES[:begin]}    versions: {versions}\n{conversions}{RULES[end:]}"
    found = loaded(text).router.find("/param")
    assert found is not None
    return {str(version): route for version, route in found[0].routes.items()}


def way(conversion: Conversion | None) -> str | None:
    """Return the direction and the version steps of a conversion, such as `up 1-2 2-10`."""
    if conversion is None:
        return None
    links = (f"{link.older}-{link.newer}" for link in conversion.links)
    return " ".join((conversion.direction.value, *links))


@pytest.mark.parametrize(
    ("versions", "served"),
    [
        pytest.param(
            '{ "10": { service: new }, "2": { service: old }, "1": { service: old } }',
            {"1": ("1", "old"), "2": ("2", "old"), "10": ("10", "new")},
            id="each by itself, whole numbers in any order",
        ),
        pytest.param(
            '{ "1": { via: "2" }, "2": { service: old }, "10": { service: new } }',
            {"1": ("2", "old"), "2": ("2", "old"), "10": ("10", "new")},
            id="via the next",
        ),
        pytest.param(
            '{ "1": { via: "2" }, "2": { via: "10" }, "10": { service: new } }',
            {"1": ("10", "new"), "2": ("10", "new"), "10": ("10", "new")},
            id="via one that is via another",
        ),
        pytest.param(
            '{ "1": { service: old }, "2": { via: "1" }, "10": { via: "1" } }',
            {"1": ("1", "old"), "2": ("1", "old"), "10": ("1", "old")},
            id="via an older one",
        ),
    ],
)
def test_a_version_is_served_by_its_service_or_via_another_version(
    versions: str, served: dict[str, tuple[str, str]]
) -> None:
    found = {
        label: (str(route.service_version), route.service.name)
        for label, route in routes(versions).items()
    }
    assert found == served
    assert list(found) == ["1", "2", "10"]


def test_the_conversions_between_two_distant_versions_are_composed() -> None:
    down = routes('{ "1": { via: "10" }, "2": { service: old }, "10": { service: new } }')
    assert (way(down["1"].request), way(down["1"].response)) == ("up 1-2 2-10", "down 2-10 1-2")
    up = routes('{ "1": { service: old }, "2": { service: old }, "10": { via: "2" } }')
    assert (way(up["10"].request), way(up["10"].response)) == ("down 2-10", "up 2-10")
    assert (way(up["2"].request), way(up["2"].response)) == (None, None)


def test_replacing_service_with_via_switches_the_service_of_a_version() -> None:
    found = loaded(edited('"1": { service: old }', '"1": { via: "2" }')).router.find("/param")
    assert found is not None
    served = {str(route.version): route.service.name for route in found[0].routes.values()}
    assert served == {"1": "new", "2": "new"}


def endpoint(path: str, old: str = "", new: str = "") -> Endpoint:
    found = loaded(edited(old, new) if old else RULES).router.find(path)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("version", "readers", "vary"),
    [
        ("{ in: query, name: v }", [QueryReader("v")], ()),
        ("{ in: header, name: X-V }", [HeaderReader("X-V")], ("X-V",)),
        ("{ in: accept, media_type: 'a/b.v{version}' }", [AcceptReader("a/b.v", "")], ("Accept",)),
        (
            "{ in: accept, media_type: 'App/X{version}+JSON' }",
            [AcceptReader("app/x", "+json")],
            ("Accept",),
        ),
        (
            (
                "[{ in: header, name: X }, { in: query, name: v },"
                " { in: accept, media_type: 'a/{version}' }]"
            ),
            [HeaderReader("X"), QueryReader("v"), AcceptReader("a/", "")],
            ("X", "Accept"),
        ),
    ],
)
def test_each_mechanism_compiles_to_its_reader(
    version: str, readers: list[Reader], vary: tuple[str, ...]
) -> None:
    built = endpoint("/param", "{ in: query, name: version }", version)
    assert built.selector is not None
    assert list(built.selector.readers) == readers
    assert built.vary == vary


def test_a_path_mechanism_compiles_to_the_path_reader() -> None:
    built = endpoint("/v1/person")
    assert built.selector is not None
    assert built.selector.readers == (PathReader(),)
    assert built.vary == ()


@pytest.mark.parametrize(
    ("version", "default"),
    [
        ("{ in: query, name: v }", None),
        ('{ in: query, name: v, default: "2" }', Version(2, "2")),
        (
            '[{ in: query, name: v, default: "1" }, { in: header, name: V, default: "1" }]',
            Version(1, "1"),
        ),
        ('[{ in: query, name: v }, { in: header, name: V, default: "2" }]', Version(2, "2")),
    ],
)
def test_the_default_of_any_mechanism_is_the_default_of_the_endpoint(
    version: str, default: Version | None
) -> None:
    built = endpoint("/param", "{ in: query, name: version }", version)
    assert built.selector is not None
    assert built.selector.default == default
    assert built.selector.supported == {"1": Version(1, "1"), "2": Version(2, "2")}


@pytest.mark.parametrize(
    ("methods", "let_through"),
    [
        ("methods: [POST]", ("POST",)),
        ("methods: [GET]", ("GET", "HEAD")),
        ("methods: [POST, GET, PUT]", ("POST", "GET", "HEAD", "PUT")),
        ("methods: [HEAD, GET]", ("HEAD", "GET")),
        ("methods: [M-SEARCH]", ("M-SEARCH",)),
        ("methods: ~", None),
    ],
)
def test_an_endpoint_that_allows_get_also_allows_head(
    methods: str, let_through: tuple[str, ...] | None
) -> None:
    assert endpoint("/users", "methods: [POST]", methods).methods == let_through


@pytest.mark.parametrize(
    ("old", "new", "path", "asked"),
    [
        pytest.param("", "", "/v1/person", "/person", id="the path of the API"),
        pytest.param("", "", "/users", None, id="the client's own"),
        pytest.param(
            "methods: [POST]", "upstream_path: /u", "/users", "/u", id="the endpoint's own"
        ),
        pytest.param(
            "name: version }",
            "name: version }, upstream_path: '/p/{version}'",
            "/param",
            "/p/{version}",
            id="the endpoint's before the API's",
        ),
        pytest.param(
            "    upstream_path: /person\n",
            "",
            "/v1/person",
            None,
            id="the client's own, with its version",
        ),
    ],
)
def test_the_upstream_path_of_an_endpoint_replaces_the_one_of_the_api(
    old: str, new: str, path: str, asked: str | None
) -> None:
    route = (
        endpoint(path, old, new).routes.get(Version(1, "1"))
        or endpoint(path, old, new).routes[None]
    )
    assert asked == (route.upstream_path and route.upstream_path.text)


def test_a_version_served_via_another_uses_the_path_of_the_other_version() -> None:
    text = edited("    upstream_path: /person\n", "").replace(
        "{ service: old }\n      ", '{ via: "2" }\n      '
    )
    found = loaded(text).router.find("/v1/person")
    assert found is not None
    old, new = (found[0].routes[Version(number, str(number))].upstream_path for number in (1, 2))
    assert old is not None
    assert old.fill({"version": "2"}) == "/v2/person"
    assert new is None


def test_vendor_responses_have_the_media_type_of_the_accept_mechanism() -> None:
    new = 'media_type: "a/b-v{version}+json", response_type: vendor'
    vendor = endpoint("/accept", 'media_type: "a/b-v{version}+json"', new)
    types = [route.content_type for route in vendor.routes.values()]
    assert types == ["a/b-v1+json", "a/b-v2+json"]
    types = [route.content_type for route in endpoint("/accept").routes.values()]
    assert types == [None, None]
    assert [route.content_type for route in endpoint("/header").routes.values()] == [None, None]


def test_an_upstream_path_without_a_capture_causes_a_warning_about_links() -> None:
    text = edited(
        "- { path: /users, methods: [POST] }", '- { path: "/{a}/{b}", upstream_path: "/x/{b}" }'
    )
    warnings = check(text.encode(), "gateway.yaml", {})[1]
    (warning,) = (one for one in warnings if "links" in one.text)
    assert (warning.line, warning.place) == (22, "apis.users.endpoints[0].upstream_path")
    assert warning.text == (
        "warning: lacks '{a}' of the path of apis.users.endpoints[0], so links of"
        " the service can be converted back only in responses to requests with this"
        " path"
    )
