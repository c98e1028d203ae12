"""Which scripts may read the gateway's own answers, and what a preflight is answered."""

import pytest
from multidict import CIMultiDict

from gateway.routing.cors import CorsRules

APP = "https://app.test"
NAMED = CorsRules(frozenset({APP}))
WITH_COOKIES = CorsRules(frozenset({APP}), credentials=True)
ALL = CorsRules(frozenset({"*"}))
FIELDS = ((b"Content-Type", b"x"), (b"Retry-After", b"1"), (b"X-Request-Id", b"i"), (b"Vary", b"v"))
EXPOSED = (b"Access-Control-Expose-Headers", b"Retry-After, X-Request-Id")
OWN = (b"Access-Control-Allow-Origin", APP.encode())
ANY = (b"Access-Control-Allow-Origin", b"*")
COOKIES = (b"Access-Control-Allow-Credentials", b"true")


@pytest.mark.parametrize(
    ("rules", "origins", "fields"),
    [
        (NAMED, [APP], (OWN, EXPOSED)),
        (WITH_COOKIES, [APP], (OWN, COOKIES, EXPOSED)),
        (ALL, ["https://other.test"], (ANY, EXPOSED)),
        (ALL, ["null"], (ANY, EXPOSED)),
        (NAMED, ["https://other.test"], ()),
        (NAMED, ["https://app.test.evil.test"], ()),
        (WITH_COOKIES, ["null"], ()),
        (WITH_COOKIES, [APP, APP], ()),  # no browser sends it twice
        (WITH_COOKIES, ["https://äpp.test"], ()),
        (ALL, [], ()),
    ],
)
def test_an_answer(
    rules: CorsRules, origins: list[str], fields: tuple[tuple[bytes, bytes], ...]
) -> None:
    request = CIMultiDict([("Origin", origin) for origin in origins])
    assert rules.answer(request, FIELDS) == fields


def test_a_preflight() -> None:
    asked = CIMultiDict({"Origin": APP, "Access-Control-Request-Method": "PUT"})
    method = (b"Access-Control-Allow-Methods", b"PUT")
    assert WITH_COOKIES.preflight(asked) == (OWN, COOKIES, method)
    asked["Access-Control-Request-Headers"] = "x-api-version"
    assert ALL.preflight(asked) == (
        *(ANY, method),
        (b"Access-Control-Allow-Headers", b"x-api-version"),
    )
    assert CorsRules(frozenset({"https://b.test"})).preflight(asked) == ()
    assert ALL.preflight(CIMultiDict({"Origin": APP})) == ()


def test_what_caches_have_to_know() -> None:
    assert NAMED.vary == ("Origin",)
    assert ALL.vary == ()
