"""The mechanism `{ in: query }`: the version is the value of a query parameter."""

from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.versions.mechanisms.query import QueryReader
from tests.gateway.rules.rules import edited, loaded, report
from tests.gateway.world import HEADER, LAW, QUERY, head

LOOKALIKES = {
    "version": [
        *(
            *("+version", "%20version", "%20+version", "%09version", "?version", "!version"),
            "[version]",
        ),
        *("version+", "version%0a", "version%00", "version%00x", "ver%0dsion", "version%ff"),
        *("version[]", "version[x]", "version%5B%5D", "version[", "version;x"),
        *("VERSION", "Version", "ver%C5%BFion", "VERS%C4%B0ON", "vers%C4%B1on", "v%C3%A9rsion"),
        *("%EF%BD%96ersion", "%EF%BB%BFversion", "%E2%80%8Bversion"),
        *("%2576ersion", "%u0076ersion", "%uD800version", "%c1%b6ersion", "%e0%81%b6ersion"),
        *("version%3D2", "a%26version", "a=1;version", "a=1;b;version"),
    ],
    "api_version": [
        *("api.version", "api+version", "api%20version", "api[version", "api%80version"),
        *("API_VERSION", "api_version[]", "%00api.version"),
    ],
    "api-version": ["+api-version", "API-Version", "api-version[]"],
    "api.version": ["api_version", "api+version", "API.version", "api.version[0]"],
    "api version": ["api_version", "api.version"],
    "version[]": ["version", "version[x]", "Version[]", "+version[]"],
    "_": ["+_", ".", "_[]"],
}
OTHERS = {
    "version": [
        *(
            *("versions", "app_version", "subversion", "version_x", "version.x", "a.version"),
            "_version",
        ),
        *("a", "", "filter[version]", "a+version", "a=version", "a=b;versions", "q=%zz&%ff=%"),
        *("a=%26version=1", "a=%3Bversion=1", "url=http%3A%2F%2Fx%2F%3Fversion%3D1"),
    ],
    "api_version": ["api-version", "apiversion", "version", "api_versions", "my.api.version"],
    "api-version": ["api_version", "api.version"],
    "api.version": ["api-version"],
    "api version": ["api+version", "api%20version"],
    "version[]": ["versions[]", "version%5B%5D"],
    "_": ["a_", "__", "-"],
    "[]": ["a[]", "[x]", "%5b"],
}


def found(name: str, query: str) -> str | None:
    return QueryReader(name).lookalike(head(f"/?{query}"))


@pytest.mark.parametrize("name", LOOKALIKES)
def test_every_lookalike_is_found_anywhere_in_the_query(name: str) -> None:
    own = quote(name)
    for other in LOOKALIKES[name]:
        for query in (other, f"{own}=2&{other}=1", f"a=1&{other}=1&b=%20&{own}=2&{own}=2"):
            lookalike = found(name, query)
            assert lookalike, query
            assert lookalike in query


@pytest.mark.parametrize("name", OTHERS)
def test_other_parameters_are_not_lookalikes(name: str) -> None:
    own = quote(name)
    for other in OTHERS[name]:
        for query in (other, f"{own}=2&{other}", f"{other}&{own}=2", f"%{ord(name[0]):x}{own[1:]}"):
            assert found(name, query) is None, query


def test_a_request_without_a_query_has_no_lookalike() -> None:
    assert HEADER.lookalike(head("/?X-API-Version=1")) is None
    assert QueryReader("version").lookalike(head("/")) is None
    assert QueryReader("version").lookalike(head("/?")) is None


@LAW
@given(st.lists(st.sampled_from(["v", "V", "+", "%20", "[", "]", "=", "&", ";", "%", "1", "%76"])))
def test_a_lookalike_is_found_after_any_query(parts: list[str]) -> None:
    query = "".join(parts)
    assert found("v", f"{query}&V=1") is not None


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
def test_queries_are_parsed_like_forms_except_for_plus_signs(query: str) -> None:
    parsed = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    expected = tuple(value for name, value in parsed if name == "v")
    assert QueryReader("v").read(head("/")._replace(query=query), {}) == expected


def test_the_name_of_a_query_parameter_may_contain_spaces() -> None:
    reader = QueryReader("API version")
    assert reader.read(head("/?API+version=1&API%20version=2"), {}) == ("1", "2")


NAMES = st.text(st.sampled_from("ab %+é2"), min_size=1, max_size=3)
PARTS = st.sampled_from([*"ab2%+ é&=", "%61", "%4", "%20", "%c3%A9", "%C3", "%2B", "%25"])


@LAW
@given(NAMES, st.lists(PARTS, max_size=9).map("".join))
def test_a_name_is_found_in_any_percent_encoding(name: str, query: str) -> None:
    """The result equals that of a comparison of decoded names."""

    def is_named(pair: str) -> bool:
        text = pair.partition("=")[0].replace("+", " ")
        return unquote_to_bytes(text.encode()) == name.encode()

    pairs = query.split("&")
    values = tuple(unquote(pair.partition("=")[2]) for pair in pairs if is_named(pair))
    assert QueryReader(name).read(head("/")._replace(query=query), {}) == (values if query else ())
    renamed = [f"{pair.partition('=')[0]}=7" if is_named(pair) else pair for pair in pairs]
    assert QueryReader(name).rewrite_query(query, "7") == "&".join(renamed)


def test_a_query_mechanism_compiles_to_its_reader() -> None:
    text = edited("{ in: query, name: version }", '{ in: query, name: "api v", default: "2" }')
    found = loaded(text).router.find("/param")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (QueryReader("api v"),)
    assert str(found[0].selector.default) == "2"


def test_an_empty_parameter_name_is_a_mistake() -> None:
    (line,) = report(edited("{ in: query, name: version }", '{ in: query, name: "" }'))
    assert line.endswith("apis.person.endpoints[1].version.name: must not be empty")
