"""JSON values that no change alters keep their original text, even with repeated keys."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body, large_json, original_text
from gateway.conversion.message import Message
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rules.load import load
from gateway.versions.version import Version
from tests.gateway.world import LAW

RULES = """
services: {{ a: {{ targets: ["http://localhost:1"] }} }}
apis:
  a:
    versions: {{ "2": {{ service: a }}, "1": {{ via: "2" }} }}
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }} ]
    conversions: [ {{ between: ["1", "2"], changes: [ {changes} ] }} ]
"""
RENAME = "{ rename: { field: total, to: amount } }"
INSIDE = '{ rename: { field: "lines[].sum", to: "lines[].cost" } }'
INSIDE += ", { rename: { field: o.p.q, to: o.p.r } }"
CASES = "{ key_case: { newer: camel, older: snake, but: [rawData] } }"
WORDS = "{ map: { field: state, values: { OPEN: open }, unknown: keep } }"
PRICES = '{ type: { field: "prices.*", newer: number, older: text } }'
KEYS = "{ keys: { field: prices, values: { EUR: euro } } }"
HEADER = "{ to_header: { field: total, header: X-Total, type: number } }"


@cache
def conversion(changes: str) -> BodyConversion:
    rules = RULES.format(changes=changes)
    (endpoint,) = load(rules.encode(), "gateway.yaml", {}, Path()).router
    response = endpoint.routes[Version(1, "1")].response
    assert response is not None
    made = response.for_response("GET", 200)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        (RENAME, b' {"a": 1.50, "b":[ ] }\r\n'),
        (RENAME, b'{"a":1,"b":2,"a":3}'),
        (RENAME, b'{"caf\\u00e9":1,"\\/":2}'),
        (RENAME, b'[ {"a" :1}, null,[ 2 ]]\n'),
        (RENAME, b" [ ] "),
        (RENAME, b"\t1.0e+2 "),
        (RENAME, b'{"a" :"\\ud800"}'),
        (INSIDE, b'{"lines": [{"x": 1}, {"x" : 2, "x":3}, null], "o": {"p": {"a":1} } }'),
        (INSIDE, b'{"lines":[{"x":1},{"x" :2}],"o":{"p":{}}}'),
        (CASES, b'{"a": {"b": [{"c" : 1}, [ ]]}, "x":1, "x":2}'),
        (CASES, b'{"a":[ {"b":{"c":1,"c":2}} ]}'),
        (CASES, b'[{"a":[1, 2]}, true]'),
        (WORDS, b'{ "state":"d\\u00f6ne" }'),
        (PRICES, b'{"a" :{"prices":1}}'),
        (KEYS, b'{"prices": {"USD": 1}}'),
        (HEADER, b'{"a": 1}'),
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_a_body_that_no_change_alters_is_the_same_object(
    changes: str, body: bytes, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(large_json, "LARGE", 1)
    message = Message(status=200) if changes is HEADER else None
    assert json_body.convert(body, conversion(changes), message) is body


@pytest.mark.parametrize(
    ("changes", "body", "expected"),
    [
        (RENAME, b'{"a": [ 1.50 ], "total": 1e2 }', b'{"a":[ 1.50 ],"amount":1e2}'),
        (RENAME, b'{"a":1,"total":5,"a":{"b" : 2}}', b'{"a":1,"amount":5,"a":{"b" : 2}}'),
        (RENAME, b'{"a":12,"total":5, "a":1}', b'{"a":12,"amount":5,"a":1}'),
        (RENAME, b'{"\\u0061\\/":1, "total":5}', b'{"\\u0061\\/":1,"amount":5}'),
        (RENAME, b'[{"total":1}, {"b" : 2}]', b'[{"amount":1},{"b" : 2}]'),
        (
            INSIDE,
            b'{"lines": [{"x": 1}, {"sum": 2}], "o": {"p": {"q":1, "q2": {"z": 1}}, "s" : 1}}',
            b'{"lines":[{"x": 1},{"cost":2}],"o":{"p":{"r":1,"q2":{"z": 1}},"s":1}}',
        ),
        (
            CASES,
            b'{"aB": {"c" :1}, "rawData": {"x Y" : {"zZ": 1}}, "dE":1, "dE": [{ "f":1}, {"gH":2}]}',
            b'{"a_b":{"c" :1},"raw_data":{"x Y" : {"zZ": 1}},"d_e":1,"d_e":[{ "f":1},{"g_h":2}]}',
        ),
        (PRICES, b'{"prices": {"EUR": 1.50}, "b": [ ]}', b'{"prices":{"EUR":"1.50"},"b":[ ]}'),
        (KEYS, b'{"prices": {"EUR": 1.50, "USD": { }}}', b'{"prices":{"euro":1.50,"USD":{ }}}'),
        (HEADER, b'{"total": 5, "a": [1, 2], "a":3}', b'{"a":[1, 2],"a":3}'),
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_values_that_no_change_alters_keep_their_text_in_a_converted_body(
    changes: str, body: bytes, expected: bytes, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(large_json, "LARGE", 1)
    message = Message(status=200) if changes is HEADER else None
    assert json_body.convert(body, conversion(changes), message) == expected


@pytest.mark.parametrize(
    ("changes", "body", "place"),
    [
        (RENAME, b'{"total":1,"a":2,"total":3}', ""),
        (RENAME, b'[1,{"total":1,"total":3}]', "/1"),
        (WORDS, b'{"state":"OPEN","state":"x"}', ""),
        (INSIDE, b'{"o":{"p":1,"p":{"q":1}}}', ""),
        (INSIDE, b'{"lines":[],"lines":[{"sum":1}]}', "/lines"),
        (PRICES, b'{"prices":{"EUR":1,"EUR":2}}', "/prices/EUR"),
        (KEYS, b'{"prices":{"EUR":1,"EUR":2}}', "/prices"),
        (CASES, b'{"aB":1,"aB":2,"a_b":3}', "/a_b"),
        ("{ entries: { field: m, key: k, value: v } }", b'{"m":{"a":1,"a":2}}', "/m"),
        ('{ flatten: { field: m, prefix: "m_" } }', b'{"m":{"a":1,"a":2}}', ""),
        ('{ nest: { field: m, prefix: "m_" } }', b'{"m_a":1,"m_a":2}', ""),
        ('{ python: { up: "builtins:dict", down: "builtins:dict" } }', b'{"a":1,"a":2}', ""),
    ],
)
def test_a_repeated_key_that_a_change_names_is_refused(
    changes: str, body: bytes, place: str
) -> None:
    with pytest.raises(ConversionError) as caught:
        json_body.convert(body, conversion(changes))
    assert caught.value.pointer == place


NAMES = st.sampled_from(
    ['"a"', '"total"', '"lines"', '"sum"', '"\\u0061"', '"caf\\u00e9"', '"o"', '"p"', '"q"']
)
SPACE = st.sampled_from(["", "", "", " ", "\n"])


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> str:
    kind = draw(st.integers(0, 4 if depth else 1))
    if kind < 2:
        return draw(st.sampled_from(["1", "1.50", "12", '"x"', "null", '"\\u00e9"', "{}", "[]"]))
    inner = [draw(values(depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    one, two = draw(SPACE), draw(SPACE)
    if kind == 2:
        return f"[{one}{f'{two},'.join(inner)}{two}]"
    return f"{{{one}{f',{two}'.join(f'{draw(NAMES)}{one}:{each}' for each in inner)}}}"


@LAW
@given(
    values(),
    st.sampled_from([RENAME, INSIDE, f"{RENAME}, {INSIDE}"]),
    st.sampled_from([1, 9, 2**16]),
)
def test_white_space_does_not_affect_the_conversion_of_a_body(
    text: str, changes: str, large: int
) -> None:
    def pairs(document: bytes) -> Any:
        return json.loads(
            document, object_pairs_hook=lambda found: ("object", found), parse_float=str
        )

    def made(document: bytes) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(large_json, "LARGE", large)
            try:
                return pairs(json_body.convert(document, conversion(changes)))
            except ConversionError as error:
                return str(error)

    compact = "".join(text.split())
    assert made(text.encode()) == made(compact.encode())
    if made(text.encode()) == pairs(text.encode()):
        assert json_body.convert(text.encode(), conversion(changes)) == text.encode()


# A conversion that parses an object, but does not alter it.
LINK = VersionLink(Version(1, "1"), Version(2, "2"), (rename((), ("no such",), ("neither",)),))
OPENED = BodyConversion((LINK,), Direction.UP)
RENAMED = BodyConversion(
    (VersionLink(Version(1, "1"), Version(2, "2"), (rename((), ("c",), ("b",)),)),), Direction.UP
)

# Keys with escaped colons, quotes or letters, and values that look like members.
ODD_KEYS = st.sampled_from(
    [
        *(
            *('"a"', '"\\u0061"', '":"', '"\\u003a"', '"\\u003A"', '"\\\\"', '"\\u005c"', '""'),
            '"\\""',
        ),
        *('"\\u003a\\u003a"', '"::"', '"\u00e9"', '"\\u00e9"', '"\\u0022:"', '"b"'),
    ]
)
BLANKS = st.sampled_from(["", "", " ", "\n\t"])
VALUES = st.sampled_from(
    [
        *("1", "null", '"a"', '":"', '"\\u003a"', '{"a":1,"a":2}', '[":",{"b" : 1}]', "{}"),
        *('"\u00e9"', "1.50"),
    ]
)


@st.composite
def objects(draw: st.DrawFn) -> str:
    members = draw(st.lists(st.tuples(ODD_KEYS, VALUES), max_size=4))
    one, two, three = draw(BLANKS), draw(BLANKS), draw(BLANKS)
    inner = f"{one},{two}".join(f"{key}{two}:{three}{value}" for key, value in members)
    return f"{{{one}{inner}{three}}}"


def converted(text: str) -> bytes | None:
    try:
        return json_body.convert(text.encode(), RENAMED)
    except ConversionError:
        return None


@LAW
@given(objects())
def test_members_that_no_change_names_keep_their_text_and_order(text: str) -> None:
    body = text.encode()
    assert json_body.convert(body, OPENED) is body
    pairs = json.loads(text, object_pairs_hook=Pairs)
    keys = [key for key, _ in pairs]
    made = converted(text)
    if keys.count("b") > 1:
        assert made is None  # it is undefined which member is renamed
    elif "b" not in keys:
        assert made == body
    else:
        assert made is not None
        found = json.loads(made, object_pairs_hook=Pairs)
        assert found == [("c" if key == "b" else key, value) for key, value in pairs]


class Pairs(list[tuple[str, Any]]):
    """The members of an object, in their original order."""


def is_refused_within(text: str) -> bool:
    try:
        original_text.refuse_repeated_within(text.encode(), json.loads(text))
    except ConversionError:
        return True
    return False


@LAW
@given(objects())
def test_refuse_repeated_within_finds_a_repeated_key_at_any_depth(text: str) -> None:
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated |= len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=look)
    assert is_refused_within(text) == repeated
    assert is_refused_within(f"[{text}]") == repeated
