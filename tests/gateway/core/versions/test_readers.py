"""Readers: each reports every raw value of its mechanism, and decides nothing."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.versions.readers import AcceptReader, HeaderReader, Mechanism, QueryReader, Reader
from tests.gateway.core.world import ACCEPT, HEADER, LAW, PATH, QUERY, V1, VENDOR, head


@pytest.mark.parametrize(
    ("reader", "mechanism", "place"),
    [
        (PATH, Mechanism.PATH, "the path"),
        (QUERY, Mechanism.QUERY, "the query parameter 'version'"),
        (HEADER, Mechanism.HEADER, "the header X-API-VERSION"),
        (
            ACCEPT,
            Mechanism.ACCEPT,
            "the header Accept, as application/vnd.comp.app-v<version>+json",
        ),
    ],
    ids=["path", "query", "header", "accept"],
)
def test_a_reader_says_where_the_version_belongs(
    reader: Reader, mechanism: Mechanism, place: str
) -> None:
    assert reader.mechanism is mechanism
    assert reader.place == place


EVERYWHERE = head(
    "/v1/person?version=2", ("X-API-VERSION", "3"), ("Accept", VENDOR.format(4)), method="POST"
)


@pytest.mark.parametrize(
    ("reader", "value"),
    [(PATH, "1"), (QUERY, "2"), (HEADER, "3"), (ACCEPT, "4")],
    ids=["path", "query", "header", "accept"],
)
def test_a_reader_reads_its_own_mechanism_only(reader: Reader, value: str) -> None:
    assert reader.read(EVERYWHERE, {"version": "1", "id": "7"}) == (value,)


@pytest.mark.parametrize("reader", [QUERY, HEADER, ACCEPT], ids=["query", "header", "accept"])
def test_nothing_is_found_where_nothing_is(reader: Reader) -> None:
    assert reader.read(head("/v1/person"), {"version": "1"}) == ()


@pytest.mark.parametrize("raw", ["1", "01", "1.0", "%31", "\u0660", "1%2F2", "a b"])
def test_the_path_is_read_raw(raw: str) -> None:
    assert PATH.read(head("/"), {"version": raw}) == (raw,)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", ()),
        ("&", ()),
        ("=", ()),
        ("=1", ()),
        ("a=1", ()),
        ("version=1", ("1",)),
        ("version=1&", ("1",)),
        ("&&version=1", ("1",)),
        ("version=1&version=2", ("1", "2")),
        ("version=2&a=b&version=1", ("2", "1")),
        ("version=1&version=1", ("1", "1")),
        ("version", ("",)),
        ("version=", ("",)),
        ("version==1", ("=1",)),
        ("version=1=2", ("1=2",)),
        ("version=1;version=2", ("1;version=2",)),
        ("version=1?version=2", ("1?version=2",)),
        ("version=+1", ("+1",)),
        ("version=1+", ("1+",)),
        ("version=%31", ("1",)),
        ("version=%2B1", ("+1",)),
        ("version=1%26version%3D2", ("1&version=2",)),
        ("version=%", ("%",)),
        ("version=%zz", ("%zz",)),
        ("version=%D9%A1", ("\u0661",)),
        ("version=%FF", ("\ufffd",)),
        ("version=%00", ("\0",)),
        ("%76ersion=1", ("1",)),
        ("Version=1", ()),
        ("VERSION=1", ()),
        ("version+=1", ()),
        ("+version=1", ()),
        ("version[]=1", ()),
        ("version%00=1", ()),
        ("xversion=1", ()),
        ("versions=1", ()),
    ],
)
def test_every_value_of_the_query_parameter_is_read(query: str, values: tuple[str, ...]) -> None:
    assert QUERY.read(head(f"/person?{query}"), {}) == values


@LAW
@given(st.text(st.sampled_from("ver12&=+%;?v37 é/\ud800") | st.characters()).filter(str))
def test_queries_are_read_as_forms_are_but_for_the_plus(query: str) -> None:
    parsed = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    expected = tuple(value for name, value in parsed if name == "v")
    assert QueryReader("v").read(head("/")._replace(query=query), {}) == expected


def test_the_name_of_a_query_parameter_may_be_any_text() -> None:
    reader = QueryReader("API version")
    assert reader.read(head("/?API+version=1&API%20version=2"), {}) == ("1", "2")


@pytest.mark.parametrize("name", ["X-API-VERSION", "x-api-version", "X-Api-Version"])
def test_the_name_of_a_header_is_case_insensitive(name: str) -> None:
    assert HEADER.read(head("/", (name, "1")), {}) == ("1",)
    assert HeaderReader(name).read(head("/", ("x-aPI-vERSION", "1")), {}) == ("1",)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("1", "1"),
        (" 1", "1"),
        ("1 \t ", "1"),
        ("\t1", "1"),
        ("", ""),
        ("  ", ""),
        ("1, 2", "1, 2"),
        ("1 2", "1 2"),
        ("X1X", "X1X"),
        ("\x0b1", "\x0b1"),
        ("1\x85", "1\x85"),
        ("\xa01", "\xa01"),
        ('"1"', '"1"'),
    ],
    ids=ascii,
)
def test_only_the_white_space_that_http_allows_is_taken_off(line: str, value: str) -> None:
    assert HEADER.read(head("/", ("X-API-VERSION", line)), {}) == (value,)


def test_every_line_of_the_header_is_read() -> None:
    fields = (("X-API-VERSION", "2"), ("Accept", "*/*"), ("x-api-version", " 1 "))
    assert HEADER.read(head("/", *fields), {}) == ("2", "1")


@pytest.mark.parametrize(
    ("accept", "values"),
    [
        ("application/vnd.comp.app-v1+json", ("1",)),
        ("APPLICATION/VND.COMP.APP-V2+JSON", ("2",)),
        ("application/vnd.comp.app-v1+json;charset=utf-8", ("1",)),
        ("application/vnd.comp.app-v1+json, application/vnd.comp.app-v2+json", ("1", "2")),
        ("application/vnd.comp.app-v2+json, application/vnd.comp.app-v1+json", ("2", "1")),
        ("application/vnd.comp.app-v1+json;q=0.5, application/vnd.comp.app-v2+json", ("2", "1")),
        ("application/vnd.comp.app-v1+json;q=0, application/vnd.comp.app-v2+json;q=0.1", ("2",)),
        ("application/vnd.comp.app-v1+json;q=0.000", ()),
        (
            "application/vnd.comp.app-v1+json;q=0.5;q=1, application/vnd.comp.app-v2+json;q=0.6",
            ("2", "1"),
        ),
        ("text/html, application/vnd.comp.app-v1+json;q=0.1, */*", ("1",)),
        ("*/*, application/*, application/json", ()),
        ("application/vnd.comp.app-v+json", ("",)),
        ("application/vnd.comp.app-v01+json", ("01",)),
        ("application/vnd.comp.app-v1.0+json", ("1.0",)),
        ("application/vnd.comp.app-v1+json+json", ("1+json",)),
        ("application/vnd.comp.app-v*+json", ("*",)),
        ("application/vnd.comp.app-vfoo1+json", ("foo1",)),
        ("application/vnd.comp.app-v1+xml", ()),
        ("application/vnd.comp.app-1+json", ()),
        ("application/vnd.comp.app-v1", ()),
        ("application/vnd.comp.app+json", ()),
        ("text/vnd.comp.app-v1+json", ()),
        ("xapplication/vnd.comp.app-v1+json", ()),
        ("application/vnd.comp.app-v1+json;q=2, application/vnd.comp.app-v2+json", ("2",)),
        ('x/y;z="application/vnd.comp.app-v1+json, a/b"', ()),
        ("", ()),
    ],
)
def test_the_versions_that_accept_names_are_read_the_highest_weight_first(
    accept: str, values: tuple[str, ...]
) -> None:
    assert ACCEPT.read(head("/", ("Accept", accept)), {}) == values


@pytest.mark.parametrize(
    ("accept", "refused"),
    [
        ("application/vnd.comp.app-v1+json;q=0", True),
        ("APPLICATION/VND.COMP.APP-V1+JSON;Q=0.000", True),
        ("a/b, application/vnd.comp.app-v1+json;q=0;x=y", True),
        ("application/vnd.comp.app-v1+json;q=0.001", False),
        ("application/vnd.comp.app-v1+json", False),
        ("application/vnd.comp.app-v2+json;q=0", False),
        ("application/vnd.comp.app-v01+json;q=0", False),
        ("application/vnd.comp.app-v1+xml;q=0", False),
        ("*/*;q=0", False),
        ("", False),
    ],
)
def test_weight_zero_refuses_the_version_that_it_names(accept: str, refused: bool) -> None:
    assert ACCEPT.refuses(head("/", ("Accept", accept)), V1) is refused


def test_several_accept_lines_are_one_list() -> None:
    fields = (
        ("Accept", VENDOR.format(1) + ";q=0.2"),
        ("accept", "text/html"),
        ("ACCEPT", f"{VENDOR.format(2)}, {VENDOR.format(3)};q=0.2"),
    )
    assert ACCEPT.read(head("/", *fields), {}) == ("2", "1", "3")


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
def test_any_pattern_of_a_media_type_is_read(
    reader: AcceptReader, accept: str, values: tuple[str, ...]
) -> None:
    assert reader.read(head("/", ("Accept", accept)), {}) == values


@LAW
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10)), max_size=8))
def test_equal_weights_keep_the_order_and_zero_refuses(wishes: list[tuple[int, int]]) -> None:
    accept = ", ".join(f"{VENDOR.format(version)};q={weight / 10}" for version, weight in wishes)
    expected = [
        str(version)
        for wanted in range(10, 0, -1)
        for version, weight in wishes
        if weight == wanted
    ]
    assert ACCEPT.read(head("/", ("Accept", accept)), {}) == tuple(expected)


@LAW
@given(st.integers(0, 10**9))
def test_a_reader_reads_the_media_type_that_it_names(version: int) -> None:
    assert ACCEPT.read(head("/", ("Accept", ACCEPT.media_type(version))), {}) == (str(version),)
