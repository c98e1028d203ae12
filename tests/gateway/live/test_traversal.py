"""Captures that climb out of their folder reach no other endpoint of a service."""

import pytest

from tests.gateway.live.conftest import House
from tests.gateway.live.raw import get


@pytest.mark.parametrize(
    "climbing",
    [
        *("..%2fadmin", "%2e%2e%2fadmin", "..;", "..;x=1", "..%5cadmin", "..\\admin"),
        *("%252e%252e%252fadmin", "%c0%ae%c0%ae%c0%afadmin", "a%2f..%2f..%2fadmin"),
        *("%e0%80%ae%e0%80%ae%e0%80%afadmin", "..%f0%80%80%afadmin"),
        *("..%00", "..%20", "%09..", ".%0a.", "..%0d%2fadmin", "..%3f", "..%23"),
    ],
)
def test_no_capture_climbs(house: House, climbing: str) -> None:
    for path in ("/users", "/tail", "/tail/a"):
        assert get(house.gateway, f"{path}/{climbing}").refusal() == (404, "not_found")
    assert house.service.asked == []
