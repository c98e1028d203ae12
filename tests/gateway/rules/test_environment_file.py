"""Environment files: what a line says, and what is reported of one that says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rules.variables import EnvironmentFileError, parse_environment


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("NAME=value", "value"),
        (" NAME = two words \t\r", "two words"),
        ("export NAME=value", "value"),
        ("NAME=", ""),
        ("NAME=a=b", "a=b"),
        # without quotes, nothing but the space around it has a meaning
        ("NAME=${OTHER} # $5 \\n", "${OTHER} # $5 \\n"),
        ("NAME=it's", "it's"),
        ("NAME=' a # b \\n '", " a # b \\n "),
        ("NAME='\"' # a comment", '"'),
        ("NAME='' #", ""),
        ('NAME="a\\"b\\\\c\\nd\\$e\\`f" ', 'a"b\\c\nd$e`f'),
        ('NAME="\\d $OTHER"', "\\d $OTHER"),
        ("NAME=\N{SNOWMAN}", "\N{SNOWMAN}"),
    ],
)
def test_values(line: str, value: str) -> None:
    assert parse_environment(line.encode(), "f") == {"NAME": value}


def test_a_file() -> None:
    text = "\ufeffA=1\r\n\r\n  # a comment\r\n_b2=2\r\nA=3"
    assert parse_environment(text.encode(), "f") == {"A": "3", "_b2": "2"}
    assert parse_environment(b"", "f") == {}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"A=1\nhush", "f:2: not a variable; write NAME=value, or # before a comment"),
        (b"2A=hush", "f:1: not a variable; write"),
        (b"A-B=hush", "f:1: not a variable; write"),
        (b"=hush", "f:1: not a variable; write"),
        (b"A='hush", "f:1: the value of A begins with a quote and does not end with it; close"),
        (b"A='hush'hush", "f:1: the value of A begins with a quote"),
        (b'A="hush\\"', "f:1: the value of A begins with a quote"),
        (b"A=hush\xff", "f:1: not UTF-8; save the file as UTF-8"),
        (b"A=hush\0", "f:1: has a null character, which no variable can hold; remove it"),
    ],
)
def test_mistakes_have_their_line_and_show_no_value(content: bytes, said: str) -> None:
    with pytest.raises(EnvironmentFileError) as caught:
        parse_environment(content, "f")
    assert str(caught.value).startswith(said)
    assert "hush" not in str(caught.value)


@given(st.text(st.characters(exclude_characters="'\n\0", codec="utf-8")))
def test_any_text_without_a_single_quote_can_be_quoted(value: str) -> None:
    assert parse_environment(f"A='{value}'".encode(), "f") == {"A": value}
