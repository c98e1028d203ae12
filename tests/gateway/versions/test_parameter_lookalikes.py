"""Parameters that a service may read as that of the version are found, and no others."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.versions.mechanisms.query import QueryReader
from tests.gateway.world import HEADER, LAW, head

LOOKALIKES = {
    "version": [
        *(
            "+version",
            "%20version",
            "%20+version",
            "%09version",
            "?version",
            "!version",
            "[version]",
        ),
        *("version+", "version%0a", "version%00", "version%00x", "ver%0dsion", "version%ff"),
        *("version[]", "version[x]", "version%5B%5D", "version[", "version;x"),
        *("VERSION", "Version", "ver%C5%BFion", "VERS%C4%B0ON", "vers%C4%B1on", "v%C3%A9rsion"),
        *("%EF%BD%96ersion", "%EF%BB%BFversion", "%E2%80%8Bversion"),
        *("%2576ersion", "%u0076ersion", "%uD800version", "%c1%b6ersion", "%e0%81%b6ersion"),
        *("version%3D2", "a%26version", "a=1;version", "a=1;b;version"),
    ],
    "api_version": [
        *("api.version", "api+version", "api%20version", "api[version", "api%80version"),
        *("API_VERSION", "api_version[]", "%00api.version"),
    ],
    "api-version": ["+api-version", "API-Version", "api-version[]"],
    "api.version": ["api_version", "api+version", "API.version", "api.version[0]"],
    "api version": ["api_version", "api.version"],
    "version[]": ["version", "version[x]", "Version[]", "+version[]"],
    "_": ["+_", ".", "_[]"],
}
OTHERS = {
    "version": [
        *(
            "versions",
            "app_version",
            "subversion",
            "version_x",
            "version.x",
            "a.version",
            "_version",
        ),
        *("a", "", "filter[version]", "a+version", "a=version", "a=b;versions", "q=%zz&%ff=%"),
        *("a=%26version=1", "a=%3Bversion=1", "url=http%3A%2F%2Fx%2F%3Fversion%3D1"),
    ],
    "api_version": ["api-version", "apiversion", "version", "api_versions", "my.api.version"],
    "api-version": ["api_version", "api.version"],
    "api.version": ["api-version"],
    "api version": ["api+version", "api%20version"],
    "version[]": ["versions[]", "version%5B%5D"],
    "_": ["a_", "__", "-"],
    "[]": ["a[]", "[x]", "%5b"],
}


def found(name: str, query: str) -> str | None:
    return QueryReader(name).lookalike(head(f"/?{query}"))


@pytest.mark.parametrize("name", LOOKALIKES)
def test_every_lookalike_is_found_wherever_it_stands(name: str) -> None:
    own = quote(name)
    for other in LOOKALIKES[name]:
        for query in (other, f"{own}=2&{other}=1", f"a=1&{other}=1&b=%20&{own}=2&{own}=2"):
            lookalike = found(name, query)
            assert lookalike, query
            assert lookalike in query


@pytest.mark.parametrize("name", OTHERS)
def test_other_parameters_and_the_exact_name_are_none(name: str) -> None:
    own = quote(name)
    for other in OTHERS[name]:
        for query in (other, f"{own}=2&{other}", f"{other}&{own}=2", f"%{ord(name[0]):x}{own[1:]}"):
            assert found(name, query) is None, query


def test_a_request_without_a_query_has_none() -> None:
    assert HEADER.lookalike(head("/?X-API-Version=1")) is None
    assert QueryReader("version").lookalike(head("/")) is None
    assert QueryReader("version").lookalike(head("/?")) is None


@LAW
@given(st.lists(st.sampled_from(["v", "V", "+", "%20", "[", "]", "=", "&", ";", "%", "1", "%76"])))
def test_a_lookalike_is_found_behind_any_query(parts: list[str]) -> None:
    query = "".join(parts)
    assert found("v", f"{query}&V=1") is not None
