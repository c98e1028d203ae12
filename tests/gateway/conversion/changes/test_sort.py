"""Sort: the sort order of a list as a sign, or as a word in a second parameter."""

import pytest

from gateway.conversion.changes.sort import SortWords

WORDS = SortWords("sort", "order", "up", "down")


@pytest.mark.parametrize(
    ("sign", "word"),
    [
        ("-date", {"sort": "date", "order": "down"}),
        ("date", {"sort": "date", "order": "up"}),
        ("-date,name", {"sort": "date,name", "order": "down,up"}),
        ("-a,-b", {"sort": "a,b", "order": "down"}),
    ],
)
def test_a_sign_is_converted_to_a_word_and_back(sign: str, word: dict[str, str]) -> None:
    assert WORDS.from_signs({"sort": sign}) == word
    assert WORDS.to_signs(word) == {"sort": sign}


def test_a_sort_field_without_an_order_is_ascending() -> None:
    assert WORDS.to_signs({"sort": "a,b"}) == {"sort": "a,b"}


@pytest.mark.parametrize(
    ("default", "sign", "word"),
    [
        ("id", "-id", {"order": "down"}),
        ("id", "id", {"order": "up"}),
        ("id", "-a,id", {"sort": "a,id", "order": "down,up"}),
        ("", "-", {"order": "down"}),
    ],
)
def test_an_order_without_a_sort_field_applies_to_the_default_field(
    default: str, sign: str, word: dict[str, str]
) -> None:
    words = WORDS._replace(default=default)
    assert words.to_signs(word) == {"sort": sign}
    assert words.from_signs({"sort": sign}) == word


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ({"order": "up"}, "'sort', which it belongs to, is absent"),
        ({"sort": "a", "order": "asc"}, "expected up or down"),
        ({"sort": "a", "order": "up,down"}, "'order' must have one word for each field"),
        ({"sort": "-a"}, "a field in 'sort' begins with a sign"),
    ],
)
def test_an_invalid_combination_of_sort_and_order_is_refused(
    word: dict[str, str], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        WORDS.to_signs(word)
