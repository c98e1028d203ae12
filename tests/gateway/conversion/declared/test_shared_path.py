"""Shared paths: a path that two templates match."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.base.path_templates import Router, parse_template, shared_path

PARTS = st.sampled_from(["a", "b", "{}", "a{}", "{}b", "ab", "aXb", ""])


@st.composite
def templates(draw: st.DrawFn) -> str:
    """Return a path template of a few segments, perhaps with a rest."""
    parts = draw(st.lists(PARTS, min_size=1, max_size=3))
    if draw(st.booleans()):
        parts.append("{*}")
    named = (part.replace("{", f"{{c{index}") for index, part in enumerate(parts))
    return "/" + "/".join(named)


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "aXb", "aa", "x", ""]), min_size=1, max_size=5)


@given(templates(), templates(), WORDS)
def test_a_shared_path_is_there_where_two_templates_match_one(
    one: str, other: str, words: list[str]
) -> None:
    first, second = parse_template(one), parse_template(other)
    shared = shared_path(first, second)

    def matches(path: str) -> bool:
        return all(Router([(each, each)]).find(path) is not None for each in (first, second))

    if shared is None:
        assert not matches("/" + "/".join(words))
    else:
        assert matches(shared)
