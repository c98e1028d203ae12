"""The origins whose scripts may read the gateway's own responses; mistakes are in mistakes.txt."""

import pytest
from multidict import CIMultiDict

from gateway.conversion.chain import compose
from gateway.conversion.change import inverse, whole_body
from gateway.conversion.changes.default import add_parameter
from gateway.conversion.changes.join_list import join_repeated
from gateway.conversion.changes.python import call_for_parameter
from gateway.conversion.changes.rename import rename, rename_parameter
from gateway.conversion.changes.to_header import HeaderPlace, LinkPlace, QueryPlace, carry
from gateway.conversion.parameter_change import (
    inverse_parameter,
    parameter_sequence,
    recombined,
    rewritten,
)
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.routing.cors import CorsRules, NamePair, allowed, exposed, name_pairs, requested
from tests.gateway.rules.rules import RULES, loaded
from tests.gateway.world import V1, V2

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
def test_only_responses_to_allowed_origins_have_cors_fields(
    rules: CorsRules, origins: list[str], fields: tuple[tuple[bytes, bytes], ...]
) -> None:
    request = CIMultiDict([("Origin", origin) for origin in origins])
    assert rules.answer(request, FIELDS) == fields


def test_a_preflight_from_an_allowed_origin_permits_the_requested_method_and_headers() -> None:
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


def test_responses_vary_by_origin_unless_all_origins_are_allowed() -> None:
    assert NAMED.vary == ("Origin",)
    assert ALL.vary == ()


SEVERAL = recombined(("X-A", "X-B"), ("X-AB",), dict, dict)
SAME = recombined(("X-A", "X-B"), ("X-B", "X-A"), dict, dict)
KEY = whole_body(carry(("key",), HeaderPlace("Idempotency-Key")))
TOTAL = whole_body(inverse(carry(("total",), HeaderPlace("X-Total"))))
NEXT = whole_body(carry(("next",), LinkPlace("next", None, V2)))
LINKS = {
    V1: [
        VersionLink(
            V1,
            V2,
            (
                KEY,
                TOTAL,
                NEXT,
                whole_body(carry(("q",), QueryPlace("q"))),
                rename((), ("a",), ("b",)),
            ),
            headers=(
                parameter_sequence(
                    *(rename_parameter("X-By", "X-From"), inverse_parameter(SEVERAL))
                ),
                add_parameter("X-New", "1"),
                add_parameter("X-Kept", "1", keep=True),
                *(SAME, join_repeated("X-R", ","), rewritten("X-W", str, str)),
                call_for_parameter("X-P", str, str),
            ),
        ),
        VersionLink(
            V1, V2, (), headers=(rename_parameter("X-G", "X-H"),), methods=frozenset({"GET"})
        ),
        VersionLink(V1, V2, (), headers=(rename_parameter("X-I", "X-J"),), on=frozenset()),
    ]
}
UP: list[NamePair] = [
    (("X-From",), ("X-By",)),
    (("X-A", "X-B"), ("X-AB",)),
    ((), ("X-New",)),
    (("Idempotency-Key",), ()),
    ((), ("X-Total",)),
    (("Link",), ()),
]


def test_changed_header_names_are_paired_in_the_order_of_the_conversion() -> None:
    up, down = compose((V1, V2), LINKS, V1, V2), compose((V1, V2), LINKS, V2, V1)
    request, answer = MessageKind.REQUEST, MessageKind.RESPONSE
    assert name_pairs(up, "PUT", request) == tuple(UP)
    read = (("X-H",), ("X-G",))
    assert name_pairs(up, "GET", request) == name_pairs(up, "HEAD", request) == (*UP, read)
    back = tuple((newer, older) for older, newer in reversed([*UP, read]))
    assert name_pairs(down, "GET", answer) == back


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["X-From", "X-Other"], ["x-by", "x-other"]),
        (["x-other", "x-a"], ["x-other", "x-ab"]),
        (["idempotency-key"], []),
        (["x-c", "x-by", "x-from"], ["x-c", "x-by"]),
        ([""], []),
    ],
)
def test_requested_header_names_are_converted_for_the_service(
    names: list[str], asked: list[str]
) -> None:
    assert requested(names, UP) == asked


@pytest.mark.parametrize(
    ("names", "sent"),
    [
        (["X-By", "X-Other"], ["x-from", "x-other", "link", "idempotency-key"]),
        (["x-ab", "x-new"], ["x-a", "x-b", "link", "idempotency-key"]),
        ([], ["link", "idempotency-key"]),
        (["*"], ["*"]),
    ],
)
def test_allowed_header_names_are_converted_for_the_client(
    names: list[str], sent: list[str]
) -> None:
    assert sorted(allowed(names, UP)) == sorted(sent)


def test_a_combined_header_is_allowed_only_if_all_its_parts_are_allowed() -> None:
    assert allowed(["X-A"], [(("X-AB",), ("X-A", "X-B"))]) == ["x-a"]
    assert allowed(["X-B", "X-A"], [(("X-AB",), ("X-A", "X-B"))]) == ["x-ab"]


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["X-By", "X-Other"], ["x-from", "x-other", "x-total"]),
        (["x-a"], ["x-ab", "x-total"]),
        (["X-Total"], ["x-total"]),
        (["*"], ["*"]),
        ([], ["x-total"]),
    ],
)
def test_exposed_header_names_are_converted_for_the_client(
    names: list[str], read: list[str]
) -> None:
    pairs = [
        (("X-By",), ("X-From",)),
        (("X-A", "X-B"), ("X-AB",)),
        ((), ("X-Total",)),
        ((), ("X-Absent",)),
    ]
    assert exposed(names, pairs, {"x-total", "x-by"}) == read


ORIGINS = '"http://localhost:3000", "https://app.test", "https://[::1]:8443", "app://index"'


def test_configured_origins_are_compiled() -> None:
    assert loaded(RULES).cors is None
    found = loaded(f"{RULES}cors: {{ origins: [{ORIGINS}], credentials: true }}\n").cors
    origins = frozenset(origin.strip(' "') for origin in ORIGINS.split(","))
    assert found == CorsRules(origins, credentials=True)


def test_a_star_in_the_configuration_allows_all_origins() -> None:
    assert loaded(f'{RULES}cors: {{ origins: ["*"] }}\n').cors == CorsRules(frozenset({"*"}))
