"""Set-Cookie: a service's paths and domains are mapped to those that the client uses."""

import pytest

from gateway.http.cookie import covers_only_services, map_cookie, path_above


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("sid=a", "sid=a"),
        ("sid=a; Path=/v2; HttpOnly", "sid=a; Path=/V2; HttpOnly"),
        ("sid=a;PATH = /v2 ;Secure", "sid=a;PATH = /V2 ;Secure"),
        ("sid=/v2; Path=v2; path", "sid=/v2; Path=v2; path"),
        ("sid=Path=/v2; Max-Age=1", "sid=Path=/v2; Max-Age=1"),
        ("sid=a; Domain=api.test; Path=/", "sid=a; Domain=api.test; Path=/"),
        ("sid=a; domain=inside; Path=/", "sid=a; Path=/"),
        ("", ""),
    ],
)
def test_paths_are_mapped_and_internal_domains_are_removed(given: str, wanted: str) -> None:
    assert map_cookie(given, str.upper, lambda domain: domain != "inside") == wanted


@pytest.mark.parametrize(
    ("public", "served", "prefix", "found"),
    [
        ("/v1/me", "/v2/me", "/v2", "/v1"),
        ("/v1/clients/7", "/v2/customers/7", "/v2/customers", "/v1/clients"),
        ("/person", "/v2/person", "/v2", "/"),
        ("/v1/pay", "/v2/payments", "/v2/payments", "/v1/pay"),
        ("/v1/pay", "/v2/payments", "/v2", None),
        ("/v1/me", "/v2/me", "/v", None),
        ("/v1/me", "/v2/me", "/other", None),
    ],
)
def test_path_above_returns_the_public_prefix(
    public: str, served: str, prefix: str, found: str | None
) -> None:
    assert path_above(public, served, prefix) == found


@pytest.mark.parametrize(
    ("domain", "gone"),
    [
        ("api.test", False),
        (".TEST", False),
        ("inside.test", True),
        (".inside.test", True),
        ("x.inside.test", False),  # it belongs to no service; clients refuse it anyway
        ("side.test", False),
        ("10.0.0.2", True),
    ],
)
def test_a_domain_that_covers_only_services_is_found(domain: str, gone: bool) -> None:
    assert covers_only_services(domain, "api.test", ["inside.test", "10.0.0.2"]) is gone
