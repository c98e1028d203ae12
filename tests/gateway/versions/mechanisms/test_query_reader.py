"""Query parameters are read as forms are, but for the plus."""

from urllib.parse import parse_qsl, unquote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.versions.mechanisms.query import QueryReader
from tests.gateway.world import LAW, QUERY, head


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


NAMES = st.text(st.sampled_from("ab %+é2"), min_size=1, max_size=3)
PARTS = st.sampled_from([*"ab2%+ é&=", "%61", "%4", "%20", "%c3%A9", "%C3", "%2B", "%25"])


@LAW
@given(NAMES, st.lists(PARTS, max_size=9).map("".join))
def test_a_name_may_be_coded_in_any_way(name: str, query: str) -> None:
    """As decoding each name would find."""

    def is_named(pair: str) -> bool:
        text = pair.partition("=")[0].replace("+", " ")
        return unquote_to_bytes(text.encode()) == name.encode()

    pairs = query.split("&")
    values = tuple(unquote(pair.partition("=")[2]) for pair in pairs if is_named(pair))
    assert QueryReader(name).read(head("/")._replace(query=query), {}) == (values if query else ())
    renamed = [f"{pair.partition('=')[0]}=7" if is_named(pair) else pair for pair in pairs]
    assert QueryReader(name).rewrite_query(query, "7") == "&".join(renamed)
