"""Links: mapping from the service's paths to the client's paths, and back."""

from pathlib import Path

import pytest

from gateway.routing.links import LinkMapper, MappedLink, map_link_field
from gateway.routing.plan import Plan, plan
from gateway.rules.load import load
from tests.gateway.world import head

VENDOR = "application/vnd.t-v{version}+json"
SHOP = Path(__file__).with_name("links.yaml").read_bytes()


def mapper(
    target: str,
    *fields: tuple[str, str],
    authority: str = "api.test",
    public: str = "",
    scheme: str = "http",
    host: str = "client",
) -> LinkMapper:
    snapshot = load(SHOP, "links.yaml", {"NEW_HOST": host})
    asked = head(target, *fields)._replace(authority=authority)
    planned = plan(snapshot, asked)
    found = snapshot.router.find(asked.path)
    assert isinstance(planned, Plan)
    assert found is not None
    return LinkMapper(
        snapshot.links,
        planned.endpoint,
        planned.route,
        planned.chosen_by,
        found[1],
        asked.path,
        planned.target.partition("?")[0],
        authority,
        scheme,
        public or authority,
    )


HEADER = ("X-V", "1")
ACCEPT = ("Accept", VENDOR.format(version=1))
# Rows: the target of a request, a link of the service, and the link for the client.
TO_CLIENT: list[tuple[str, str, str]] = [
    # the path, by the mechanism that the client used
    ("/v1/orders", "/api/2/orders/7", "/v1/orders/7"),
    ("/v2/orders", "/api/2/orders/7", "/v2/orders/7"),
    ("/v1/orders/7/copy", "/api/2/orders/8#top", "/v1/orders/8#top"),
    ("/v1/again/7", "/api/2/orders/8", "/v1/again/8"),
    ("/q/orders?version=1", "/api/2/orders/7", "/q/orders/7?version=1"),
    ("/q/orders?version=2", "/api/2/orders/7?a=b", "/q/orders/7?a=b&version=2"),
    ("/q/orders?version=1", "/api/2/orders/7?version=2&a", "/q/orders/7?version=1&a"),
    ("/d/orders/1", "/api/2/orders/7", "/d/orders/7"),
    ("/d/orders/1?version=1", "/api/2/orders/7", "/d/orders/7?version=1"),
    ("/v1/orders", "/both", "/pq/orders?version=1"),
    ("/q/orders?version=1", "/x/y", "/only/v1/header"),
    # the query, converted like the query of a request
    ("/v1/orders", "/api/2/orders?offset=20&sort=up", "/v1/orders?skip=20&sort=asc"),
    ("/v2/orders", "/api/2/orders?offset=20", "/v2/orders?offset=20"),
    (
        "/v1/orders",
        "/api/2/orders?tag=a&sort=up&tag=b&sort=up&offset=2&offset=4",
        "/v1/orders?tag=a&sort=asc&tag=b&sort=asc&skip=2&skip=4",
    ),
    # relative references
    ("/v1/orders", "?offset=20", "/v1/orders?skip=20"),
    ("/v1/orders", "?page=2", "?page=2"),
    ("/v1/orders", "", ""),
    ("/v1/orders", "#top", "#top"),
    ("/v1/orders", "orders/7", "orders/7"),
    ("/v1/again/7", "9", "9"),
    ("/v1/again/7", "../orders/9/copy", "../orders/9/copy"),
    ("/v1/again/7", "../x/../orders/9/copy", "../x/../orders/9/copy"),
    ("/v1/again/7", "./8/copy", "/v1/orders/8/copy"),
    ("/q/orders?version=1", "orders/7", "/q/orders/7?version=1"),
    # authorities of the service
    ("/v1/orders", "http://10.0.0.2:8002/api/2/orders/7", "http://api.test/v1/orders/7"),
    ("/v1/orders", "HTTP://[::1]/api/2/orders/7", "http://api.test/v1/orders/7"),
    ("/v1/orders", "http://[::1]:/api/2/orders/7", "http://api.test/v1/orders/7"),
    ("/v1/orders", "//10.0.0.2:8002/api/2/orders/7", "//api.test/v1/orders/7"),
    ("/v1/orders", "http://API.test/api/2/orders/7", "http://API.test/v1/orders/7"),
    ("/v1/orders", "https://api.test:443/api/2/orders/7", "http://api.test/v1/orders/7"),
    ("/v1/orders", "http://10.0.0.9/people/3", "http://api.test/people/3"),
    ("/v1/orders", "http://10.0.0.9/all/3/4", "http://api.test/folk/3/4"),
    ("/v1/orders", "http://10.0.0.9/files/a", "http://api.test/files/a"),
    # other authorities
    ("/v1/orders", "http://example.com/api/2/orders/7", "http://example.com/api/2/orders/7"),
    ("/v1/orders", "http://10.0.0.2:1/api/2/orders/7", "http://10.0.0.2:1/api/2/orders/7"),
    ("/v1/orders", "mailto:a@example.com", "mailto:a@example.com"),
    ("/v1/orders", "urn:a:b", "urn:a:b"),
    ("/v1/orders", "http:oops", "http:oops"),
    ("/v1/orders", "ftp://10.0.0.2/x", "ftp://10.0.0.2/x"),
    # links that are already public
    ("/v1/orders", "http://api.test/v2/orders/7", "http://api.test/v1/orders/7"),
    ("/v1/orders", "/only/query", "/only/query?version=1"),
    ("/v1/orders", "/people/3?offset=1", "/people/3?offset=1"),
    # an API without versions
    ("/people/3", "/all/x/y?z", "/folk/x/y?z"),
    ("/people/3", "/people/../all/x", "/folk/x"),
    ("/people/3", "/all/x/../y", "/folk/y"),
    ("/people/3", "http://10.0.0.9/files/a", "http://api.test/files/a"),
    # the routes of a cutover and of a shadow
    ("/gone/v1/3", "/gone/v2/4", "/gone/v1/4"),
    ("/gone/v1/3", "http://10.0.0.2:8002/gone/v2/4", "http://api.test/gone/v1/4"),
    ("/gone/v2/3", "http://10.0.0.1:8001/gone/v1/4", "http://api.test/gone/v2/4"),
    # a capture that the service's path lacks
    ("/acme/v1/bills/3", "/bills/4", "/acme/v1/bills/4"),
]


