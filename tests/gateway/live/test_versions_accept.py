"""Version selection by Accept, over sockets: by RFC 9110, and what some clients send instead."""

import pytest

from tests.gateway.kit import Stack
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, get

V1 = "application/vnd.comp.app-v1+json"
V2 = "application/vnd.comp.app-v2+json"
V3 = "application/vnd.comp.app-v3+json"

CHOSEN: dict[str, tuple[list[str | bytes], int]] = {
    "case of the type": ([f"Accept: {V1.upper()}"], 1),
    "case of the field": ([f"aCCEPT: {V2}"], 2),
    "white space around": ([f"Accept:\t {V1}\t "], 1),
    "among others": ([f"Accept: text/html, {V1}, */*;q=0.1"], 1),
    "no white space": ([f"Accept:text/html,{V1},*/*"], 1),
    "empty members": ([f"Accept: ,, ,{V1},\t,"], 1),
    "several lines": (["Accept: text/html", f"Accept: {V2}", "Accept: */*"], 2),
    "an empty line": (["Accept:", f"Accept: {V1}"], 1),
    "twice the same": ([f"Accept: {V1}, {V1}"], 1),
    # q-values
    "equal, the first": ([f"Accept: {V1}, {V2}"], 1),
    "equal, the first, the other way": ([f"Accept: {V2}, {V1}"], 2),
    "equal, the first, in lines": ([f"Accept: {V2}", f"Accept: {V1}"], 2),
    "equal by default": ([f"Accept: {V2};q=1.0, {V1}"], 2),
    "higher wins": ([f"Accept: {V1};q=0.8, {V2};q=0.9"], 2),
    "default is 1": ([f"Accept: {V1};q=0.999, {V2}"], 2),
    "three digits": ([f"Accept: {V1};q=0.101, {V2};q=0.1"], 1),
    "no digits": ([f"Accept: {V1};q=0., {V2};q=1."], 2),
    "across lines": ([f"Accept: {V1};q=0.2", f"Accept: {V2};q=0.3"], 2),
    "tiny": ([f"Accept: {V2};q=0.001"], 2),
    "capital Q": ([f"Accept: {V1};Q=0.1, {V2};Q=0.2"], 2),
    "white space around q": ([f"Accept: {V1} ; \tq=0.1 , {V2}\t;\tq=0.2 "], 2),
    "zero refuses": ([f"Accept: {V1};q=0, {V2};q=0.001"], 2),
    "zero in long": ([f"Accept: {V2};q=0.000, {V1};q=0.1"], 1),
    "unknown first": ([f"Accept: {V3}, {V1};q=0.1"], 1),
    "malformed first": (["Accept: application/vnd.comp.app-v01+json", f"Accept: {V2};q=0.1"], 2),
    "wildcard refused": ([f"Accept: {V1}, */*;q=0"], 1),
    # parameters
    "parameter": ([f"Accept: {V1};version=2"], 1),
    "parameters before q": ([f"Accept: {V1};charset=utf-8;a=b;q=0.1, {V2};q=0.2"], 2),
    "parameters after q": ([f"Accept: {V1};q=0.1;a=b, {V2};q=0.2"], 2),
    "first q counts": ([f"Accept: {V1};q=0.1;q=1, {V2};q=0.2"], 2),
    "empty parameters": ([f"Accept: {V1};;; q=0.1;, {V2};q=0.2"], 2),
    "comma in a quoted string": ([f'Accept: text/plain;a="b, {V1}, c", {V2}'], 2),
    "semicolon in a quoted string": ([f'Accept: {V1};a="b;q=0", {V2};q=0.5'], 1),
    "quote in a quoted string": ([f'Accept: text/plain;a="\\", {V1}, \\\\", {V2}'], 2),
    "quoted string, odd bytes": ([b'Accept: text/plain;a="\xff\xfe", ' + V1.encode()], 1),
    # invalid members are skipped
    "no slash": ([f"Accept: {V1.replace('/', '')}, {V2}"], 2),
    "white space inside": ([f"Accept: application /vnd.comp.app-v1+json, {V2}"], 2),
    "white space before +": ([f"Accept: application/vnd.comp.app-v1 +json, {V2}"], 2),
    "something behind": ([f"Accept: {V1} x, {V2}"], 2),
    "a second slash": ([f"Accept: {V1}/x, {V2}"], 2),
    "not a q-value": ([f"Accept: {V1};q=high, {V2};q=0.1"], 2),
    "q too large": ([f"Accept: {V1};q=1.1, {V2};q=0.1"], 2),
    "q of 2": ([f"Accept: {V1};q=2, {V2};q=0.1"], 2),
    "q too long": ([f"Accept: {V1};q=0.9999, {V2};q=0.1"], 2),
    "q negative": ([f"Accept: {V1};q=-1, {V2};q=0.1"], 2),
    "q without zero": ([f"Accept: {V1};q=.9, {V2};q=0.1"], 2),
    "q quoted": ([f'Accept: {V1};q="0.9", {V2};q=0.1'], 2),
    "q empty": ([f"Accept: {V1};q=, {V2};q=0.1"], 2),
    "q arabic-indic": ([f"Accept: {V1};q=\N{ARABIC-INDIC DIGIT ONE}, {V2};q=0.1"], 2),
    "parameter without value": ([f"Accept: {V1};a, {V2};q=0.1"], 2),
    "odd bytes": ([b"Accept: \xff\xfe, (x), @/@, " + V2.encode()], 2),
    "only punctuation": ([f'Accept: ;=;,/,";", {V2}'], 2),
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
    "empty": (["Accept:"], "version_missing"),
    "anything": (["Accept: */*"], "version_missing"),
    "any application": (["Accept: application/*"], "version_missing"),
    "JSON": (["Accept: application/json"], "version_missing"),
    "the XML of the version": (["Accept: application/vnd.comp.app-v1+xml"], "version_missing"),
    "no suffix": (["Accept: application/vnd.comp.app-v1"], "version_missing"),
    "other suffix": (["Accept: application/vnd.comp.app-v1+jsonx"], "version_missing"),
    "other vendor": (["Accept: application/vnd.other.app-v1+json"], "version_missing"),
    "other resource": (["Accept: application/vnd.comp.apps-v1+json"], "version_missing"),
    "other type": (["Accept: text/vnd.comp.app-v1+json"], "version_missing"),
    "longer": (["Accept: x-application/vnd.comp.app-v1+json"], "version_missing"),
    "any character for a dot": (["Accept: application/vndXcomp.app-v1+json"], "version_missing"),
    "version as a parameter": (["Accept: application/json;version=1"], "version_missing"),
    "refused": ([f"Accept: {V1};q=0"], "version_missing"),
    "both refused": ([f"Accept: {V1};q=0.0, {V2};q=0, */*"], "version_missing"),
    "in a quoted string": ([f'Accept: text/plain;a="{V1}"'], "version_missing"),
    "garbage": ([f"Accept: {V1} x"], "version_missing"),
    "none": (["Accept: application/vnd.comp.app-v+json"], "version_malformed"),
    "wildcard": (["Accept: application/vnd.comp.app-v*+json"], "version_malformed"),
    "encoded": (["Accept: application/vnd.comp.app-v%31+json"], "version_malformed"),
    "doubled": (["Accept: application/vnd.comp.app-v1+json+json"], "version_malformed"),
    "unknown": ([f"Accept: {V3}"], "version_unknown"),
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
    "value",
    ['"' + '\\"' * 7500, 'a/b;c="' + '\\"' * 7500, 'a/b;c="' * 2000, "," * 15000, ";=" * 7500],
    ids=["quotes in a quote", "quotes in a parameter", "open quotes", "commas", "parameters"],
)
def test_a_costly_accept_header_is_refused_in_time(stack: Stack, value: str) -> None:
    answer: Answer = get(stack.gateway, "/person/accept", *[f"Accept: {value}"] * 4)
    assert answer.status == 406


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
