"""Media filters: which requests a conversion with media ranges applies to."""

import pytest
from multidict import CIMultiDict

from gateway.conversion.media_filter import (
    MediaFilter,
    RequestMedia,
    parse_media_ranges,
    preferred,
    request_media,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("ranges", "accept", "matches"),
    [
        ("application/json", "application/json", True),
        ("application/json", "Application/JSON; charset=utf-8", True),
        ("application/json", TABLE, True),
        ("application/*", TABLE, True),
        ("*/*", TABLE, True),
        ("*/*", None, True),
        ("application/json;as=Table", TABLE, True),
        ("application/json;as=Table;x=1", TABLE, False),
        ("application/json;as=Table", "application/json", False),
        ("application/json", "*/*", False),
        ("application/json", None, False),
        ("none", None, True),
        ("none", "*/*", True),
        ("none", "application/json", False),
        ("application/json", "text/html, application/json", False),
        ("application/json", "text/html;q=0.5, application/json", True),
        ("application/json", "text/html;q=0, application/json;q=0.1", True),
        ("application/json", "not a type", False),
    ],
)
def test_the_preferred_media_type_has_to_match_a_range(
    ranges: str, accept: str | None, matches: bool
) -> None:
    fields = CIMultiDict([] if accept is None else [("accept", accept)])
    for negated in (False, True):
        found = MediaFilter(parse_media_ranges([ranges], negated=negated))
        assert found.matches(request_media(fields)) is (matches is not negated)


def test_several_lines_of_accept_are_one_list() -> None:
    found = preferred(["text/html;q=0.9", "application/xml, text/csv"])
    assert found is not None
    assert found.essence == "application/xml"
    assert preferred(["text/html;q=0"]) is None


def test_both_fields_of_a_filter_have_to_match() -> None:
    merge = preferred(["application/merge-patch+json"])
    ranges = parse_media_ranges(["application/*"]), parse_media_ranges(["application/*"])
    assert MediaFilter(*ranges).matches(RequestMedia(merge, merge))
    assert not MediaFilter(*ranges).matches(RequestMedia(None, merge))
    assert MediaFilter(None, ranges[1]).matches(RequestMedia(None, merge))


@pytest.mark.parametrize(
    ("one", "other", "overlapping"),
    [
        (["a/b"], ["a/b"], True),
        (["a/b"], ["a/*"], True),
        (["a/b", "c/d"], ["c/d", "e/f"], True),
        (["a/b"], ["a/c"], False),
        (["a/b;x=1"], ["a/b;x=2"], False),
        (["a/b;x=1"], ["a/b;y=2"], True),
    ],
)
def test_two_filters_overlap_if_a_media_type_may_match_both(
    one: list[str], other: list[str], overlapping: bool
) -> None:
    ranges = parse_media_ranges(one), parse_media_ranges(other)
    assert ranges[0].overlaps(ranges[1]) is ranges[1].overlaps(ranges[0]) is overlapping


def test_a_type_and_its_exception_do_not_overlap() -> None:
    table, other = (parse_media_ranges([TABLE], negated=negated) for negated in (False, True))
    assert not table.overlaps(other)
    assert not other.overlaps(table)
    assert parse_media_ranges(["application/json"]).overlaps(other)
    assert other.overlaps(other)


def test_a_text_that_is_no_media_range_is_refused() -> None:
    for text in ("json", "a/b, c/d", "a/b;q=2"):
        with pytest.raises(ValueError, match="is not a media range; write one such as"):
            parse_media_ranges([text])
