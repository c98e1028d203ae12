"""Path patterns: narrow ones match what the gateway routes so, wide ones all of it."""

import re

import pytest

from gateway.core.routing import Router, parse_template
from gateway.export.path_pattern import (
    narrow,
    other_value,
    rank,
    substitution,
    wide,
    with_parameter,
    without_parameter,
)

TEMPLATES = ["/a/{x}", "/a/b", "/a/{rest*}", "/a/v{x}.json", "/{x}/b", "/a/{x}/c", "/a/b{x}"]
PARTS = ["a", "b", "c", "v1.json", "bb", "..", ".", "...", "%2e", "x;y", "a\\b", "é", "", "x.y"]
PATHS = ["/"] + [
    "/" + "/".join(parts)
    for first in PARTS
    for second in PARTS
    for parts in ((first,), (first, second), (first, second, "c"))
]


def test_patterns_agree_with_the_router() -> None:
    """The first template whose wide pattern matches has the path, if its narrow one does."""
    templates = [parse_template(text) for text in TEMPLATES]
    router = Router([(template, template) for template in templates])
    ordered = sorted(templates, key=rank)
    sure = 0
    for path in PATHS:
        found = router.find(path)
        for template in ordered:
            if re.fullmatch(narrow(template), path):
                assert found is not None
                assert found[0] is template
                sure += 1
                break
            if re.fullmatch(wide(template), path):
                break  # the gateway is asked
            assert found is None or found[0] is not template
    assert sure > 15


def test_a_path_is_replaced() -> None:
    template, other = parse_template("/a/{x}/v{y}"), parse_template("/{y}/of-{x}")
    pattern, text = narrow(template), substitution(other, template.captures)
    assert text == r"/\2/of-\1"
    assert re.sub(pattern, text, "/a/7/v2") == "/2/of-7"


QUERIES = [
    *("", "?", "?v=1", "?v=2", "?v", "?v=", "?a=1&v=1", "?v=1&a=%20", "?v=1&v=1", "?v=1&v=2"),
    *("?%76=1", "?v=1&%76=2", "?v+=1", "?vv=2&v=1", "?V=2&v=1", "?&v=1&", "?a", "?a=v=1", "?ve=1"),
]


@pytest.mark.parametrize("name", ["v", "version"])
def test_parameters(name: str) -> None:
    template = parse_template("/p")
    present, absent = with_parameter(template, name, "1"), without_parameter(template, name)
    assert present is not None
    assert absent is not None
    queries = [query.replace("v", name) for query in QUERIES]
    assert [query for query in queries if re.fullmatch(present, "/p" + query)] == [
        query.replace("v", name)
        for query in ("?v=1", "?a=1&v=1", "?v=1&a=%20", "?vv=2&v=1", "?V=2&v=1", "?&v=1&")
    ]
    assert [query for query in queries if re.fullmatch(absent, "/p" + query)] == [
        query.replace("v", name) for query in ("", "?", "?a", "?a=v=1", "?ve=1")
    ]
    assert not [query for query in queries if re.fullmatch(present, "/q" + query)]


def test_parameters_behind_a_path_with_captures() -> None:
    template = parse_template("/a/{x}")
    present, absent = with_parameter(template, "v", "1"), without_parameter(template, "v")
    assert present is not None
    assert absent is not None
    assert re.fullmatch(present, "/a/b?v=1")
    assert re.fullmatch(absent, "/a/b?w=1")


@pytest.mark.parametrize("name", ["a b", "a%20", "ä", "a[]", "a+b"])
def test_an_unusual_name_has_no_pattern(name: str) -> None:
    template = parse_template("/p")
    assert with_parameter(template, name, "1") is None
    assert without_parameter(template, name) is None


@pytest.mark.parametrize("value", ["1", "1.0.0-rc.1", "2024-01-31", "^]"])
def test_other_values(value: str) -> None:
    others = ["", "0", f"{value}0", f"{value},{value}", f" {value}", value[:-1], f"x{value}", "1."]
    pattern = other_value(value)
    assert not re.fullmatch(pattern, value)
    assert [other for other in others if not re.fullmatch(pattern, other)] == []
