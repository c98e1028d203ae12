"""The mechanism `{ in: accept }`: the version is part of a media type in Accept."""

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.versions.mechanisms.accept import AcceptReader
from gateway.versions.mechanisms.media_range import MediaRange, parse_accept
from tests.gateway.rules.rules import edited, loaded, report
from tests.gateway.world import ACCEPT, LAW, V1, VENDOR, head

TCHARS = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def parse(lines: list[str], part: str = "/") -> list[MediaRange]:
    """Return members without their parameters, which test_media_type_parameter.py tests."""
    return [member._replace(parameters=()) for member in parse_accept(lines, part)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a/b", ("a/b", 1.0)),
        ("*/*", ("*/*", 1.0)),
        ("text/*", ("text/*", 1.0)),
        ("Application/VND.Comp.App-V1+JSON", ("application/vnd.comp.app-v1+json", 1.0)),
        (" \t a/b \t ", ("a/b", 1.0)),
        ("a/b;q=0.5", ("a/b", 0.5)),
        ("a/b;Q=0.5", ("a/b", 0.5)),
        ("a/b \t; \tq=0.5 ", ("a/b", 0.5)),
        ("a/b;q=0", ("a/b", 0.0)),
        ("a/b;q=0.", ("a/b", 0.0)),
        ("a/b;q=0.000", ("a/b", 0.0)),
        ("a/b;q=0.001", ("a/b", 0.001)),
        ("a/b;q=1", ("a/b", 1.0)),
        ("a/b;q=1.", ("a/b", 1.0)),
        ("a/b;q=1.000", ("a/b", 1.0)),
        ("a/b;level=1", ("a/b", 1.0)),
        ("a/b;level=1;q=0.5", ("a/b", 0.5)),
        ("a/b;q=0.5;extension=x", ("a/b", 0.5)),
        ("a/b;q=0.5;q=1", ("a/b", 0.5)),
        ("a/b;q=0.5;q=nonsense", ("a/b", 0.5)),
        ("a/b;qq=0.5", ("a/b", 1.0)),
        ("a/b;", ("a/b", 1.0)),
        ("a/b;;q=0.3", ("a/b", 0.3)),
        ("a/b; ;q=0.3; ", ("a/b", 0.3)),
        ('a/b;x="y"', ("a/b", 1.0)),
        ('a/b;x=""', ("a/b", 1.0)),
        ('a/b;x="y,z";q=0.5', ("a/b", 0.5)),
        ('a/b;x=";q=0.1";q=0.5', ("a/b", 0.5)),
        (r'a/b;x="\"";q=0.5', ("a/b", 0.5)),
        (r'a/b;x="\\";q=0.5', ("a/b", 0.5)),
        (r'a/b;x="\",c/d";q=0.5', ("a/b", 0.5)),
        ('a/b;x="é\n"', ("a/b", 1.0)),
    ],
)
def test_a_well_formed_member_is_parsed(line: str, expected: tuple[str, float]) -> None:
    assert parse([line]) == [MediaRange(*expected)]


