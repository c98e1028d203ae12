"""The Location of a new user."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from users_service.app import location


def _location(*headers: tuple[str, str]) -> str:
    request = make_mocked_request("POST", "/users?a=b", CIMultiDict(headers))
    request.transport.get_extra_info = {"sockname": ("127.0.0.1", 8003)}.get  # type: ignore[union-attr, method-assign]
    return location(request, 7)


PROTO, FORWARDED, HOST = "X-Forwarded-Proto", "X-Forwarded-Host", "Host"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], "http://127.0.0.1:8003/users/7"),
        ([(HOST, "users:8003")], "http://users:8003/users/7"),
        ([(HOST, "users"), (FORWARDED, "api.example.com")], "http://api.example.com/users/7"),
        ([(FORWARDED, "a:8443"), (PROTO, "https")], "https://a:8443/users/7"),
        ([(FORWARDED, "[::1]:80"), (PROTO, "HTTP")], "http://[::1]:80/users/7"),
        ([(HOST, "users"), (PROTO, "HTTPS")], "https://users/users/7"),
        ([(HOST, "users"), (PROTO, "javascript")], "http://users/users/7"),
        ([(HOST, "users"), (PROTO, "https"), (PROTO, "http")], "http://users/users/7"),
        ([(HOST, "users"), (FORWARDED, "a"), (FORWARDED, "b")], "http://users/users/7"),
    ],
)
def test_the_location_has_the_scheme_and_authority_of_the_client(
    headers: list[tuple[str, str]], expected: str
) -> None:
    assert _location(*headers) == expected


@pytest.mark.parametrize(
    "authority",
    [
        *("", "a/b", "a b", "user@a", "a?b", "a#b", "a:b", "a:123456", "a,b", "a\\b", "[::1", "ä"),
        "a\n",
    ],
)
def test_a_malformed_authority_is_ignored(authority: str) -> None:
    assert _location((FORWARDED, authority), (HOST, "users")) == "http://users/users/7"
    assert _location((HOST, authority)) == "http://127.0.0.1:8003/users/7"
