"""Media type patterns with the version in the subtype."""

import pytest

from gateway.base.mistakes import Mistakes
from gateway.versions.mechanisms.accept import AcceptReader
from gateway.versions.mechanisms.content_type import ContentTypeReader
from gateway.versions.mechanisms.media_type import parse_media_type
from gateway.versions.version import Version
from tests.gateway.world import HEADER, head


@pytest.mark.parametrize(
    ("text", "around"),
    [
        ("a/b-v{version}+json", ("a/b-v", "+json")),
        ("App/X{version}", ("app/x", "")),
        ("a/{version}.b", ("a/", ".b")),
        ("a/b", None),
        ("a{version}/b", None),
        ("a/b{version}{version}", None),
        ("a/b{version};q=1", None),
        ("a/b{version}\n", None),
    ],
)
def test_a_pattern_has_one_version_in_its_subtype(
    text: str, around: tuple[str, str] | None
) -> None:
    mistakes = Mistakes()
    found = parse_media_type(text, ["1"], mistakes.below("here"))
    assert found == (around and (*around, ()))
    assert [mistake.location for mistake in mistakes.found] == ([] if around else [("here",)])


def test_a_version_with_upper_case_letters_is_a_mistake() -> None:
    mistakes = Mistakes()
    parse_media_type("a/b{version}", ["1.0.0", "1.0.0-RC"], mistakes.below("here"))
    (mistake,) = mistakes.found
    assert "so '1.0.0-RC' is never found there" in mistake.text


def test_the_longest_label_in_a_media_type_is_its_version() -> None:
    """`1.beta` is a label, so `v1.beta+xml` is not version 1 with the suffix `.beta+xml`."""
    found = parse_media_type("a/x.v{version}+json", ["1", "1.beta", "1.beta2"], Mistakes())
    assert found == ("a/x.v", "+json", ("1.beta2", "1.beta"))
    reader = ContentTypeReader(*found)
    for body, expected in [
        ("a/x.v1.beta+json", "a/x.v2+json"),
        ("a/x.v1.beta2+xml", "a/x.v2+xml"),
        ("a/x.v1+xml; charset=utf-8", "a/x.v2+xml; charset=utf-8"),
    ]:
        fields = reader.rewrite_fields([(b"Content-Type", body.encode())], "2", lambda _: True)
        assert fields == [(b"Content-Type", expected.encode())]
    json, raw = AcceptReader(*found), AcceptReader("a/x.v", ".beta+json", found[2])
    both = raw.joined(json)
    assert both is not None
    assert both.read(head("/", ("Accept", "a/x.v1.beta+json")), {}) == ("1.beta",)
    assert both.read(head("/", ("Accept", "a/x.v1.gamma+json")), {}) == ("1.gamma",)


JSON, RAW = AcceptReader("a/x.v", "+json"), AcceptReader("a/x.v", ".raw+json")
XML = AcceptReader("a/xml.v", "", names_response=True)


def test_the_pattern_with_the_longest_literal_text_matches_a_media_type() -> None:
    for one, other in ((JSON, RAW), (RAW, JSON)):
        both = one.joined(other)
        assert isinstance(both, AcceptReader)
        assert [reader.has_one_type for reader in (both, one, HEADER)] == [False, True, True]
        fields = ("Accept", "a/x.v2.raw+json;q=0.5, a/x.v1+json;q=0.4, a/x.v3.raw+json;q=0")
        assert both.read(head("/", fields), {}) == ("2", "1")
        assert [both.refuses(head("/", fields), Version(one, str(one))) for one in (2, 3)] == [
            False,
            True,
        ]
        written = both.rewrite_fields([(b"Accept", fields[1].encode())], "9", every)
        assert written == [
            (b"Accept", b"a/x.v9.raw+json;q=0.5, a/x.v9+json;q=0.4, a/x.v3.raw+json;q=0")
        ]
    assert JSON.joined(RAW) != RAW.joined(JSON)
    assert JSON.joined(ContentTypeReader("a/x.v", "")) is None
    assert HEADER.joined(JSON) is None


def test_a_response_has_the_media_type_of_the_pattern_that_the_request_matched() -> None:
    both = JSON.joined(XML)
    assert isinstance(both, AcceptReader)
    assert both.place == "the header Accept, as a/x.v<version>+json or a/xml.v<version>"
    assert both.content_type(Version(1, "1")) == "a/xml.v1"
    table = {"a/x.v1+json": None, "a/xml.v1": "a/xml.v1", "a/xml.v0": "a/xml.v1", "*/*": "a/xml.v1"}
    for accept, called in table.items():
        assert (
            both.response_media_type(head("/", ("Accept", accept)), Version(1, "1"), {}) == called
        )


def every(_: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("name", "given", "written"),
    [
        (b"Content-Type", b"a/x.v2.raw; charset=utf-8", b"a/x.v1.raw; charset=utf-8"),
        (b"Content-Type", b"a/x.v2.0+xml", b"a/x.v1+xml"),
        (b"Content-Type", b"a/x.v2", b"a/x.v1"),
        (b"Content-Type", b"a/x.v2nd+xml", b"a/x.v2nd+xml"),
        (b"Content-Type", b"a/x.vlatest+json", b"a/x.v1+json"),
        (b"Content-Type", b"a/b.v2.raw", b"a/b.v2.raw"),
        (b"Accept", b"a/x.v2+xml, a/x.v2+json", b"a/x.v2+xml, a/x.v1+json"),
    ],
)
def test_the_version_in_a_content_type_is_replaced_before_any_suffix(
    name: bytes, given: bytes, written: bytes
) -> None:
    assert JSON.rewrite_fields([(name, given)], "1", every) == [(name, written)]
    long = b";" + b"x" * 300
    assert JSON.rewrite_fields([(name, given + long)], "1", every) == [(name, written + long)]
    plain = AcceptReader("a/", "")
    assert plain.rewrite_fields([(name, b"a/2.raw")], "1", every) == [(name, b"a/1")]


@pytest.mark.parametrize(
    ("reader", "accept", "values"),
    [
        (AcceptReader("application/vnd.x-v", ""), "application/vnd.x-v1", ("1",)),
        (AcceptReader("application/vnd.x-v", ""), "application/vnd.x-v1+json", ("1+json",)),
        (AcceptReader("application/", ".x+json"), "application/2.x+json", ("2",)),
        (AcceptReader("a/x1", "1x"), "a/x1x", ()),
        (AcceptReader("a/x1", "1x"), "a/x11x", ("",)),
        (AcceptReader("a/x1", "1x"), "a/x111x", ("1",)),
    ],
)
def test_the_version_is_read_with_patterns_of_any_prefix_and_suffix(
    reader: AcceptReader, accept: str, values: tuple[str, ...]
) -> None:
    assert reader.read(head("/", ("Accept", accept)), {}) == values
