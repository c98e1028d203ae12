"""`shared_path` returns a path that matches two templates."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.base.path_templates import Router, parse_template, shared_path

PARTS = st.sampled_from(["a", "b", "{}", "a{}", "{}b", "ab", "aXb", ""])


@st.composite
def templates(draw: st.DrawFn) -> str:
    parts = draw(st.lists(PARTS, min_size=1, max_size=3))
    if draw(st.booleans()):
        parts.append("{*}")
    named = (part.replace("{", f"{{c{index}") for index, part in enumerate(parts))
    return "/" + "/".join(named)


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "aXb", "aa", "x", ""]), min_size=1, max_size=5)


@given(templates(), templates(), WORDS)
def test_shared_path_finds_a_path_if_and_only_if_one_matches_both_templates(
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
