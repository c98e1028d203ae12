"""Sort order: signs and words, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.sort import SignForm, SortField, WordForm
from tests.gateway.world import LAW

SIGN, WORD = SignForm("sort"), WordForm("sort", "order", "up", "down")


@pytest.mark.parametrize(
    ("sign", "word"),
    [
        ("-date", {"sort": "date", "order": "down"}),
        ("date", {"sort": "date", "order": "up"}),
        ("-date,name", {"sort": "date,name", "order": "down,up"}),
        ("-a,-b", {"sort": "a,b", "order": "down"}),
    ],
)
def test_both_ways(sign: str, word: dict[str, str]) -> None:
    assert WORD.write(SIGN.read({"sort": sign})) == word
    assert SIGN.write(WORD.read(word)) == {"sort": sign}
    assert (SIGN.names, WORD.names) == (("sort",), ("sort", "order"))


def test_without_a_word() -> None:
    assert SIGN.write(WORD.read({"sort": "a,b"})) == {"sort": "a,b"}


@pytest.mark.parametrize(
    ("default", "sign", "word"),
    [
        ("id", "-id", {"order": "down"}),
        ("id", "id", {"order": "up"}),
        ("id", "-a,id", {"sort": "a,id", "order": "down,up"}),
        ("", "-", {"order": "down"}),
    ],
)
def test_a_word_alone(default: str, sign: str, word: dict[str, str]) -> None:
    words = WordForm("sort", "order", "up", "down", default)
    assert SIGN.write(words.read(word)) == {"sort": sign}
    assert words.write(SIGN.read({"sort": sign})) == word


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ({"order": "up"}, "'sort' is absent, which it belongs to"),
        ({"sort": "a", "order": "asc"}, "expected up or down"),
        ({"sort": "a", "order": "up,down"}, "'order' has another number of words"),
        ({"sort": "-a"}, "a field in 'sort' begins with a sign"),
    ],
)
def test_what_is_refused(word: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        WORD.read(word)


fields = st.builds(SortField, st.text("abc", min_size=1, max_size=3), st.booleans())


@LAW
@given(st.lists(fields, min_size=1, max_size=3))
def test_there_and_back(order: list[SortField]) -> None:
    assert SIGN.read(SIGN.write(order)) == order
    assert WORD.read(WORD.write(order)) == order
