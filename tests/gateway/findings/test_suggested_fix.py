"""Suggested fixes for each kind of difference: the line `ignore`, and a valid change."""

import json

import pytest
import yaml

from gateway.findings.suggested_fix import DifferenceSample, SuggestedFix, suggest_fix
from gateway.rollout.differences import IgnoredPlaces
from gateway.rollout.shadow import VersionShadow

SHADOW = VersionShadow(("person", "1"))
CASES = {
    # field, value in the client's response, value in the shadow's response, suggested change
    "one that is gone": ("/age", "41", "missing", "remove: { field: age, value: 41 }"),
    "one that is new": ("/age", "missing", '"x"', 'default: { field: age, value: "x" }'),
    "an object that is new": ("/a", "missing", '{"b":1}', "default: { field: a, value: ... }"),
    "one that is redacted": ("/a", "text of 3 #1", "missing", "remove: { field: a, value: ... }"),
    "another type": ("/a/b", '"41"', "41", "type: { field: a.b, newer: number, older: text }"),
    "its type": ("/a", "text of 2 #1", "number", "type: { field: a, newer: number, older: text }"),
    "now an array": ("/a", '"x"', '["x"]', "unwrap: { field: a }"),
    "no array any more": ("/a", '["x"]', '"x"', "wrap: { field: a }"),
    "another text": ("/a", '"OPEN"', '"open"', 'map: { field: a, values: { "open": "OPEN" } }'),
    "in an array": ("/a/*/b", "true", "missing", 'remove: { field: "a[].b", value: true }'),
    "a name with signs": ("/a b~1c", "1", "missing", 'remove: { field: "a b/c", value: 1 }'),
    "another number": ("/a", "1", "2", ""),
    "another text, redacted": ("/a", "text of 2 #1", "text of 2 #2", ""),
    "a text that is cut": ("/a", '"x…', '"y…', ""),
    "another object": ("/a", "{}", "null", ""),
}  # fmt: skip


def sample(field: str, old: str, new: str) -> DifferenceSample:
    return DifferenceSample("/p", field, old, new, "r1", "GET", "/p")


@pytest.mark.parametrize(("field", "old", "new", "change"), CASES.values(), ids=CASES)
def test_a_change_is_suggested_from_the_samples(
    field: str, old: str, new: str, change: str
) -> None:
    samples = [sample("/other", "1", "2"), sample(field, old, new)]
    found = suggest_fix(field, samples, SHADOW, newer=True)
    assert found == SuggestedFix(f'ignore: ["{field}"]', change)
    assert not change or isinstance(yaml.safe_load(change), dict)


def test_the_suggested_ignore_line_includes_fields_that_are_already_ignored() -> None:
    shadow = VersionShadow(("person", "1"), ignored=IgnoredPlaces(frozenset({("b", "*"), ("a",)})))
    found = suggest_fix("/c", [], shadow, newer=True)
    assert json.loads(found.ignore.removeprefix("ignore: ")) == ["/a", "/b/*", "/c"]
    assert suggest_fix("/c", [], None, newer=True).ignore == 'ignore: ["/c"]'


def test_a_map_is_suggested_for_words_and_not_for_free_text() -> None:
    """A map of free text, such as titles, would refuse the next new text."""
    words = [("OPEN", "open"), ("DONE", "done"), ("OPEN", "open")]
    samples = [sample("/a", f'"{old}"', f'"{new}"') for old, new in words]
    change = suggest_fix("/a", samples, SHADOW, newer=True).change
    assert change == 'map: { field: a, values: { "open": "OPEN", "done": "DONE" } }'
    titles = [sample("/a", f'"Book {n}"', f'"BOOK {n}"') for n in range(6)]
    assert suggest_fix("/a", titles, SHADOW, newer=True).change == ""
    both = [*samples, sample("/a", '"OPEN"', '"new"')]
    assert suggest_fix("/a", both, SHADOW, newer=True).change == ""


def test_no_change_is_suggested_for_headers_statuses_and_requests() -> None:
    assert suggest_fix("/a", [sample("/a", "1", "missing")], SHADOW, newer=False).change == ""
    assert suggest_fix("status", [sample("status", "200", "500")], SHADOW, newer=True) == ("", "")
    request = suggest_fix(
        "request /a", [sample("request /a", "200", "is lost")], SHADOW, newer=True
    )
    assert request == SuggestedFix('ignore: ["/a"]', "")
