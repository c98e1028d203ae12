"""Rewriting: the service's version replaces the client's version, and nothing else changes."""

import pytest

from gateway.base.headers import HeaderFields
from gateway.versions.matching import Matching
from gateway.versions.reader import Reader, VersionRewrite
from gateway.versions.version import Version
from tests.gateway.world import ACCEPT, HEADER, PATH, QUERY

EVERYWHERE: tuple[Reader, ...] = (PATH, QUERY, HEADER, ACCEPT)
V1, V2 = (b"application/vnd.comp.app-v%d+json" % version for version in (1, 2))


def telling(*readers: Reader) -> VersionRewrite:
    made = VersionRewrite.of(readers, "2")
    assert made is not None
    return made


def test_a_version_in_the_path_needs_no_rewrite() -> None:
    assert VersionRewrite.of((PATH,), "2") is None
    assert VersionRewrite.of((), "2") is None


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (None, None),
        ("", ""),
        ("version=1", "version=2"),
        ("version=1&version=%31", "version=2&version=2"),
        ("%76ersion=1", "%76ersion=2"),
        ("a=%20&version=1.2+&b", "a=%20&version=2&b"),
        ("Version=1&versions=1&a=version=1", "Version=1&versions=1&a=version=1"),
    ],
)
def test_a_rewritten_query_names_the_version_of_the_service(
    query: str | None, told: str | None
) -> None:
    assert telling(*EVERYWHERE).query(query) == told
    assert telling(HEADER, ACCEPT).query(query) == query


def test_a_body_of_another_version_keeps_its_media_type() -> None:
    matching = Matching(aliases={"latest": Version(1, "1")})
    rewrite = VersionRewrite.of((HEADER, ACCEPT), "2", Version(1, "1"), matching)
    assert rewrite is not None
    for label, told in {"v1": V2, "v2": V2, "v3": None, "VLATEST": V2, "V1": V2}.items():
        given = f"application/vnd.comp.app-{label}+json".encode()
        assert rewrite.fields([(b"Content-Type", given)]) == [(b"Content-Type", told or given)]


FIELDS = {
    "a header": ([(b"x-api-Version", b"1")], [(b"x-api-Version", b"2")]),
    "each of its lines": (
        [(b"X-API-VERSION", b"1"), (b"A", b"1"), (b"X-API-VERSION", b"1")],
        [(b"X-API-VERSION", b"2"), (b"A", b"1"), (b"X-API-VERSION", b"2")],
    ),
    "a media type": ([(b"Accept", V1)], [(b"Accept", V2)]),
    "whatever its case": ([(b"ACCEPT", V1.upper())], [(b"ACCEPT", V2)]),
    "among others": (
        [(b"Accept", b"text/html ;q=0.1," + V1 + b"\t;q=1, */*," + V1)],
        [(b"Accept", b"text/html ;q=0.1," + V2 + b"\t;q=1, */*," + V2)],
    ),
    "what a body is called": (
        [(b"Content-Type", V1 + b"; charset=utf-8")],
        [(b"Content-Type", V2 + b"; charset=utf-8")],
    ),
}


@pytest.mark.parametrize(("fields", "told"), FIELDS.values(), ids=FIELDS)
def test_rewritten_header_fields_name_the_version_of_the_service(
    fields: HeaderFields, told: HeaderFields
) -> None:
    assert telling(*EVERYWHERE).fields(fields) == told
    assert telling(QUERY).fields(fields) == fields


@pytest.mark.parametrize(
    "line",
    [
        (b"Accept", b"x" + V1),
        (b"Accept", V1 + b"x"),
        (b"Accept", b"application/json"),
        (b"X-Accept", V1),
    ],
)
def test_similar_header_fields_are_unchanged(line: tuple[bytes, bytes]) -> None:
    assert telling(*EVERYWHERE).fields([line]) == [line]


def test_the_host_is_unchanged_without_a_host_reader() -> None:
    assert telling(*EVERYWHERE).authority("API.test:80") == "API.test:80"


@pytest.mark.parametrize(
    ("readers", "query", "told"),
    [
        ((ACCEPT, QUERY, HEADER), None, "version=2"),
        ((QUERY,), "", "version=2"),
        ((QUERY,), "a=%20&versions=1", "a=%20&versions=1&version=2"),
        # A conversion may have added the parameter.
        ((QUERY,), "%76ersion=1", "%76ersion=2"),
        ((QUERY,), "%76ersion=%32", "%76ersion=%32"),
        ((HEADER, QUERY), "a", "a"),
        ((ACCEPT,), None, None),
    ],
)
def test_the_version_is_added_to_a_query_if_it_is_the_first_writable_location(
    readers: tuple[Reader, ...], query: str | None, told: str | None
) -> None:
    assert telling(*readers).adding().query(query) == told


@pytest.mark.parametrize(
    ("readers", "fields", "told"),
    [
        ((ACCEPT, HEADER, QUERY), [(b"A", b"1")], [(b"A", b"1"), (b"X-API-VERSION", b"2")]),
        ((HEADER,), [(b"x-api-version", b"1")], [(b"x-api-version", b"2")]),
        ((QUERY, HEADER), [], []),
        ((ACCEPT,), [(b"Accept", b"*/*")], [(b"Accept", b"*/*")]),
    ],
)
def test_the_version_is_added_to_header_fields_if_they_are_the_first_writable_location(
    readers: tuple[Reader, ...], fields: HeaderFields, told: HeaderFields
) -> None:
    assert telling(*readers).adding().fields(fields) == told