@pytest.mark.parametrize(("target", "link", "wanted"), TO_CLIENT)
def test_a_link_of_the_service_is_mapped_for_the_client(
    target: str, link: str, wanted: str
) -> None:
    assert mapper(target).to_client(link) == MappedLink(wanted)


@pytest.mark.parametrize(
    ("target", "link", "wanted"),
    [
        ("/v0/orders", "/api/2/orders/7", "https://shop.test/v0/orders/7"),
        ("/v0/orders", "http://10.0.0.2:8002/api/2/orders/7", "https://shop.test/v0/orders/7"),
        ("/v0/orders", "/nowhere", "/nowhere"),  # the link belongs to no endpoint
        ("/v0/orders", "https://other.test/a", "https://other.test/a"),
        ("/v5/orders", "http://10.0.0.2:8002/api/2/orders/7?a", "/v5/orders/7?a"),
        ("/v5/orders", "/api/2/orders/7", "/v5/orders/7"),
        ("/v2/orders", "/api/2/orders/7", "/v2/orders/7"),
    ],
)
def test_links_have_the_form_that_is_configured_for_the_version(
    target: str, link: str, wanted: str
) -> None:
    of = mapper(target, authority="10.9.9.9:8080", public="shop.test", scheme="https")
    assert of.to_client(link).text == wanted
    if "/nowhere" not in link and "other" not in link:
        assert of.to_service(wanted).text.endswith(link.partition("8002")[2] or link)
    assert of.cookie_path("/api/2/orders").text == target


def test_an_absolute_link_of_the_client_becomes_relative_for_the_service() -> None:
    of = mapper("/v0/orders")
    assert of.to_service("http://api.test/v0/orders/7?a") == MappedLink("/api/2/orders/7?a")


@pytest.mark.parametrize(
    ("target", "field", "wanted"),
    [
        ("/h/orders/1", HEADER, "/h/orders/7"),
        ("/a/orders/1", ACCEPT, "/a/orders/7"),
        ("/pq/orders", HEADER, "/v1/orders/7"),
    ],
)
def test_a_link_has_no_version_parameter_if_the_version_is_named_elsewhere(
    target: str, field: tuple[str, str], wanted: str
) -> None:
    assert mapper(target, field).to_client("/api/2/orders/7") == MappedLink(wanted)


def test_a_link_to_an_endpoint_that_reads_the_same_header_has_no_version_parameter() -> None:
    assert mapper("/h/orders/1", HEADER).to_client("/both") == MappedLink("/pq/orders")