@pytest.mark.parametrize(
    "line",
    [
        *("", " ", ",", " , ,,\t", ";", "=", "/", "*", "a", "a/", "/b", "a/b/c", "a b", "a /b"),
        *("a/ b", "a/b c", "a/b=c", "é/b", "a/é", "a/b\n", "\0a/b", "a/b{", "(a/b)", "a\\/b"),
        *("a/b;x", "a/b;x=", "a/b;=y", "a/b;x =y", "a/b;x= y", "a/b;x=y z", "a/b;x=y=z", "a/b x=y"),
        *("a/b;q", "a/b;q=", "a/b;q=.5", "a/b;q=1.001", "a/b;q=0.1234", "a/b;q=2", "a/b;q=-0"),
        *("a/b;q=00", "a/b;q=1.0000", "a/b;q=0.5.", "a/b;q=high", 'a/b;q="0.5"', "a/b;q=\u0660"),
        *("a/b;q=1e0", "a/b;q=+1", "a/b;q=0x1", "a/b;q=nan", "a/b;q=inf", "a/b;q=2;q=0.5"),
        *('"a/b"', 'a/b"', '"', '""', 'a/b;x="y"z', 'a/b;x=y"z"', 'a/b;x="y', r'a/b;x="y\"'),
    ],
    ids=ascii,
)
def test_malformed_members_are_skipped(line: str) -> None:
    assert parse([line]) == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        (["a/b,c/d"], ["a/b", "c/d"]),
        (["c/d", "a/b"], ["c/d", "a/b"]),
        (["a/b , c/d", "", "e/f"], ["a/b", "c/d", "e/f"]),
        ([",,a/b,,", ", c/d"], ["a/b", "c/d"]),
        (["a/b, nonsense, c/d"], ["a/b", "c/d"]),
        (["a/b;q=9, c/d;q"], []),
        (["a/b;q=0,5, c/d"], ["a/b", "c/d"]),
        (["a/b, a/b"], ["a/b", "a/b"]),
        (['a/b;x="c/d, e/f", g/h'], ["a/b", "g/h"]),
        (['x "c/d, e/f", g/h'], ["g/h"]),
        (['a/b", c/d'], ["c/d"]),
        (['", c/d'], ["c/d"]),
        (['a/b, c/d;x="y, e/f'], ["a/b", "e/f"]),
        (['a/b;x="y, z", c/d;x="y, e/f'], ["a/b", "e/f"]),
        ([r'a/b;x="\", c/d, e/f;y="\", g/h'], ["g/h"]),
        ([r'a/b;x="\", c/d, e/f;y=\", g/h'], ["c/d", "g/h"]),
        (['a/b;x="y', 'c/d;x="z"'], ["c/d"]),
    ],
)
def test_members_keep_the_order_of_the_request(lines: list[str], expected: list[str]) -> None:
    assert [member.essence for member in parse(lines)] == expected


tokens = st.text(st.sampled_from(TCHARS), min_size=1, max_size=6)
quoted = st.text(st.sampled_from('ab ,;=/"\\é\t'), max_size=6).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
spaces = st.text(st.sampled_from(" \t"), max_size=2)
names = tokens.filter(lambda name: name.lower() != "q")
weights = st.integers(0, 1000).map(lambda number: number / 1000)


@st.composite
def members(draw: st.DrawFn, values: st.SearchStrategy[str] = tokens) -> tuple[str, MediaRange]:
    essence = f"{draw(tokens)}/{draw(tokens)}"
    parameters = [f"{draw(names)}={draw(values)}" for _ in range(draw(st.integers(0, 3)))]
    weight = draw(st.none() | weights)
    if weight is not None:
        spelling = draw(st.sampled_from(("{:.3f}", "{:g}")))
        place = draw(st.integers(0, len(parameters)))
        parameters.insert(place, f"{draw(st.sampled_from('qQ'))}={spelling.format(weight)}")
    text = essence
    for parameter in parameters:
        text += f"{draw(spaces)};{draw(spaces)}{parameter}"
    text = f"{draw(spaces)}{text}{draw(spaces)}"
    return text, MediaRange(essence.lower(), 1.0 if weight is None else weight)


def unquoted(text: str) -> bool:
    return "," not in text and '"' not in text and not parse([text])


garbage = st.text(st.sampled_from("ab/;=q019. é*\\\0"), max_size=8).filter(unquoted)


@LAW
@given(st.lists(st.lists(members(tokens | quoted), max_size=4), max_size=3))
def test_well_formed_members_are_parsed_back(lines: list[list[tuple[str, MediaRange]]]) -> None:
    written = [",".join(text for text, _ in line) for line in lines]
    assert parse(written) == [meant for line in lines for _, meant in line]


@LAW
@given(st.lists(st.tuples(st.lists(garbage, max_size=2), members(tokens | quoted)), max_size=4))
def test_malformed_members_do_not_affect_well_formed_members(
    mixed: list[tuple[list[str], tuple[str, MediaRange]]],
) -> None:
    written = ",".join(text for before, (member, _) in mixed for text in (*before, member))
    assert parse([written]) == [meant for _, (_, meant) in mixed]


@LAW
@given(st.lists(members(), max_size=3), garbage, garbage, st.lists(members(), max_size=3))
def test_an_unclosed_quote_invalidates_only_its_own_member(
    before: list[tuple[str, MediaRange]], left: str, right: str, after: list[tuple[str, MediaRange]]
) -> None:
    texts = [text for text, _ in before] + [f'{left}"{right}'] + [text for text, _ in after]
    assert parse([",".join(texts)]) == [meant for _, meant in (*before, *after)]


