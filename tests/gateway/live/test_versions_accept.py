"""Version selection by Accept, over sockets: by RFC 9110, and what some clients send instead."""

import pytest

from tests.gateway.kit import Stack
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import get

V1 = "application/vnd.comp.app-v1+json"
V2 = "application/vnd.comp.app-v2+json"
V3 = "application/vnd.comp.app-v3+json"

CHOSEN: dict[str, tuple[list[str | bytes], int]] = {
    "case of the type": ([f"Accept: {V1.upper()}"], 1),
    "several lines": (["Accept: text/html", f"Accept: {V2}", "Accept: */*"], 2),
    "an empty line": (["Accept:", f"Accept: {V1}"], 1),
    "equal, the first, the other way": ([f"Accept: {V2}, {V1}"], 2),
    "higher wins": ([f"Accept: {V1};q=0.8, {V2};q=0.9"], 2),
    "across lines": ([f"Accept: {V1};q=0.2", f"Accept: {V2};q=0.3"], 2),
    "white space around q": ([f"Accept: {V1} ; \tq=0.1 , {V2}\t;\tq=0.2 "], 2),
    "zero refuses": ([f"Accept: {V1};q=0, {V2};q=0.001"], 2),
    "unknown first": ([f"Accept: {V3}, {V1};q=0.1"], 1),
    "malformed first": (["Accept: application/vnd.comp.app-v01+json", f"Accept: {V2};q=0.1"], 2),
    "wildcard refused": ([f"Accept: {V1}, */*;q=0"], 1),
    "comma in a quoted string": ([f'Accept: text/plain;a="b, {V1}, c", {V2}'], 2),
    "quoted string, odd bytes": ([b'Accept: text/plain;a="\xff\xfe", ' + V1.encode()], 1),
    "something behind": ([f"Accept: {V1} x, {V2}"], 2),
    "q arabic-indic": ([f"Accept: {V1};q=\N{ARABIC-INDIC DIGIT ONE}, {V2};q=0.1"], 2),
    "odd bytes": ([b"Accept: \xff\xfe, (x), @/@, " + V2.encode()], 2),
}


@pytest.mark.parametrize(("lines", "version"), CHOSEN.values(), ids=CHOSEN)
def test_the_preferred_media_type_selects_the_version(
    stack: Stack, lines: list[str | bytes], version: int
) -> None:
    answer = get(stack.gateway, "/person/accept", *lines)
    assert answer.status == 200
    assert answer.one("Content-Type") == b"application/vnd.comp.app-v%d+json" % version
    assert isinstance(answer.json["name"], str) == (version == 1)
    assert answer.members("Vary") == ["accept"]


REFUSED: dict[str, tuple[list[str | bytes], str]] = {
    "absent": ([], "version_missing"),
    "anything": (["Accept: */*"], "version_missing"),
    "JSON": (["Accept: application/json"], "version_missing"),
    "the XML of the version": (["Accept: application/vnd.comp.app-v1+xml"], "version_missing"),
    "any character for a dot": (["Accept: application/vndXcomp.app-v1+json"], "version_missing"),
    "both refused": ([f"Accept: {V1};q=0.0, {V2};q=0, */*"], "version_missing"),
    "in a quoted string": ([f'Accept: text/plain;a="{V1}"'], "version_missing"),
    "wildcard": (["Accept: application/vnd.comp.app-v*+json"], "version_malformed"),
    "unknown, but JSON too": ([f"Accept: {V3}, application/json, */*"], "version_unknown"),
    "known one refused": ([f"Accept: {V1};q=0, {V3}"], "version_unknown"),
}


@pytest.mark.parametrize(("lines", "code"), REFUSED.values(), ids=REFUSED)
def test_an_accept_header_without_a_served_version_is_406(
    stack: Stack, lines: list[str | bytes], code: str
) -> None:
    answer = get(stack.gateway, "/person/accept", *lines)
    assert answer.refusal() == (406, code)
    assert answer.problem["supportedVersions"] == ["1", "2"]
    assert answer.members("Vary") == ["accept"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ([], b"application/vnd.t-v1+json"),
        (["Accept: */*"], b"application/vnd.t-v1+json"),
        (["Accept: application/vnd.t-v1+json"], b"application/vnd.t-v1+json"),
        (["Accept: application/json"], b"application/json"),
        (["Accept: text/html, application/json;q=0.9, */*;q=0.8"], b"application/json"),
    ],
)
def test_a_client_that_asks_for_json_gets_json(
    house: House, accept: list[str], kind: bytes
) -> None:
    got = get(house.gateway, "/native/any", "X-API-VERSION: 1", *accept)
    assert (got.status, got.one("Content-Type")) == (200, kind)
