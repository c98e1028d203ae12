"""Accept is a list, read by weight (RFC 9110, section 12.5.1); weight 0 rules a version out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.world import ACCEPT, LAW, V1, VENDOR, head


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
def test_the_versions_that_accept_names_are_read_the_highest_weight_first(
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
def test_weight_zero_refuses_the_version_that_it_names(accept: str, refused: bool) -> None:
    assert ACCEPT.refuses(head("/", ("Accept", accept)), V1) is refused


def test_several_accept_lines_are_one_list() -> None:
    fields = (
        ("Accept", VENDOR.format(1) + ";q=0.2"),
        ("accept", "text/html"),
        ("ACCEPT", f"{VENDOR.format(2)}, {VENDOR.format(3)};q=0.2"),
    )
    assert ACCEPT.read(head("/", *fields), {}) == ("2", "1", "3")


@LAW
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10)), max_size=8))
def test_equal_weights_keep_the_order_and_zero_refuses(wishes: list[tuple[int, int]]) -> None:
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
def test_a_reader_reads_the_media_type_that_it_names(version: int) -> None:
    assert ACCEPT.read(head("/", ("Accept", ACCEPT.media_type(version))), {}) == (str(version),)


def test_an_answer_is_called_by_the_media_type_that_was_asked_for() -> None:
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
def test_a_client_that_asks_for_another_type_does_not_get_that_of_the_version(
    lines: list[str], *, named: bool
) -> None:
    fields = [("Accept", line) for line in lines]
    assert ACCEPT.answers_with(head("/", *fields), V1, {}) == (VENDOR.format(1) if named else None)
