"""The version in a parameter of a media type: `{ in: accept, media_type: "a/b; v={version}" }`."""

import time

import pytest

from gateway.versions.mechanisms.accept import AcceptParameterReader
from gateway.versions.mechanisms.content_type import ContentTypeParameterReader
from gateway.versions.version import Version
from tests.gateway.rules.rules import edited, report
from tests.gateway.world import V1, V2, head

ANY, JSON = AcceptParameterReader("*/*", "version"), AcceptParameterReader("application/json", "v")
VENDOR = AcceptParameterReader("application/json", "v", names_response=True)
BODY = ContentTypeParameterReader("application/json", "v")


@pytest.mark.parametrize(
    ("reader", "accept", "versions"),
    [
        (JSON, "application/json; v=2", ("2",)),
        (JSON, "Application/JSON;V=2", ("2",)),
        (JSON, 'application/json;v="2"', ("2",)),
        (JSON, r'application/json;v="1.\0"', ("1.0",)),
        (JSON, "application/json;charset=utf-8;v=2;q=0.5, application/json;v=1", ("1", "2")),
        (JSON, "application/json;v=1;q=0, application/json;v=2", ("2",)),
        (JSON, "application/json;v=1;v=2", ()),
        (JSON, "application/json;version=2", ()),
        (JSON, "application/json", ()),
        (JSON, "application/xml;v=2", ()),
        (JSON, "*/*;v=2", ()),
        (ANY, "application/xml; version=1.0, text/html;version=v1beta1", ("1.0", "v1beta1")),
        (ANY, "*/*", ()),
    ],
)
def test_the_parameter_of_an_accepted_type_is_the_version(
    reader: AcceptParameterReader, accept: str, versions: tuple[str, ...]
) -> None:
    assert reader.read(head("/", ("Accept", accept)), {}) == versions


def test_a_version_of_weight_zero_is_refused() -> None:
    asked = head("/", ("Accept", "application/json;v=1;q=0, application/json"))
    assert [JSON.refuses(asked, version) for version in (V1, V2)] == [True, False]


@pytest.mark.parametrize(
    ("fields", "versions"),
    [
        ((("Content-Type", "application/json; v=2"), ("Content-Length", "2")), ("2",)),
        ((("Content-Type", "application/json; v=2"), ("Transfer-Encoding", "chunked")), ("2",)),
        ((("Content-Type", "application/json; v=2"),), ()),
        ((("Content-Type", "application/json"), ("Content-Length", "2")), ()),
        ((("Content-Type", "text/plain; v=2"), ("Content-Length", "2")), ()),
    ],
)
def test_the_parameter_of_the_body_type_is_the_version(
    fields: tuple[tuple[str, str], ...], versions: tuple[str, ...]
) -> None:
    assert BODY.read(head("/", *fields), {}) == versions


@pytest.mark.parametrize(
    ("reader", "name", "value", "written"),
    [
        (JSON, "Accept", "application/json;q=0.5;v=1", "application/json;q=0.5;v=9"),
        (JSON, "Accept", 'a/b;v=1, application/json; v="1"', "a/b;v=1, application/json; v=9"),
        (JSON, "Accept", 'application/json;a="x;v=1";v=1', 'application/json;a="x;v=1";v=9'),
        (ANY, "Accept", "text/html;version=1, a/b;version=2", "text/html;version=9, a/b;version=9"),
        (BODY, "Content-Type", "application/json; charset=utf-8; v=1", None),
        (BODY, "Content-Type", "application/json; charset=utf-8; v=2", "same"),
        (BODY, "X-Accept", "application/json; v=1", "same"),
    ],
)
def test_the_service_gets_its_own_version_in_the_parameter(
    reader: AcceptParameterReader | ContentTypeParameterReader,
    name: str,
    value: str,
    written: str | None,
) -> None:
    expected = value if written == "same" else written or value.replace("v=1", "v=9")
    fields = reader.rewrite_fields([(name.encode(), value.encode())], "9", lambda one: one == "1")
    assert fields == [(name.encode(), expected.encode())]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/json;v=2", "application/json; v=2"),
        ("application/json;v=latest", "application/json; v=latest"),
        ("application/json;v=2+", "application/json; v=2"),
        ("*/*", "application/json; v=2"),
        ("application/json", None),
    ],
)
def test_a_response_names_the_version_if_the_request_accepts_it(
    accept: str, content_type: str | None
) -> None:
    asked = head("/", ("Accept", accept))
    assert VENDOR.response_media_type(asked, V2, {"latest": V2}) == content_type
    assert JSON.response_media_type(asked, V2, {"latest": V2}) is None


def test_a_parameter_of_many_members_is_replaced_in_linear_time() -> None:
    for value in ("application/json;" * 9000, "a/b;v=" * 20000, 'application/json;v="' * 8000):
        began = time.thread_time()
        JSON.rewrite_fields([(b"Accept", value.encode())], "9", lambda _: True)
        JSON.read(head("/", ("Accept", value)), {})
        assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    "text", ["application/json; q={version}", "a/b; v={version}x", "a; v={version}"]
)
def test_a_pattern_has_one_parameter_that_is_the_version(text: str) -> None:
    (line,) = report(edited('media_type: "a/b-v{version}+json"', f'media_type: "{text}"'))
    assert "not a media type with one parameter that is the version" in line


def test_a_response_cannot_get_a_wildcard_type() -> None:
    text = 'media_type: "*/*; v={version}", response_type: vendor'
    (line,) = report(edited('media_type: "a/b-v{version}+json"', text))
    assert "matches several types; name the one type of the responses" in line


def test_an_address_names_the_parameter() -> None:
    version = Version(1, "2024-09-30.acacia")
    assert JSON.address(version).header == "Accept: application/json; v=2024-09-30.acacia"
    assert BODY.address(version).header == "Content-Type: application/json; v=2024-09-30.acacia"