@LAW
@given(st.lists(st.text() | st.text(st.sampled_from('ab/;=q01.,"\\ \t*')), max_size=4))
def test_any_string_is_parsed_without_an_error(lines: list[str]) -> None:
    for member in parse(lines):
        assert 0.0 <= member.weight <= 1.0
        assert member.essence == member.essence.lower()
        assert member.essence.isascii()
        assert member.essence.count("/") == 1


@LAW
@given(st.lists(st.text(st.sampled_from('ab/;=q01.,"\\ ')), max_size=4))
def test_each_header_line_is_parsed_as_a_separate_list(lines: list[str]) -> None:
    assert parse(lines) == [member for line in lines for member in parse([line])]


SIZE = 1 << 16
bits = st.text(st.sampled_from('a/;="\\, \tq1\0'), max_size=6)


@LAW
@given(bits, bits, bits)
def test_random_repeated_lines_are_parsed_in_linear_time(first: str, again: str, last: str) -> None:
    """The limit allows for a slow machine. Quadratic time would far exceed it at this size."""
    assume(again)
    line = first + again * (SIZE // len(again)) + last
    began = time.thread_time()
    parse([line])
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("again", ['\\"', '\\",', '",', '"a', " ;", ';a="', 'a/b;x="\\",', "a/b;,"])
def test_repeated_quotes_and_parameters_are_parsed_in_linear_time(again: str) -> None:
    for first in ("", '"', 'a/b;x="', "a/b"):
        began = time.thread_time()
        parse([first + again * (SIZE // len(again))])
        assert time.thread_time() - began < 1


def test_a_member_is_immutable() -> None:
    with pytest.raises(AttributeError):
        MediaRange("a/b", 1.0).weight = 0.5  # type: ignore[misc]


def test_members_without_the_given_part_are_skipped() -> None:
    assert parse(["A/B, a/c", 'x/y;z="a/b, a/b"'], "a/b") == [
        MediaRange("a/b", 1.0),
        MediaRange("x/y", 1.0),
    ]


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
def test_versions_in_accept_are_read_in_order_of_descending_weight(
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
def test_a_media_type_with_weight_zero_refuses_its_version(accept: str, refused: bool) -> None:
    assert ACCEPT.refuses(head("/", ("Accept", accept)), V1) is refused


def test_several_accept_lines_form_one_list() -> None:
    fields = (
        ("Accept", VENDOR.format(1) + ";q=0.2"),
        ("accept", "text/html"),
        ("ACCEPT", f"{VENDOR.format(2)}, {VENDOR.format(3)};q=0.2"),
    )
    assert ACCEPT.read(head("/", *fields), {}) == ("2", "1", "3")


@LAW
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10)), max_size=8))
def test_members_of_equal_weight_keep_their_order(wishes: list[tuple[int, int]]) -> None:
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
def test_a_reader_reads_the_version_in_its_own_media_type(version: int) -> None:
    assert ACCEPT.read(head("/", ("Accept", ACCEPT.media_type(version))), {}) == (str(version),)


def test_a_response_has_the_media_type_of_its_version() -> None:
    assert ACCEPT.content_type(V1) == VENDOR.format(1)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([], True),
        (["*/*"], True),
        (["*/*;q=0.1", " */*"], True),
        ([VENDOR.format(1)], True),
        ([f"application/json, {VENDOR.format(1)};q=0.1"], True),
        ([VENDOR.format(2)], True),
        (["application/json"], False),
        (["application/json, */*;q=0.1"], False),
        (["application/*"], False),
        (["text/html", "*/*"], False),
        ([f"{VENDOR.format(1)};q=0, application/json"], False),
    ],
)
def test_a_client_that_requests_only_other_types_does_not_get_the_type_of_the_version(
    lines: list[str], *, named: bool
) -> None:
    fields = [("Accept", line) for line in lines]
    assert ACCEPT.response_media_type(head("/", *fields), V1, {}) == (
        VENDOR.format(1) if named else None
    )


def test_an_accept_mechanism_compiles_to_its_reader() -> None:
    found = loaded(edited('"a/b-v{version}+json"', '"A/b-{version}"')).router.find("/accept")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (AcceptReader("a/b-", ""),)
    assert found[0].vary == ("Accept",)


def test_a_pattern_that_is_not_a_media_type_is_a_mistake() -> None:
    (line,) = report(edited('"a/b-v{version}+json"', "a/b"))
    assert "apis.person.endpoints[3].version.media_type: not a media type" in line
