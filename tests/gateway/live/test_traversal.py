"""Captures with dot segments cannot reach another endpoint of a service."""

import pytest

from tests.gateway.live.conftest import House
from tests.gateway.live.raw import ask, get


@pytest.mark.parametrize(
    "climbing",
    [
        *("..%2fadmin", "%2e%2e%2fadmin", "..;", "..;x=1", "..%5cadmin", "..\\admin"),
        *("%252e%252e%252fadmin", "%c0%ae%c0%ae%c0%afadmin", "a%2f..%2f..%2fadmin"),
        *("%e0%80%ae%e0%80%ae%e0%80%afadmin", "..%f0%80%80%afadmin"),
        *("..%00", "..%20", "%09..", ".%0a.", "..%0d%2fadmin", "..%3f", "..%23"),
    ],
)
def test_a_captured_segment_cannot_leave_its_folder(house: House, climbing: str) -> None:
    for path in ("/users", "/tail", "/tail/a"):
        assert get(house.gateway, f"{path}/{climbing}").refusal() == (404, "not_found")
    assert house.service.asked == []


@pytest.mark.parametrize("name", ["X-Original-URL", "x-rewrite-url", "X_Original_Url"])
def test_request_fields_cannot_replace_the_path(house: House, name: str) -> None:
    """Symfony and Zend used to route by these fields, which a rewriting server sets."""
    assert get(house.gateway, "/plain", f"{name}: /admin").status == 200
    assert b"/admin" not in dict(house.service.last.fields).values()


def test_a_trusted_proxy_may_send_the_original_path(house: House) -> None:
    line = "X-Original-URL: /before"
    assert ask(house.gateway, "GET", "/plain", line, source="127.0.0.2").status == 200
    assert house.service.last.one("X-Original-URL") == b"/before"