@pytest.mark.parametrize(
    ("link", "wanted"),
    [
        ("/nowhere", "/nowhere"),
        ("nowhere?x", "nowhere?x"),
        ("http://10.0.0.2:8002/nowhere?x#y", "http://api.test/nowhere?x#y"),
        ("http://10.0.0.2:8002", "http://api.test"),
        ("/bills/4", "/bills/4"),
        ("/api/2/orders?sort=maybe", "/v1/orders?sort=maybe"),
        ("/api/2/orders/../../..", "/api/2/orders/../../.."),
        (".", "."),
        ("/v3/orders/7?offset=1", "/v3/orders/7?offset=1"),
    ],
)
def test_a_link_to_no_endpoint_is_reported_as_unmapped(link: str, wanted: str) -> None:
    assert mapper("/v1/orders").to_client(link) == MappedLink(wanted, False)


def test_the_host_in_a_link_names_the_version_of_the_client() -> None:
    asked = mapper("/s/orders", authority="v1.shop.test:8080")
    link = "http://v2.shop.test:8080/api/2/orders?offset=1"
    assert asked.to_client(link) == MappedLink("http://v1.shop.test:8080/s/orders?skip=1")
    back = asked.to_service("http://v1.shop.test:8080/s/orders?skip=1")
    assert back == MappedLink(link)


def test_links_have_the_host_that_a_trusted_proxy_forwards() -> None:
    asked = mapper("/v1/orders", authority="inner:80", public="shop.example", scheme="https")
    for authority in ("http://inner", "https://shop.example", "http://10.0.0.2:8002"):
        mapped = asked.to_client(f"{authority}/api/2/orders/7")
        assert mapped == MappedLink("https://shop.example/v1/orders/7")


@pytest.mark.parametrize(
    ("target", "link", "wanted"),
    [
        ("/v1/orders", "/v1/orders/7?skip=2", "/api/2/orders/7?offset=2"),
        ("/v1/orders", "http://api.test/v1/orders/7", "http://api.test/api/2/orders/7"),
        ("/v1/orders", "//api.test/v1/orders#x", "//api.test/api/2/orders#x"),
        ("/q/orders?version=1", "/q/orders/7?version=1", "/api/2/orders/7?version=2"),
        ("/people/3", "/people/4", "/people/4"),
        ("/people/3", "http://api.test/folk/a/b", "http://10.0.0.9:80/all/a/b"),
        ("/people/3", "//api.test/folk/a", "//10.0.0.9:80/all/a"),
        ("/v2/orders", "/v2/orders/7", "/api/2/orders/7"),
        ("/v1/orders", "7", "7"),
        ("/v1/orders", "mailto:a@example.com", "mailto:a@example.com"),
        ("/v1/orders", "http://example.com/v1/orders", "http://example.com/v1/orders"),
    ],
)
def test_a_link_of_the_client_is_mapped_for_the_service(
    target: str, link: str, wanted: str
) -> None:
    assert mapper(target).to_service(link) == MappedLink(wanted)


@pytest.mark.parametrize("link", ["/nowhere", "/people/3", "/v1/orders?sort=maybe", "/files/a"])
def test_a_link_to_another_service_or_no_endpoint_is_reported_as_unmapped(link: str) -> None:
    assert mapper("/v1/orders").to_service(link) == MappedLink(link, False)


def test_the_targets_and_anchors_of_a_link_field_are_mapped() -> None:
    value = (
        '</a>; rel="next"; title="<b>, \\"</c>", <d;e> ; anchor="/f" ; Anchor = "#g", '
        '<http://h/i>;x="; anchor=j"'
    )
    assert map_link_field(value, lambda link: f"[{link}]") == (
        '<[/a]>; rel="next"; title="<b>, \\"</c>", <[d;e]> ; anchor="[/f]" ; Anchor = "[#g]", '
        '<[http://h/i]>;x="; anchor=j"'
    )


@pytest.mark.parametrize(
    "value", ["<" * 500_000, "</a>" + '"\\' * 250_000, "; anchor=" * 50_000, '<a"' * 200_001]
)
def test_a_link_field_is_mapped_in_linear_time(value: str) -> None:
    """With quadratic time, these values would take minutes."""
    assert map_link_field(value, lambda link: link) == value


