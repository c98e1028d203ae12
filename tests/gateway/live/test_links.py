"""Links of services are translated to the client's version, over sockets."""

import pytest

from tests.gateway.kit import wait_for
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get


@pytest.mark.parametrize(
    ("target", "field", "wanted"),
    [
        ("/down/v1", "A: b", "/down/v1"),
        ("/down/v2", "A: b", "/down/v2"),
        ("/down/param?version=1", "A: b", "/down/param?version=1"),
        ("/down/header", "X-API-VERSION: 1", "/down/header"),
        ("/down/accept", "Accept: application/vnd.t-v1+json", "/down/accept"),
    ],
)
@pytest.mark.parametrize("status", ["201 Created", "303 See Other", "200 OK"])
def test_location_and_link_point_to_the_version_of_the_client(
    house: House, target: str, field: str, wanted: str, status: str
) -> None:
    house.service.answer = answer(
        b'{"name":{"firstName":"Bob"}}',
        f"Location: http://127.0.0.1:{house.service.port}/down/2",
        'Link: </down/2>; rel="self"',
        status=status,
    )
    got = ask(house.gateway, "POST", target, field, body=b"")
    assert got.one("Location") == f"http://api.test{wanted}".encode()
    assert got.all("Link")[0] == f'<{wanted}>; rel="self"'.encode()
    followed = get(house.gateway, wanted, field)
    assert followed.status == int(status[:3])
    assert house.service.last.line.split()[1].partition(b"?")[0] == b"/down/2"


def test_links_have_a_host_if_the_version_is_in_the_host(house: House) -> None:
    relative = "Location: /moved/3/items/7", 'Link: </moved/3/items?after=b>; rel="next"'
    house.service.answer = answer(b"{}", *relative, status="201 Created")
    got = ask(house.gateway, "POST", "/moved/v2/items", body=b"")
    assert got.one("Location") == b"http://api.test/moved/v2/items/7"
    assert got.one("Link") == b'<http://api.test/moved/v2/items?cursor=b>; rel="next"'
    got = ask(house.gateway, "POST", "/moved/v3/items", body=b"")
    assert got.one("Location") == b"/moved/v3/items/7"


def test_a_link_that_fits_no_endpoint_is_counted_and_logged(house: House) -> None:
    house.service.answer = answer(b"{}", "Location: /nowhere?secret=1")
    assert get(house.gateway, "/down/v1", "X-Request-Id: nowhere").one("Location") == (
        b"/nowhere?secret=1"
    )

    def line() -> list[object]:
        lines = house.gateway.log("request")
        return [one.get("unmapped_link") for one in lines if one["request_id"] == "nowhere"]

    assert wait_for(line) == ["/nowhere"]


@pytest.mark.parametrize(
    "field",
    [
        "X-Forwarded-Host: \u010d",
        b"X-Forwarded-Host: \xff",
        "X-Forwarded-Host: a b",
        'Forwarded: host="\u010d"',
    ],
)
def test_links_ignore_an_invalid_host_from_a_trusted_proxy(
    house: House, field: str | bytes
) -> None:
    """The proxy forwards a client's host. Earlier, this failed the response of the service."""
    house.service.answer = answer(
        b"{}", f"Location: http://127.0.0.1:{house.service.port}/down/2", status="201 Created"
    )
    got = ask(house.gateway, "POST", "/down/v1", field, body=b"", source="127.0.0.2")
    assert got.one("Location") == b"http://api.test/down/v1"
