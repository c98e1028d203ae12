"""Query parameters are read as forms are, but for the plus."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.versions.mechanisms.query_reader import QueryReader
from tests.gateway.core.world import LAW, QUERY, head


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
