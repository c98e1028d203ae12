"""Every change answers everything: the one list is walked, and each answer is held to be true."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import isabstract
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.carry import QueryPlace
from gateway.conversion.change import Change
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection
from gateway.conversion.changes.field_use import WHOLE
from gateway.conversion.changes.registry import (
    CHANGES,
    PARAMETER_CHANGES,
    ChangeConfig,
    ParameterConfig,
)
from gateway.conversion.changes.rename import Rename
from gateway.conversion.document import MISSING, PLAIN, Document, get, kind
from gateway.conversion.field_path import keys_of, parse_path
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import in_direction, rewrite_fields, rewrite_query
from gateway.rules.editor_schema import json_schema
from gateway.versions.version import Version
from tests.gateway.conversion.documents import down, jsons, up
from tests.gateway.world import LAW

Fields = Mapping[str, Any]


@dataclass(frozen=True, eq=False)  # so that it can be hashed
class Example:
    """A change as it is declared, and documents of the two versions that it joins.

    Attributes:
        declared: the change, as in gateway.yaml.
        newer: the fields of documents of the newer version, each with its values.
        older: the same of the older version.
        lost: by whether they are of the older version, fields that do not come back: an example
            of every loss that is declared.
        query: the parameters of the newer version, the older version's, and the change of them
            where it is written otherwise; None where the change is of bodies alone.
        required: whether documents of the newer version always have the fields.
    """

    declared: Fields
    newer: Mapping[str, st.SearchStrategy[Any]]
    older: Mapping[str, st.SearchStrategy[Any]]
    lost: Mapping[bool, Fields] = field(default_factory=dict)
    query: tuple[str, str] | tuple[str, str, Fields] | None = None
    required: bool = False


QUERY_PLACE = QueryPlace.__name__
COPIED = {"field": "a", "up": "copy:copy", "down": "copy:copy"}
words = st.text(st.sampled_from("abcß"), min_size=1, max_size=3)
digits = st.integers().map(str)
printable = st.text(st.sampled_from('abc ~!,"'), max_size=4).map(str.strip)


lists = st.lists(words | st.integers(), max_size=3)


def _several(elements: list[Any]) -> bool:
    return len(elements) > 1


def _key(element: dict[str, Any]) -> str:
    return str(element["k"])


EXAMPLES: dict[str, list[Example]] = {
    "rename": [
        Example({"field": "a", "to": "b"}, {"a": jsons}, {"b": jsons}, query=("a=1", "b=1")),
        Example(
            {"field": "m.a", "to": "b"},
            {"m": st.builds(dict, a=jsons)},
            {"b": jsons},
            query=("m.a=1", "b=1"),
        ),
        Example(
            {"field": "a", "to": "b", "default": "d"},
            {"a": jsons},
            {"b": jsons},
            lost={True: {}},
            query=("a=1", "b=1"),
            required=True,
        ),
    ],
    "map": [
        Example(
            {"field": "a", "values": {"A": "x", "B": 1, "C": True}},
            {"a": st.sampled_from(["A", "B", "C", None])},
            {"a": st.sampled_from(["x", 1, True, None])},
            query=("a=B", "a=1"),
        ),
        Example(
            {"field": "a", "values": {"A": "x"}, "unknown": "keep"},
            {"a": st.sampled_from(["A", "B", 1, None])},
            {"a": st.sampled_from(["x", "y", 1, None])},
            query=("a=A&a=z", "a=x&a=z"),
        ),
        Example(
            {
                "field": "a",
                "values": {"A": "x", "B": "x", "C": "z"},
                "back": {"x": "A"},
                "default": {"newer": "C"},
            },
            {"a": st.sampled_from(["A", "B", None])},
            {"a": st.sampled_from(["x", "y", 1, None])},
            lost={False: {"a": "B"}, True: {"a": "y"}},
            query=("a=A", "a=x"),
        ),
        Example(
            {
                "field": "a",
                "values": [
                    {"newer": 1, "older": "low"},
                    {"newer": True, "older": None},
                    {"newer": None, "older": 0.5},
                ],
            },
            {"a": st.sampled_from([1, True, None])},
            {"a": st.sampled_from(["low", None, 0.5])},
            query=("a=1", "a=low"),
        ),
        Example(
            {"field": "a[]", "values": {"A": 1}},
            {"a": st.none() | st.lists(st.sampled_from(["A", None]))},
            {"a": st.none() | st.lists(st.sampled_from([1, None]))},
            query=("a=A", "a=1", {"field": "a", "values": {"A": 1}}),
        ),
    ],
    "type": [
        Example(
            {"field": "a", "newer": "number", "older": "text"},
            {"a": st.integers() | st.none()},
            {"a": digits | st.none()},
            query=("a=1", "a=1"),
        ),
        Example(
            {"field": "a", "newer": "boolean", "older": "number"},
            {"a": st.booleans() | st.none()},
            {"a": st.sampled_from([0, 1, None])},
            query=("a=true", "a=1"),
        ),
        Example(
            {"field": "a", "newer": "integer", "older": "text", "scale": 2},
            {"a": st.integers() | st.none()},
            {"a": st.sampled_from(["0.05", "12.50", None])},
            query=("a=1250", "a=12.50"),
        ),
    ],
    "multiply": [
        Example(
            {"field": "a", "by": 60},
            {"a": st.integers() | st.just("15") | st.none()},
            {"a": st.integers().map(lambda n: 60 * n) | st.none()},
            query=("a=15", "a=900"),
        ),
        Example(
            {"field": "a[]", "by": 0.001, "digits": {"newer": 0}},
            {"a": st.none() | st.lists(st.integers() | st.none())},
            {"a": st.lists(st.sampled_from([7, "1.25"]))},
            query=("a=1250", "a=1.25", {"field": "a", "by": 0.001}),
        ),
    ],
    "divide": [
        Example(
            {"field": "a", "by": 1.8, "plus": 32},
            {"a": st.integers().map(lambda n: 9 * n + 32) | st.none()},
            {"a": st.integers() | st.sampled_from(["0.1", "-40", None])},
            query=("a=68", "a=20"),
        ),
        Example(
            {"field": "a", "by": 60, "digits": {"newer": 0, "older": 1}, "inexact": "round"},
            {"a": st.integers().map(lambda n: 60 * n) | st.none()},
            {"a": st.integers() | st.none()},
            lost={False: {"a": 100}, True: {"a": 0.33}},
            query=("a=900", "a=15"),
        ),
    ],
    "round": [
        Example(
            {"field": "a", "digits": 2},
            {"a": st.sampled_from([1, "1.5", "12.34", None])},
            {"a": st.sampled_from([1, "1.5", "12.34", None])},
            lost={False: {"a": "12.345"}},
            query=("a=1.5", "a=1.5"),
        ),
    ],
    "time": [
        Example(
            {"field": "a", "newer": "rfc3339", "older": "unix"},
            {"a": st.sampled_from(["2023-11-14T22:13:20Z", "1969-12-31T23:59:59.10Z", None])},
            {"a": st.integers(-(10**9), 10**9) | st.none()},
            lost={False: {"a": "2026-01-01T00:00:00+01:00"}},
            query=("a=1970-01-01T00%3A00%3A01Z", "a=1"),
        ),
        Example(
            {
                "field": "a",
                "newer": "rfc3339",
                "older": "unix_ms",
                "text": True,
                "digits": 0,
                "zone": "+01:00",
                "other_zones": "refuse",
            },
            {"a": st.sampled_from(["2023-11-14T22:13:20.125+01:00", None])},
            {"a": st.integers(-(10**9), 10**9).map(str) | st.none()},
            lost={False: {"a": "2023-11-14T22:13:20.1254+01:00"}},
            query=("a=1970-01-01T01%3A00%3A00.001%2B01%3A00", "a=1"),
        ),
        Example(
            {"field": "a", "newer": "unix_ms", "older": "rfc3339", "fraction": "unless_zero"},
            {"a": st.integers(-(10**9), 10**9) | st.none()},
            {"a": st.sampled_from(["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.120Z", None])},
            lost={True: {"a": "2023-11-14T22:13:20.000Z"}},
            query=("a=1000", "a=1970-01-01T00%3A00%3A01Z"),
        ),
        Example(
            {
                "field": "a",
                "newer": "rfc3339",
                "older": "dd.MM.yyyy HH:mm",
                "zone": "Europe/Berlin",
            },
            {"a": st.sampled_from(["2026-02-01T09:30:00+01:00", "2026-07-01T09:30:00+02:00"])},
            {"a": st.sampled_from(["01.02.2026 09:30", "25.10.2026 02:30"])},
            lost={False: {"a": "2026-10-25T02:30:00+01:00"}},
            query=("a=2026-07-31T18%3A00%3A00%2B02%3A00", "a=31.07.2026%2018%3A00"),
        ),
        Example(
            {"field": "a[]", "newer": "yyyy-MM-dd", "older": "dd/MM/yyyy"},
            {"a": st.lists(st.dates().map(str))},
            {"a": st.lists(st.sampled_from(["31/12/2026", "29/02/2024"]))},
            query=(
                "a=2026-12-31",
                "a=31%2F12%2F2026",
                {"field": "a", "newer": "yyyy-MM-dd", "older": "dd/MM/yyyy"},
            ),
        ),
    ],
    "money": [
        Example(
            {"field": "a", "currency": "c", "newer": "integer", "older": "text"},
            {"a": st.integers() | st.none(), "c": st.sampled_from(["JPY", "eur", "KWD"])},
            {"a": st.none(), "c": st.sampled_from(["JPY", "x"])},
            query=("a=1250&c=eur", "a=12.50&c=eur"),
        ),
        Example(
            {"field": "a", "currency": "c", "newer": "number", "older": "integer", "unknown": 2},
            {"a": st.none(), "c": st.sampled_from(["CLF", "USD", "x"])},
            {"a": st.integers() | st.none(), "c": st.sampled_from(["CLF", "USD", "x", None])},
            query=("a=1.50", "a=150"),
        ),
        Example(
            {"field": "a", "currency": "*", "newer": "integer", "older": "text", "unknown": 2},
            {"a": st.dictionaries(st.sampled_from(["JPY", "eur"]), st.integers()) | st.none()},
            {"a": st.sampled_from([{}, {"EUR": "0.05", "KWD": None}, None])},
            query=("a=150", "a=1.50"),
        ),
    ],
    "affix": [
        Example(
            {"field": "m.*", "older": {"prefix": "E"}, "newer": {}},
            {"m": st.dictionaries(words, words | st.none())},
            {"m": st.dictionaries(words, words.map(lambda word: f"E{word}") | st.none())},
            query=("m=12", "m=E12", {"field": "m", "older": {"prefix": "E"}, "newer": {}}),
        ),
        Example(
            {"field": "a", "newer": {"type": "number"}, "older": {"prefix": "E"}},
            {"a": st.integers() | st.none()},
            {"a": digits.map("E{}".format) | st.none()},
            query=("a=12", "a=E12"),
        ),
    ],
    "case": [
        Example(
            {"field": "a", "newer": "camel", "older": "upper_snake"},
            {"a": st.sampled_from(["inTransit", "new", "n/a", None])},
            {"a": st.sampled_from(["IN_TRANSIT", "NEW", "n/a", None])},
            query=("a=inTransit", "a=IN_TRANSIT"),
        ),
        Example(
            {"field": "a", "newer": "pascal", "older": "kebab", "unknown": "keep"},
            {"a": st.sampled_from(["InTransit", "New"])},
            {"a": st.sampled_from(["in-transit", "new"])},
            lost={False: {"a": "in-transit"}, True: {"a": "InTransit"}},
            query=("a=InTransit", "a=in-transit"),
        ),
    ],
    "key_case": [
        Example(
            {"newer": "camel", "older": "snake", "but": ["metaData"]},
            {"orderLine": jsons, "metaData": st.just({"a_b": {"cD": 1}})},
            {"order_line": jsons, "meta_data": st.just({"aB": {"c_d": 1}})},
        ),
        Example(
            {"field": "m.a", "newer": "snake", "older": "camel", "unknown": "keep"},
            {"m": st.just({"a": [{"b_c": 1}]})},
            {"m": st.just({"a": [{"bC": 1}]})},
            lost={False: {"m": {"a": {"bC": 1}}}, True: {"m": {"a": {"b_c": 1}}}},
        ),
    ],
    "keys": [
        Example(
            {"field": "m", "values": {"a": "b", "b": "c"}},
            {"m": st.dictionaries(st.sampled_from("abd"), jsons) | st.none()},
            {"m": st.dictionaries(st.sampled_from("bcd"), jsons) | st.none()},
        ),
        Example(
            {"field": "m.a", "newer": {"suffix": "!"}, "older": {"prefix": "x"}},
            {"m": st.builds(dict, a=st.dictionaries(words.map(lambda key: f"{key}!"), jsons))},
            {"m": st.builds(dict, a=st.dictionaries(words.map(lambda key: f"x{key}"), jsons))},
        ),
    ],
    "entries": [
        Example(
            {"field": "m", "key": "k"},
            {"m": st.dictionaries(words, st.builds(dict, a=jsons)) | st.none()},
            {"m": st.lists(st.builds(dict, k=words, a=jsons), unique_by=_key) | st.none()},
        ),
        Example(
            {"field": "m.a", "key": "k", "value": "v"},
            {"m": st.builds(dict, a=st.dictionaries(words, jsons))},
            {"m": st.builds(dict, a=st.lists(st.builds(dict, k=words, v=jsons), unique_by=_key))},
        ),
    ],
    "index": [
        Example(
            {"field": "m", "key": "k"},
            {"m": st.lists(st.builds(dict, k=words, a=jsons), unique_by=_key)},
            {"m": st.dictionaries(words, st.builds(dict, a=jsons))},
        ),
    ],
    "link": [
        Example({"field": "m.a"}, {"m": st.builds(dict, a=words)}, {"m": st.builds(dict, a=words)}),
        Example({"field": "a[]"}, {"a": st.lists(words)}, {"a": st.lists(words)}),
    ],
    "invert": [
        Example(
            {"field": "a", "to": "m.b"},
            {"a": st.booleans() | st.none()},
            {"m": st.builds(dict, b=st.booleans() | st.none())},
            query=("a=true", "m.b=false"),
        ),
        Example(
            {"field": "a"},
            {"a": st.booleans() | st.none()},
            {"a": st.booleans() | st.none()},
            query=("a=true", "a=false"),
        ),
    ],
    "omit_null": [
        Example({"field": "a"}, {"a": jsons}, {"a": jsons}, lost={False: {}, True: {"a": None}}),
    ],
    "fill_null": [
        Example({"field": "a"}, {"a": jsons}, {"a": jsons}, lost={False: {"a": None}, True: {}}),
        Example(
            {"field": "a", "value": []},
            {"a": jsons},
            {"a": jsons},
            lost={False: {"a": []}, True: {}},
        ),
    ],
    "wrap": [
        Example(
            {"field": "a"},
            {"a": jsons},
            {"a": jsons.map(lambda one: [one])},
            lost={True: {"a": [1, 2]}},
            query=("a=1&b=2", "a=1&b=2"),
        ),
        Example(
            {"field": "a", "many": "refuse"},
            {"a": jsons},
            {"a": jsons.filter(lambda one: one is not None).map(lambda one: [one])},
            query=("a=1&b=2", "a=1&b=2"),
        ),
    ],
    "unwrap": [
        Example(
            {"field": "a"},
            {"a": jsons.map(lambda one: [one])},
            {"a": jsons},
            lost={False: {"a": [1, 2]}},
            query=("a=1&b=2", "a=1&b=2"),
        ),
        Example(
            {"field": "a", "many": "keep", "empty": "absent"},
            {"a": lists.filter(bool)},
            {"a": jsons.filter(lambda one: not isinstance(one, list)) | lists.filter(_several)},
            lost={False: {}},
            query=("a=1", "a=1", {"field": "a"}),
            required=True,
        ),
        Example(
            {"field": "a[]", "many": "keep", "empty": "list"},
            {"a": st.none() | st.lists(lists | st.none(), max_size=2)},
            {"a": st.lists(words | lists.filter(_several) | st.just([]), max_size=2)},
            query=("a=1", "a=1", {"field": "a", "many": "refuse"}),
        ),
    ],
    "join": [
        Example(
            {"fields": ["m.a", "m.b"], "into": "m"},
            {"m": st.builds(dict, a=words, b=words)},
            {"m": words},
            lost={True: {"m": "a "}},
            query=("m.a=x&m.b=y", "m=x%20y"),
        ),
        Example(
            {"fields": ["a", "b"], "into": "c", "separator": "-"},
            {"a": words, "b": words},
            {"c": words},
            lost={True: {"c": "a-"}},
            query=("z=1&a=x&b=y-z", "z=1&c=x-y-z"),
        ),
    ],
    "split": [
        Example(
            {"field": "c", "into": ["a", "b"], "optional": ["a"], "default": None},
            {"c": words},
            {"a": words | st.none(), "b": words},
            lost={False: {"c": "a "}},
            query=("c=x", "a=x", {"field": "c", "into": ["a", "b"]}),
        ),
        Example(
            {"field": "c", "into": ["a", "b"]},
            {"c": words},
            {"a": words, "b": words},
            lost={False: {"c": "a "}},
            query=("c=x", "a=x"),
        ),
    ],
    "join_list": [
        Example(
            {"field": "a", "separator": "|"},
            {"a": st.lists(words, max_size=2) | st.none()},
            {"a": words | st.none() | st.just("")},
            query=("a=x&a=y", "a=x%7Cy"),
        ),
    ],
    "split_list": [
        Example(
            {"field": "m.a", "separator": ";", "pairs": "="},
            {"m": st.builds(dict, a=st.sampled_from(["", "a=b", "a=b=c;=x", None]))},
            {"m": st.builds(dict, a=st.dictionaries(words, words) | st.none())},
            query=("m.a=x%3By", "m.a=x&m.a=y", {"field": "m.a", "separator": ";"}),
        ),
        Example(
            {"field": "a"},
            {"a": words},
            {"a": st.lists(words, max_size=2)},
            query=("a=x%2Cy", "a=x&a=y"),
        ),
    ],
    "envelope": [
        Example(
            {"field": "a", "into": "m.data", "count": "n", "others": "refuse"},
            {"a": st.lists(jsons, max_size=2) | st.none()},
            {"a": st.sampled_from([None, {"m": {"data": [1, None]}, "n": 2}])},
        ),
        Example(
            {"field": "a", "into": "id"},
            {"a": jsons},
            {"a": st.sampled_from([None, {"id": 7}])},
            lost={True: {"a": {"id": 7, "name": "x"}}},
        ),
        Example(
            {"field": "a[]", "into": "m.id", "others": "refuse"},
            {"a": st.lists(jsons, max_size=2) | st.none()},
            {"a": st.lists(st.just({"m": {"id": 7}}) | st.none())},
        ),
        Example(
            {"into": "data"}, {"a": jsons}, {"data": jsons}, lost={True: {"data": [], "next": 1}}
        ),
    ],
    "extract": [
        Example(
            {"field": "a", "key": "id", "others": "refuse"},
            {"a": st.sampled_from([None, {"id": 7}])},
            {"a": jsons},
        ),
        Example(
            {"field": "a[]", "key": "id"},
            {"a": st.lists(st.just({"id": 7}) | st.none(), max_size=2) | st.none()},
            {"a": st.lists(jsons, max_size=2)},
            lost={False: {"a": [{"id": 7, "name": "x"}]}},
        ),
        Example({"key": "data"}, {}, {"a": jsons}, lost={False: {"data": [], "next": 1}}),
    ],
    "spread": [
        Example(
            {"field": "c", "into": "i[].c"},
            {"c": jsons, "i": st.lists(st.just({"x": 1}), max_size=2)},
            {"c": st.just(1), "i": st.lists(st.just({"c": 1}), max_size=2)},
            lost={True: {"c": 1, "i": [{}]}},
        ),
        Example(
            {"field": "c", "into": "i[].c", "keep": False},
            {"c": jsons, "i": st.lists(st.just({"x": 1}), min_size=1, max_size=2)},
            {"i": st.lists(st.just({"c": 1}), max_size=2)},
            lost={True: {"i": [{"c": 1}, {}]}, False: {"c": 1, "i": []}},
        ),
        Example(
            {"field": "c", "into": "p.c"},
            {"c": jsons, "p": st.just({"x": 1}) | st.none()},
            {"c": st.just(1), "p": st.just({"c": 1})},
            lost={True: {"c": 1, "p": {}}},
        ),
    ],
    "flatten": [
        Example(
            {"field": "o", "prefix": "o_", "but": ["o_n"]},
            {"o": st.dictionaries(words, jsons, min_size=1), "o_n": jsons},
            {"o_a": jsons, "o_n": jsons},
            lost={False: {"o": {}}},
        ),
        Example(
            {"field": "o", "prefix": "o_", "default": {}},
            {"o": st.dictionaries(words, jsons)},
            {"o_a": jsons},
            lost={False: {}},
            required=True,
        ),
    ],
    "nest": [
        Example(
            {"field": "o", "prefix": "o_"},
            {"o_a": jsons, "o_b": jsons},
            {"o": st.dictionaries(words, jsons, min_size=1)},
            lost={True: {"o": None}},
        ),
    ],
    "collect": [
        Example(
            {"field": "i[].c", "into": "c"},
            {"c": st.just(1), "i": st.lists(st.just({"c": 1}), max_size=2)},
            {"c": jsons, "i": st.lists(st.just({"x": 1}), max_size=2)},
            lost={False: {"c": 1, "i": [{}]}},
        ),
        Example(
            {"field": "i[].c", "into": "c", "keep": False},
            {"i": st.lists(st.just({"c": 1}), max_size=2)},
            {"c": jsons, "i": st.lists(st.just({"x": 1}), min_size=1, max_size=2)},
            lost={False: {"i": [{"c": 1}, {}]}, True: {"c": 1, "i": []}},
        ),
    ],
    "use": [
        Example({"group": "item"}, {"a": jsons}, {"b": jsons}),
        Example(
            {"group": "item", "at": ["i[]", "m.*", "o"]},
            {"i": st.just([{"a": 1}]), "m": st.just({"x": {"a": 1}}), "o": st.just({"a": 1})},
            {"i": st.just([{"b": 1}]), "m": st.just({"x": {"b": 1}}), "o": st.just({"b": 1})},
        ),
    ],
    "to_header": [
        Example({"field": "a", "header": "X-A"}, {"a": printable}, {}),
        Example(
            {"field": "m.a", "header": "Location", "text": "/a/{value}/b", "default": None},
            {"m": st.builds(dict, a=printable)},
            {},
            lost={False: {}},
            required=True,
        ),
        Example(
            {"field": "a", "header": "Link", "rel": "next", "parameter": "c", "type": "number"},
            {"a": st.integers()},
            {},
        ),
        Example({"field": "a", "header": "Link", "rel": "next"}, {"a": digits}, {}),
    ],
    "from_header": [
        Example({"field": "a", "header": "X-A", "type": "boolean"}, {}, {"a": st.booleans()}),
        Example(
            {"field": "a", "header": "X-A", "default": "d"},
            {},
            {"a": printable},
            lost={True: {}},
        ),
    ],
    "to_query": [Example({"field": "a", "parameter": "b"}, {"a": st.text()}, {})],
    "from_query": [
        Example({"field": "a", "parameter": "b", "type": "number"}, {}, {"a": st.integers()})
    ],
    "default": [
        Example(
            {"field": "a", "value": 1},
            {"a": st.just(1)},
            {},
            lost={False: {"a": 2}},
            query=("x=1&a=1", "x=1", {"field": "a", "value": "1"}),
        ),
    ],
    "remove": [
        Example(
            {"field": "a", "value": "v"},
            {},
            {"a": st.just("v")},
            lost={True: {"a": "w"}},
            query=("x=1", "x=1&a=v"),
        ),
    ],
    "python": [
        Example(
            {"field": "a", "up": "json:dumps", "down": "json:loads"},
            {"a": jsons.map(json.dumps)},
            {"a": jsons},
            query=("a=%22x%22", "a=x"),
        ),
        Example(
            {"up": "copy:copy", "down": "copy:copy"},
            {"a": jsons},
            {"a": jsons},
            query=("a=1", "a=1", COPIED),
        ),
        Example(
            {"up": "copy:copy", "down": "copy:copy", "each": False},
            {"a": jsons},
            {"a": jsons},
            query=("a=1", "a=1", COPIED),
        ),
    ],
}
GROUPS = {"item": (Rename((), ("a",), ("b",)),)}
FORMS = [*CHANGES.values(), *PARAMETER_CHANGES.values()]
EACH = [(name, example) for name, examples in EXAMPLES.items() for example in examples]
# Each example has few values of its own; the laws of each change in the core see more documents.
FEW = settings(LAW, max_examples=20)
EACH_EXAMPLE = pytest.mark.parametrize(
    ("name", "example"), EACH, ids=[f"{name} {example.declared}" for name, example in EACH]
)


@cache
def section(name: str, example: Example) -> BodySection:
    """Return the model of a change, as it is read from gateway.yaml."""
    named = ChangeConfig.model_validate_json(json.dumps({name: example.declared})).named()
    assert list(named) == [name]
    return named[name]


@cache
def built(name: str, example: Example) -> Change:
    """Return the change of the core, made without a mistake."""
    mistakes = Mistakes()
    change = section(name, example).body_change(
        BodyContext(("here",), mistakes, GROUPS, (Version(1), Version(2)))
    )
    assert not mistakes.found
    assert change is not None
    return change


def test_every_change_has_an_example() -> None:
    assert EXAMPLES.keys() == CHANGES.keys()


def test_no_answer_is_left_out() -> None:
    """An abstract method that a model does not define makes the model abstract."""
    assert not [form for form in FORMS if isabstract(form)]


def test_every_key_describes_itself() -> None:
    definitions: Any = json_schema()["$defs"]
    for form in FORMS:
        definition = definitions[form.__name__]
        keys = definition["properties"].values()
        for described in (definition["description"], *(key["description"] for key in keys)):
            assert described.endswith(".")
            assert "\n" not in described
            assert len(described.split()) >= 6


def test_the_entries_have_a_key_for_each_change() -> None:
    for entry, changes in ((ChangeConfig, CHANGES), (ParameterConfig, PARAMETER_CHANGES)):
        assert list(entry.model_json_schema()["properties"]) == list(changes)


@EACH_EXAMPLE
def test_what_is_lost_is_declared(name: str, example: Example) -> None:
    """Each declared loss is a real one; `test_there_and_back` finds those not declared."""
    declared = {loss.newer for loss in section(name, example).losses()}
    assert declared == example.lost.keys()
    change = built(name, example)
    for newer, fields in example.lost.items():
        assert _there_and_back(change, dict(fields), older=newer) != fields


@EACH_EXAMPLE
@FEW
@given(st.data())
def test_there_and_back(name: str, example: Example, data: st.DataObject) -> None:
    change = built(name, example)
    for older, kinds in ((False, example.newer), (True, example.older)):
        always = kinds if example.required and not older else {}
        optional = {} if always else dict(kinds)
        document = data.draw(st.fixed_dictionaries({"u": jsons, **always}, optional=optional))
        # Of several parts, all are there or none is.
        if older not in example.lost and len(document) in (1, 1 + len(kinds)):
            assert _there_and_back(change, document, older=older) == document


def _there_and_back(change: Change, document: Document, *, older: bool) -> Document:
    """Return a document after both directions, as the body of a request or else of an answer."""
    message = Message(status=None if QUERY_PLACE in repr(change) else 200)
    form = replace(PLAIN, message=message)
    there, back = (up, down) if older else (down, up)
    return back(change, there(change, document, form), form)


@EACH_EXAMPLE
@FEW
@given(st.data())
def test_an_upgrade_does_with_fields_what_it_is_declared_to(
    name: str, example: Example, data: st.DataObject
) -> None:
    """By this, changes that clash are found."""
    upgrade = section(name, example).field_use
    before = data.draw(st.fixed_dictionaries({"u": jsons, **example.older}))
    after = up(built(name, example), before)
    paths = {*upgrade.takes, *upgrade.makes}
    if WHOLE not in paths:
        touched = {_first_key(path) for path in (*paths, *upgrade.moves, *upgrade.moves.values())}
        assert {*before, *_object(after)} - {"u"} <= touched
        assert _object(after)["u"] == before["u"]
    for where, document in ((upgrade.reads, before), (upgrade.leaves, after)):
        for path, kinds in where.items():
            place = parse_path(path)
            found: Any = get(dict(_object(document)), place.keys, PLAIN)
            if place.members:
                found = [*found.values()]
            found = None if found is MISSING else found
            for value in (found or []) if place.elements or place.members else [found]:
                value = PLAIN.open(value)
                assert value is None or kind(value) in kinds.types
                assert value is None or kinds.words is None or value in kinds.words
    for target, source in upgrade.moves.items():
        apart = {
            path.rpartition(".")[2]
            for path in paths
            if path.startswith((f"{target}.", f"{source}."))
        }
        moved, given = _values(after, target), _values(before, source)
        moved, given = ([_without(value, apart) for value in some] for some in (moved, given))
        if "[]" in target + source:  # of elements there may be none, or more than are moved
            assert not given or all(value in given for value in moved)
        else:
            assert moved == given


def _without(value: Any, names: set[str]) -> Any:
    """Return an object without some fields, or any other value."""
    found = PLAIN.open(value)
    if not isinstance(found, dict):
        return value
    return {name: one for name, one in found.items() if name not in names}


def _first_key(path: str) -> str:
    """Return the key of the outermost object that leads along a path."""
    scopes, keys, *_ = parse_path(path)
    return keys_of(scopes[0])[0] if scopes else keys[0]


def _values(document: Document, path: str) -> list[Any]:
    """Return the values at a path, of all elements or members; null counts as none."""
    arrays: list[tuple[str, ...]] = []
    keys: tuple[str, ...] = ()
    found: list[Any] = [PLAIN.open(document)]
    if path != WHOLE:
        scopes, keys, elements, members = parse_path(path)
        arrays = [keys_of(scope) for scope in scopes]
        arrays, keys = ([*arrays, keys], ()) if elements or members else (arrays, keys)
    for way in arrays:
        lists: list[Any] = [PLAIN.open(get(dict(one), way, PLAIN)) for one in found if one]
        inner = [one.values() if isinstance(one, dict) else one for one in lists if one]
        found = [PLAIN.open(value) for one in inner for value in one]
    if keys:
        found = [PLAIN.open(get(dict(one), keys, PLAIN)) for one in found if one]
    return [one for one in found if one is not None and one is not MISSING]


def _found(document: Document, path: str) -> Document:
    keys = () if path == WHOLE else parse_path(path).keys
    return get({"": document}, ("", *keys), PLAIN)


def _object(document: Document) -> dict[str, Any]:
    assert isinstance(document, dict)
    return document


@EACH_EXAMPLE
def test_parameters(name: str, example: Example) -> None:
    assert (name in PARAMETER_CHANGES) == (example.query is not None)
    if example.query is None:
        return
    newer, older, *other = example.query
    declared: dict[str, Any] = {name: dict(*other or [example.declared])}
    (form,) = ParameterConfig.model_validate_json(json.dumps(declared)).named().values()
    mistakes = Mistakes()
    for header in (False, True):
        change = form.parameter_change(ParameterContext(("here",), mistakes, header=header))
        assert change is not None
        assert not mistakes.found
        if header:
            assert rewrite_fields(_lines(newer), in_direction([change], upwards=False)) == _lines(
                older
            )
            assert rewrite_fields(_lines(older), in_direction([change], upwards=True)) == _lines(
                newer
            )
        else:
            assert rewrite_query(newer, in_direction([change], upwards=False)) == older
            assert rewrite_query(older, in_direction([change], upwards=True)) == newer
    assert {loss.newer for loss in form.losses()} == {
        loss.newer for loss in section(name, example).losses()
    }
    whole = section(name, example).field_use
    for named, fields in (
        (form.parameter_use.takes, whole.takes),
        (form.parameter_use.makes, whole.makes),
    ):
        plain = {field.removesuffix("[]").removesuffix(".*") for field in fields}
        assert fields == (WHOLE,) or plain <= {*named}


ALONE: dict[str, list[tuple[Fields, str, str]]] = {
    "paging": [
        (
            {
                "newer": {"offset": "offset", "limit": "limit"},
                "older": {"page": "page", "size": "per_page"},
                "size": 20,
            },
            "offset=20&limit=10",
            "page=3&per_page=10",
        ),
        (
            {
                "newer": {"page": "page", "size": "size", "first": 0},
                "older": {"offset": "skip", "limit": "size"},
            },
            "page=2&size=5",
            "skip=10&size=5",
        ),
        (
            {
                "newer": {"offset": "offset", "limit": "limit"},
                "older": {"page": "page", "size": "per_page"},
                "size": {"newer": 20, "older": 10},
            },
            "offset=40&limit=10",
            "page=5&per_page=10",
        ),
    ],
    "sort": [
        (
            {"field": "sort", "order": "order", "newer": "sign", "older": "word"},
            "sort=-date",
            "sort=date&order=desc",
        ),
        (
            {"field": "s", "order": "o", "newer": "word", "older": "sign", "descending": "d"},
            "s=a&o=d",
            "s=-a",
        ),
        (
            {"field": "s", "order": "o", "newer": "sign", "older": "word", "default": "id"},
            "s=-name",
            "s=name&o=desc",
        ),
    ],
}


def test_every_change_of_parameters_alone_has_an_example() -> None:
    assert ALONE.keys() == PARAMETER_CHANGES.keys() - CHANGES.keys()


@pytest.mark.parametrize(
    ("name", "example"), [(name, each) for name, some in ALONE.items() for each in some]
)
def test_parameters_alone(name: str, example: tuple[Fields, str, str]) -> None:
    declared, newer, older = example
    (form,) = ParameterConfig.model_validate_json(json.dumps({name: declared})).named().values()
    mistakes = Mistakes()
    change = form.parameter_change(ParameterContext(("here",), mistakes, header=False))
    assert change is not None
    assert not mistakes.found
    assert rewrite_query(newer, in_direction([change], upwards=False)) == older
    assert rewrite_query(older, in_direction([change], upwards=True)) == newer
    assert not [*form.losses()]
    upgrade = form.parameter_use
    for names, query in ((upgrade.takes, older), (upgrade.makes, newer)):
        assert {*names} == {pair.partition("=")[0] for pair in query.split("&")}


@pytest.mark.parametrize(
    ("upwards", "asked", "wanted"),
    [
        (True, "", "limit=10"),
        (True, "page=3", "offset=20&limit=10"),
        (True, "per_page=5", "limit=5"),
        (False, "", "per_page=20"),
        (False, "offset=40", "page=3&per_page=20"),
        (False, "offset=40&limit=10", "page=5&per_page=10"),
    ],
)
def test_pages_of_a_size_that_differs(upwards: bool, asked: str, wanted: str) -> None:
    declared, *_ = ALONE["paging"][-1]
    (form,) = ParameterConfig.model_validate_json(json.dumps({"paging": declared})).named().values()
    change = form.parameter_change(ParameterContext(("here",), Mistakes(), header=False))
    assert change is not None
    assert rewrite_query(asked, in_direction([change], upwards=upwards)) == wanted


def _lines(query: str) -> list[tuple[bytes, bytes]]:
    pairs: Iterator[list[str]] = (line.split("=") for line in query.split("&"))
    return [(name.encode(), unquote(value).encode()) for name, value in pairs]
