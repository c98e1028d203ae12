"""Environment variables in strings: their replacement, and how messages hide their values."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.base.mistakes import ConfigError
from gateway.rules.variables import (
    EnvironmentFileError,
    UnsetVariablesError,
    fill,
    hide,
    hide_values,
    names,
    parse_environment,
    secrets,
)
from tests.gateway.rules.rules import edited, loaded

SET = {"NAME": "value", "EMPTY": "", "DOLLAR": "${NAME}$$", "BYTES": "\udcff"}


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("no variable", "no variable"),
        ("${NAME}", "value"),
        ("<${NAME}|${NAME}>", "<value|value>"),
        ("${NAME:-default}", "value"),
        ("${NAME-default}", "value"),
        ("${UNSET:-default}", "default"),
        ("${UNSET-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY-default}", ""),
        ("${EMPTY}", ""),
        ("${UNSET:-}", ""),
        ("${UNSET:- }", " "),
        ("${UNSET:-a:-b}", "a:-b"),
        # variables in a value are not replaced
        ("${DOLLAR}", "${NAME}$$"),
        # a default may contain variables and pairs of braces
        ("${UNSET:-${NAME}}", "value"),
        ("${UNSET:-<${OTHER:-${NAME}}>}", "<value>"),
        ("${UNSET:-/v{version}}/person", "/v{version}/person"),
        ("${UNSET:-${OTHER:-/v{version}}}", "/v{version}"),
        ("${NAME:-${UNSET}}", "value"),
        # dollar signs
        ("$$", "$"),
        ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$value"),
        ("${UNSET:-$${NAME}}", "${NAME}"),
        ("$NAME costs $5", "$NAME costs $5"),
    ],
)
def test_variables_are_replaced_by_their_values_or_defaults(written: str, filled: str) -> None:
    assert fill(written, SET) == filled


@pytest.mark.parametrize(
    "written",
    [
        *("${", "${}", "${NAME", "${NAME:-default", "${NAME:-{}", "${1NAME}", "${NA ME}"),
        *("${NÄME}", "${NAME:default}", "${NAME:?must be set}", "${NAME:+instead}", "${${NAME}}"),
    ],
)
def test_a_malformed_variable_is_refused(written: str) -> None:
    with pytest.raises(
        ValueError,
        match=r"^'\$\{' does not begin a variable; write"
        r" \$\{NAME\} or ",
    ):
        fill(written, SET)


UNSET = "the environment variable UNSET is not set; set it, or give a default: ${UNSET:-default}"


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("${UNSET}", UNSET),
        ("${OTHER:-${UNSET}}", UNSET),
        ("${BYTES}", "the environment variable BYTES is not UTF-8; set it to UTF-8 text"),
    ],
)
def test_an_unset_or_undecodable_variable_is_refused(written: str, right: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(right)}$"):
        fill(written, SET)


def test_each_unset_variable_is_reported_once() -> None:
    with pytest.raises(UnsetVariablesError) as caught:
        fill("${ONE}:${NAME}:${TWO:-${THREE}-${ONE}}", SET)
    assert caught.value.names == ("ONE", "THREE")
    assert [reason.split(" is ")[0] for reason in caught.value.reasons] == [
        "the environment variable ONE",
        "the environment variable THREE",
    ]


@pytest.mark.parametrize(
    ("message", "filled", "shown"),
    [
        ("no service is called 'hush'; add it", "hush", "no service is called '${X}'; add it"),
        ("'hu' is a part of it", "hush", "'${X}' is a part of it"),
        ("write '/hush'", "hush", "write '/${X}'"),
        ("did you mean 'new'?", "hush", "did you mean 'new'?"),
        ("'hu'sh' and 'new'", "hu'sh", "'${X}'"),
        ("'' is not a path", "", "'' is not a path"),
    ],
)
def test_quoted_values_are_replaced_by_their_variables(
    message: str, filled: str, shown: str
) -> None:
    assert hide(message, filled, "${X}") == shown


SECRETS = [
    ("http://127.0.0.1:8001", "${SECRET}"),
    ("127.0.0.1:8001", "${SECRET}"),
    ("upstream_path: /person", 'upstream_path: "${SECRET}"'),
    ("/v{version}/person", "${SECRET}"),
    ("/users,", '"/users/${SECRET}",'),
    ("in: path", 'in: "${SECRET}"'),
    ("name: version", 'name: "${SECRET}"'),
    ("X-API-VERSION", '"${SECRET}"'),
    ("a/b-v{version}+json", "${SECRET}"),
    ("name: version", 'name: version, default: "${SECRET}"'),
    ("{ service: new }", '{ service: "${SECRET}" }'),
    ("{ service: new }", '{ via: "${SECRET}" }'),
    ('"2"]', '"${SECRET}"]'),
    ("name.last]", '"${SECRET}"]'),
    ("into: name }", 'into: "${SECRET}" }'),
    ("[POST]", '["${SECRET}"]'),
    ("services:\n", 'trusted_proxies: ["${SECRET}"]\nservices:\n'),
    ("services:\n", 'limits: { convert: "${SECRET}" }\nservices:\n'),
]
AROUND = st.text("/'\"{}[]:.,?*&$\\ \té\n", max_size=4)


@given(st.sampled_from(SECRETS), AROUND, AROUND)
@example(("127.0.0.1:8001", "${SECRET}"), "", "/:")  # a target that has a path
def test_mistakes_never_show_values_of_variables(
    place: tuple[str, str], before: str, behind: str
) -> None:
    shown = ""
    try:
        loaded(edited(*place), SECRET=f"{before}hush{behind}")
    except ConfigError as error:
        shown = str(error)
    assert "hush" not in shown


def test_values_are_hidden_in_messages_about_other_locations() -> None:
    environment = {"PASSWORD": "hunter2", "LONG": "hunter2-long", "SHORT": "abc", "OTHER": "known"}
    values = secrets(["${PASSWORD}", "x${LONG:-}", "${NONE:-${SHORT}}"], environment)
    message = "no service is called 'x'; known: hunter2, hunter2-long, abc"
    hidden = "no service is called 'x'; known: ${PASSWORD}, ${LONG}, abc"
    assert hide_values(message, values) == hidden
    assert hide_values("nothing", values) == "nothing"


def test_names_returns_each_variable_and_whether_it_may_be_unset() -> None:
    texts = ["${ONE}:${TWO:-${THREE}}", "$${FOUR} ${TWO}", "${FIVE-}${ONE:-1}"]
    assert names(texts) == {"ONE": False, "TWO": False, "THREE": True, "FIVE": True}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("NAME=value", "value"),
        (" NAME = two words \t\r", "two words"),
        ("export NAME=value", "value"),
        ("NAME=", ""),
        ("NAME=a=b", "a=b"),
        # without quotes, only the surrounding white space has a meaning
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
def test_the_value_of_an_environment_file_line_may_be_quoted(line: str, value: str) -> None:
    assert parse_environment(line.encode(), "f") == {"NAME": value}


def test_an_environment_file_may_have_comments_and_repeated_names() -> None:
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
        (b"A=hush\0", "f:1: has a null character, which is invalid in a variable; remove it"),
    ],
)
def test_a_mistake_in_an_environment_file_has_its_line_but_no_value(
    content: bytes, said: str
) -> None:
    with pytest.raises(EnvironmentFileError) as caught:
        parse_environment(content, "f")
    assert str(caught.value).startswith(said)
    assert "hush" not in str(caught.value)


@given(st.text(st.characters(exclude_characters="'\n\0", codec="utf-8")))
def test_any_value_without_a_single_quote_can_be_written_in_single_quotes(value: str) -> None:
    assert parse_environment(f"A='{value}'".encode(), "f") == {"A": value}