@pytest.mark.parametrize(
    ("link", "client"),
    [
        ("/v2/rooms/7?a", "/hotel/v1/find?id=7&a"),
        ("http://10.0.0.9/stays/7", "http://api.test/hotel/v1/leave?nr=7"),
        ("/other", "/hotel/v1/other"),
    ],
)
def test_links_to_moved_operations_are_mapped(link: str, client: str) -> None:
    rooms = mapper("/hotel/v1/find?id=1")
    assert rooms.to_client(link) == MappedLink(client)
    service = client.replace("http://api.test", "")
    assert rooms.to_service(service) == MappedLink(link.replace("http://10.0.0.9", ""))


def test_links_to_operations_that_the_other_version_lacks_are_unmapped() -> None:
    rooms = mapper("/hotel/v1/find?id=1")
    assert rooms.to_client("/new") == MappedLink("/new", False)
    for path in ("/hotel/v1/old", "/hotel/v1/find?id=.."):
        assert rooms.to_service(path) == MappedLink(path, False)


@pytest.mark.parametrize(
    ("target", "path", "wanted", "fits"),
    [
        ("/v1/orders", "/", "/", True),
        ("/v1/orders", "/api/2/orders", "/v1/orders", True),
        ("/v1/orders/7", "/api/2/orders", "/v1/orders", True),
        ("/v1/orders/7/copy", "/api/2/orders/7/", "/v1/orders/7/", True),
        ("/v1/orders/7", "/api/2", "/v1", True),
        ("/v1/orders/7", "/api", "/api", False),
        ("/v1/orders/7", "/api/2/orders/8", "/v1/orders/8", True),
        ("/q/orders?version=1", "/api/2/orders/8", "/q/orders/8", True),
        ("/hotel/v1/find?id=7", "/v2/rooms/", "/hotel/v1/find", True),
        ("/hotel/v1/things/7", "/things/", "/hotel/v1/things/", True),
        ("/club/v1/login", "/api", "/club/v1", True),
        ("/people/7", "/people", "/people", True),
        ("/folk/7", "/all", "/folk", True),
        ("/v1/orders", "/nowhere/", "/nowhere/", False),
    ],
)
def test_the_path_of_a_cookie_is_mapped_for_the_client(
    target: str, path: str, wanted: str, fits: bool
) -> None:
    assert mapper(target).cookie_path(path) == MappedLink(wanted, fits)


def test_the_domain_of_a_cookie_is_kept_unless_it_belongs_to_a_service() -> None:
    asked = mapper("/v1/orders", authority="api.test:8080")
    assert asked.keeps_domain("api.test")
    assert asked.keeps_domain(".test")
    assert asked.keeps_domain("other.example")
    assert not asked.keeps_domain("10.0.0.2")
    assert not mapper("/v1/orders", host="new.internal").keeps_domain("internal")


PREFIXED = [
    ("/api/2/orders/7", "/shop/v1/orders/7"),
    ("/shop/v1/api/2/orders/7", "/shop/v1/orders/7"),
    ("http://api.test/shop/v1/api/2/orders/7?offset=1", "http://api.test/shop/v1/orders/7?skip=1"),
    ("/shop/v10/api/2/orders/7", "/shop/v10/api/2/orders/7"),
]


@pytest.mark.parametrize(("link", "wanted"), PREFIXED)
def test_a_link_has_the_public_prefix_of_the_client_exactly_once(link: str, wanted: str) -> None:
    prefixed = mapper("/v1/orders")._replace(public_prefix="/shop", sent_prefix="/shop/v1")
    assert prefixed.to_client(link).text == wanted
    assert prefixed.to_client("/shop/v1").text == "/shop/v1"
    if "?" not in link and link != wanted:
        assert prefixed.cookie_path(link).text == wanted
    assert prefixed.cookie_path("/shop/v1/").text == "/shop/v1/"
    assert prefixed.cookie_path("/nowhere").text == "/nowhere"
    for client in ("/shop/v1/orders/7", "/v1/orders/7"):
        assert prefixed.to_service(client).text == "/api/2/orders/7"


def test_a_link_without_the_port_of_the_client_is_mapped() -> None:
    public = mapper("/v1/orders", public="shop.example:8443", scheme="https")
    for host in ("shop.example", "shop.example:8443", "api.test"):
        link = public.to_client(f"https://{host}/api/2/orders/7").text
        assert link == "https://shop.example:8443/v1/orders/7"
