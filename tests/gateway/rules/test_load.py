"""Configuration files: for any content, loading raises only ConfigError."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import ConfigError, Issue
from gateway.findings.refused_rules import RefusedRules
from gateway.rules.load import load, load_file
from tests.gateway.kit import ROOT
from tests.gateway.rules.rules import RULES


def test_the_shipped_configuration_can_be_loaded() -> None:
    assert load_file(ROOT / "gateway.yaml", {}).summary == "3 services, 6 endpoints"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.yaml", "No such file or directory"),
        (".", "Is a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_with_the_reason(
    tmp_path: Path, name: str, reason: str
) -> None:
    path = tmp_path / name
    with pytest.raises(ConfigError) as caught:
        load_file(path, {})
    assert str(caught.value) == f"{path}: cannot be read: {reason}; is the path right?"


def test_a_mistake_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("services: {}\n")
    with pytest.raises(ConfigError) as caught:
        load_file(path, {})
    assert str(caught.value) == f"{path}:1:1: 'apis' is missing here; add it"


def check(content: bytes) -> None:
    printed = ""
    issues: tuple[Issue, ...] = ()
    try:
        load(content, "gateway.yaml", {"SET": "value"})
    except ConfigError as error:
        printed, issues = str(error), error.issues
    assert len(printed.splitlines()) == len(issues)
    lines = len(re.split(rb"\r\n|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]", content))
    for issue in issues:
        assert 1 <= issue.line <= lines + 1
        assert issue.column >= 1
        assert issue.text


@given(st.binary(max_size=200))
def test_loading_any_bytes_raises_only_a_config_error(content: bytes) -> None:
    check(content)


@given(st.text("abc019 \n\t-:?,[]{}&*!|>'\"%@`#~$<./\\\ufeff\u2028é", max_size=60))
def test_loading_any_text_raises_only_a_config_error(text: str) -> None:
    check(text.encode())


PIECES = st.sampled_from(
    [
        *(
            *("", " ", "  ", "\n", "\t", ":", "- ", "{", "}", "[", "]", '"', "'", "#", "|\n", "~"),
            "\0",
        ),
        *("${SET}", "${", "${X}", "$$", "*a", "&a ", "<<: ", "!t ", "1", "1e999", "{version}", "é"),
    ]
)


@given(
    st.lists(
        st.tuples(st.integers(0, len(RULES)), st.integers(0, 12), PIECES), min_size=1, max_size=4
    )
)
def test_loading_any_edited_configuration_raises_only_a_config_error(
    edits: list[tuple[int, int, str]],
) -> None:
    text = RULES
    for at, length, piece in edits:
        text = text[:at] + piece + text[at + length :]
    check(text.encode())


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.sampled_from(
        ["1", "2", "3", "old", "path", "in", "/", "/{version}", "{x}", "a[].b", "", "GET"]
    )
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["1", "in", "name", "service", "via", "path", "x"]), inner
        )
    ),
    max_leaves=4,
)


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    found = [at]
    for key, value in inner if isinstance(data, dict | list) else ():
        found += places(value, (*at, key))
    return found


PLACES = places(yaml.safe_load(RULES))


@given(st.lists(st.tuples(st.sampled_from(PLACES[1:]), VALUES), min_size=1, max_size=3))
def test_loading_any_changed_values_raises_only_a_config_error(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    data = yaml.safe_load(RULES)
    for (*way, last), value in changes:
        part = data
        try:
            for step in way:
                part = part[step]
            part[last] = value
        except (TypeError, KeyError, IndexError):
            continue  # another change has removed the location
    check(json.dumps(data, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("issues", "expected"),
    [
        ([Issue(3, 1, "apis", "wrong")], "line 3, apis: wrong"),
        ([Issue(0, 0, "", "gone")], "gone"),
        ([Issue(3, 1, "", "a\x1b[2Jb"), Issue(4, 1, "", "x")], "line 3: a\\x1b[2Jb (and 1 more)"),
        ([Issue(0, 0, "", "x" * 600)], "x" * 500 + "..."),
    ],
)
def test_a_summary_of_mistakes_is_one_short_line(issues: list[Issue], expected: str) -> None:
    """Other replicas show the summary, so its length is limited."""
    assert RefusedRules(b"", tuple(issues), 1.0).summary == expected
