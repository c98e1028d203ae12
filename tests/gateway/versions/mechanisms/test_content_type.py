"""The mechanism `{ in: content_type }`: the version is part of the media type of the body."""

import pytest

from gateway.base.errors import FaultCode
from gateway.routing.plan import Plan, Refusal, plan
from gateway.versions.mechanisms.content_type import ContentTypeReader
from gateway.versions.reader import VersionAddress, VersionRewrite
from tests.gateway.rules.rules import edited, loaded, report
from tests.gateway.world import ACCEPT, CONTENT_TYPE, V1, V2, VENDOR, head, person, snapshot

V = VENDOR.format


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ((V(1),), ("1",)),
        ((V(1).upper(),), ("1",)),
        ((f" {V(1)} ; charset=utf-8; q=0",), ("1",)),
        ((V(1), V(1)), ("1", "1")),
        ((V(1), V(2)), ("1", "2")),
        ((V(1), "application/json"), ("1",)),
        ((V("01"),), ("01",)),
        ((V(""),), ("",)),
        ((f"{V(1)}, {V(2)}",), (f"1+json, {V(2)[:-5]}",)),
        (("application/json",), ()),
        (("",), ()),
        ((), ()),
    ],
)
def test_the_version_in_the_media_type_of_the_body_is_read(
    lines: tuple[str, ...], values: tuple[str, ...]
) -> None:
    fields = [("Content-Type", line) for line in lines]
    assert CONTENT_TYPE.read(head("/", ("Content-Length", "2"), *fields), {}) == values


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        ((), ()),
        ((("Content-Length", "0"),), ()),
        ((("Content-Length", "00"),), ()),
        ((("Content-Length", "10"),), ("1",)),
        ((("Transfer-Encoding", "chunked"),), ("1",)),
    ],
)
def test_content_type_is_ignored_without_a_body(
    fields: tuple[tuple[str, str], ...], values: tuple[str, ...]
) -> None:
    assert CONTENT_TYPE.read(head("/", ("Content-Type", V(1)), *fields), {}) == values


def test_the_reader_has_the_properties_of_its_mechanism() -> None:
    reader = CONTENT_TYPE
    assert reader.place == f"the header Content-Type, as {V('<version>')}"
    assert (reader.mechanism, reader.refusal_status) == ("content_type", 415)
    assert reader.vary == ("Content-Type",)
    assert reader.address(V2) == VersionAddress(header=f"Content-Type: {V(2)}")
    assert reader.content_type(V2) is None
    assert not reader.refuses(head("/", ("Content-Type", f"{V(1)};q=0")), V1)


def test_the_rewritten_media_type_names_the_version_of_the_service() -> None:
    rewrite = VersionRewrite.of((CONTENT_TYPE,), "2")
    assert rewrite is not None
    told = rewrite.fields([(b"content-type", f"{V(1)};a=b".encode()), (b"A", V(1).encode())])
    assert told == [(b"content-type", f"{V(2)};a=b".encode()), (b"A", V(1).encode())]


BOTH = person("/both", ACCEPT, CONTENT_TYPE, methods=None)
WORLD = snapshot([person("/person", CONTENT_TYPE, methods=None), BOTH])
BODY = ("Content-Length", "2")


@pytest.mark.parametrize(
    ("called", "code"),
    [
        ("application/json", FaultCode.VERSION_MISSING),
        (V(3), FaultCode.VERSION_UNKNOWN),
        (V("x"), FaultCode.VERSION_MALFORMED),
    ],
)
def test_a_missing_unknown_or_malformed_version_is_refused_with_415(
    called: str, code: FaultCode
) -> None:
    outcome = plan(WORLD, head("/person", BODY, ("Content-Type", called), method="POST"))
    assert isinstance(outcome, Refusal)
    assert (outcome.fault.status, outcome.fault.code) == (415, code)


def test_different_versions_in_content_type_and_accept_are_a_conflict() -> None:
    fields = (BODY, ("Content-Type", V(1)))
    outcome = plan(WORLD, head("/both", *fields, ("Accept", V(2)), method="POST"))
    assert isinstance(outcome, Refusal)
    assert outcome.fault.code is FaultCode.VERSION_CONFLICT
    outcome = plan(WORLD, head("/both", *fields, ("Accept", "*/*"), method="POST"))
    assert isinstance(outcome, Plan)
    assert (outcome.version, outcome.chosen_by) == (V1, "content_type")


QUERY = "{ in: query, name: version }"


def test_a_content_type_mechanism_compiles_to_its_reader() -> None:
    text = edited(QUERY, "{ in: content_type, media_type: 'A/b-v{version}+json', default: '1' }")
    found = loaded(text).router.find("/param")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (ContentTypeReader("a/b-v", "+json"),)
    assert str(found[0].selector.default) == "1"
    assert found[0].vary == ("Content-Type",)


def test_a_pattern_that_is_not_a_media_type_is_a_mistake() -> None:
    assert report(edited(QUERY, "{ in: content_type, media_type: 'a/b' }")) == [
        (
            "9:54: apis.person.endpoints[1].version.media_type: not a media type with one {version}"
            " in its subtype; write one like application/vnd.example-v{version}+json"
        )
    ]
