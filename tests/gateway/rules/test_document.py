"""Parsing of gateway.yaml: its values, positions, and mistakes in YAML."""

from typing import Any

import pytest

from gateway.rules.document import (
    MAX_DEPTH,
    MappingNode,
    ScalarNode,
    SequenceNode,
    YamlDocument,
    compose,
    read,
)
from tests.gateway.rules.rules import RULES, edited, loaded, report


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(
            "services:\n\told: {}\n",
            "2:1: not YAML: while scanning for the next token, found character that cannot start"
            " any token; indent with spaces, and quote strings that begin with this character",
            id="a tab to indent with",
        ),
        pytest.param(
            "path: @users\n",
            "1:7: not YAML: while scanning for the next token, found character that cannot start"
            " any token; indent with spaces, and quote strings that begin with this character",
            id="a character that is YAML's own",
        ),
        pytest.param(
            "field: *\n",
            "1:9: not YAML: while scanning an alias, did not find expected alphabetic or numeric"
            " character; quote strings that begin with * or &",
            id="a star without quotes",
        ),
        pytest.param(
            edited('"/v{version}/person"', "/v{version}/person"),
            "8:19: not YAML: while parsing a flow mapping, did not find expected ',' or '}';"
            " close the bracket, and quote strings that contain brackets or braces",
            id="braces without quotes",
        ),
        pytest.param(
            edited("[POST]", "[POST"),
            "22:40: not YAML: while parsing a flow sequence, did not find expected ',' or ']';"
            " close the bracket, and quote strings that contain brackets or braces",
            id="a bracket left open",
        ),
        pytest.param(
            'a: "b\nc: d\n',
            "3:1: not YAML: while scanning a quoted scalar, found unexpected end of stream;"
            " close the quote",
            id="a quote left open",
        ),
        pytest.param(
            r'a: "\d"',
            "1:5: not YAML: while parsing a quoted scalar, found unknown escape character;"
            " double the backslash, or use single quotes",
            id="an unknown escape",
        ),
        pytest.param(
            "a: b: c\n",
            "1:5: not YAML: mapping values are not allowed in this context;"
            " indent the lines of a block equally, end a key with a colon, quote strings that "
            "contain ': '",
            id="a colon in a text",
        ),
        pytest.param(
            edited(
                "    endpoints:\n      - { path: /users", "     endpoints:\n      - { path: /users"
            ),
            "21:15: not YAML: mapping values are not allowed in this context;"
            " indent the lines of a block equally, end a key with a colon, quote strings that "
            "contain ': '",
            id="a key indented too far",
        ),
        pytest.param(
            edited("    service: old\n", "   service: old\n"),
            "21:14: not YAML: mapping values are not allowed in this context;"
            " indent the lines of a block equally, end a key with a colon, quote strings that "
            "contain ': '",
            id="a key indented too little",
        ),
        pytest.param(
            edited("    versions:\n", "  - versions:\n"),
            "12:3: not YAML: while parsing a block mapping, did not find expected key;"
            " indent the lines of a block equally",
            id="a list between keys",
        ),
        pytest.param(
            "a: - b\n",
            "1:4: not YAML: block sequence entries are not allowed in this context;"
            " begin the list on a separate line",
            id="a list behind a key",
        ),
        pytest.param(
            "a:\n  - b\n  c: d\n",
            "3:3: not YAML: while parsing a block collection, did not find expected '-' indicator;"
            " indent the lines of a block equally",
            id="a key between elements",
        ),
        pytest.param(
            "services:\n  old\n  new: {}\n",
            "3:6: not YAML: mapping values are not allowed in this context;"
            " indent the lines of a block equally, end a key with a colon, quote strings that "
            "contain ': '",
            id="a key without a colon",
        ),
        pytest.param(
            "a: *b\n",
            "1:4: no anchor &b comes before this alias *b; add it",
            id="an alias of nothing",
        ),
        pytest.param(
            "a: 1\n---\na: 2\n",
            "2:1: the file has a second document; keep only one, without ---",
            id="two documents",
        ),
        pytest.param(
            "a: 1\nb\n",
            "3:1: not YAML: while scanning a simple key, could not find expected ':';"
            " put a colon and a space after the key",
            id="a key without anything",
        ),
        pytest.param(
            "%YAML 9\n---\na: 1\n",
            "1:8: not YAML: while scanning a %YAML directive, did not find expected digit or '.'"
            " character",
            id="another YAML",
        ),
        pytest.param("a: \0\n", "1:4: not YAML: the control character U+0000; remove it", id="NUL"),
        pytest.param(
            "é: ü\nb: \a\n", "2:4: not YAML: the control character U+0007; remove it", id="a bell"
        ),
        pytest.param(
            "ok: 1\nb: é".encode("latin-1"), "2:4: not UTF-8; save the file as UTF-8", id="Latin 1"
        ),
        pytest.param(
            "a: 1".encode("utf-16"), "1:1: not UTF-8; save the file as UTF-8", id="UTF-16"
        ),
        pytest.param(
            "a:\n" + "- 1\n" * 500_000,
            "499999:3: more than 500000 keys and values",
            id="too many values",
        ),
        pytest.param(
            "[" * 100_000, f"1:{MAX_DEPTH + 2}: nested more than 64 levels deep", id="too many ["
        ),
        pytest.param(
            "- " * 100_000,
            f"1:{2 * MAX_DEPTH + 3}: nested more than 64 levels deep",
            id="too many -",
        ),
    ],
)
def test_a_file_that_is_not_yaml_is_reported_with_a_remedy(text: str | bytes, line: str) -> None:
    assert report(text) == [line]


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n...\n", "\ufeff"])
def test_an_empty_file_has_no_value(text: str) -> None:
    node = compose(text.encode())
    assert node is None or (isinstance(node, ScalarNode) and not node.text)


def test_nodes_have_positions_and_tags_and_aliases_share_nodes() -> None:
    """The tag of a node is None if the file has no tag."""
    root = compose(b"a: &x [1, '1', !!str 1]\nb: *x\n")
    items = SequenceNode(
        (1, 4),
        None,
        [
            ScalarNode((1, 8), None, "1", plain=True),
            ScalarNode((1, 11), None, "1", plain=False),
            ScalarNode((1, 16), "tag:yaml.org,2002:str", "1", plain=True),
        ],
    )
    keys = ScalarNode((1, 1), None, "a", plain=True), ScalarNode((2, 1), None, "b", plain=True)
    assert root == MappingNode((1, 1), None, [(keys[0], items), (keys[1], items)])


def test_nesting_up_to_the_maximum_depth_is_accepted() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert isinstance(compose(text.encode()), SequenceNode)


def document(text: str, **environment: str) -> YamlDocument:
    return read(text.encode(), "gateway.yaml", environment)


def data(text: str, **environment: str) -> Any:
    return document(text, **environment).data


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("text", "text"),
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("404", 404),
        ("-1", -1),
        ("010", 10),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("123456789012345678", 123456789012345678),
        # strings that YAML 1.1 would read as other types
        ("no", "no"),
        ("on", "on"),
        ("2026-01-31", "2026-01-31"),
        ("12:30:45", "12:30:45"),
        ("0x1f", "0x1f"),
        ("0o17", "0o17"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1_000", "1_000"),
        ("=", "="),
        ("\u0661", "\u0661"),
        # quotes and tags make strings
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("!!str", ""),
        ("|\n  two\n  lines", "two\nlines"),
        (">\n  one\n  line", "one line"),
        (r'"\t\u00e9"', "\té"),
    ],
)
def test_scalars_have_the_types_of_yaml_1_2(written: str, value: object) -> None:
    found = data(f"key: {written}")
    assert found == {"key": value}
    assert type(found["key"]) is type(value)


@pytest.mark.parametrize("number", ["1234567890123456789", "-123456789012345678", "1e999"])
def test_a_number_that_is_too_large_is_refused(number: str) -> None:
    assert report(f"key: {number}") == [
        "1:6: key: the number is too large; write it in quotes if it is a string"
    ]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${N}", 5),
        ('"${N}"', "5"),
        ("${N}5", 55),
        ("${N}s", "5s"),
        ("${EMPTY}", None),
        ("${TRUE}", True),
        # the content of a value never becomes structure
        ("${YAML}", "{a: 1} # b"),
        ("['${YAML}', 1]", ["{a: 1} # b", 1]),
        ("$$5", "$5"),
    ],
)
def test_variables_are_replaced_after_parsing(written: str, value: object) -> None:
    found = data(f"key: {written}", N="5", EMPTY="", TRUE="true", YAML="{a: 1} # b")
    assert found == {"key": value}


def test_mistakes_in_several_variables_are_reported_together() -> None:
    one, two, three = report("a: ${ONE}\nb: [x, '${TWO', \"${THREE}\"]\n")
    assert one.startswith("1:4: a: the environment variable ONE is not set; set it, or give")
    assert two.startswith("2:8: b[1]: '${' does not begin a variable; write ${NAME}")
    assert three.startswith("2:17: b[2]: the environment variable THREE is not set")


def test_each_unset_variable_of_a_string_is_reported() -> None:
    host, port, other = report("a: http://${HOST}:${PORT}\nb: ${HOST}\n")
    assert host.startswith("1:4: a: the environment variable HOST is not set")
    assert port.startswith("1:4: a: the environment variable PORT is not set")
    assert other.startswith("2:4: b: the environment variable HOST is not set")


@pytest.mark.parametrize(
    "text", [f"\ufeff{RULES}", RULES.replace("\n", "\r\n"), f"---\n{RULES}..."]
)
def test_byte_order_marks_and_windows_line_ends_are_accepted(text: str) -> None:
    assert loaded(text).summary == loaded(RULES).summary


# Aliases and merges.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="alias"),
        pytest.param("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}, id="name used again"),
        pytest.param(
            "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}",
            {"a": {"k": 1, "l": 2}, "b": {"l": 3, "k": 1}},
            id="what is written wins over what is merged",
        ),
        pytest.param(
            "a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {<<: [*x, *y]}",
            {"a": {"k": 1}, "b": {"k": 2, "l": 2}, "c": {"k": 1, "l": 2}},
            id="of several, the first wins",
        ),
        pytest.param(
            "a: &x {k: 1}\nb: &y {<<: *x, l: 2}\nc: {<<: *y}",
            {"a": {"k": 1}, "b": {"l": 2, "k": 1}, "c": {"l": 2, "k": 1}},
            id="merges are merged",
        ),
        pytest.param("a: {<<: {k: 1}}", {"a": {"k": 1}}, id="merged on the spot"),
        pytest.param("a: &x {<<: *x, k: 1}", {"a": {"k": 1}}, id="merged into itself"),
        pytest.param("a: {'<<': 1}", {"a": {"<<": 1}}, id="in quotes it is a key"),
    ],
)
def test_aliases_and_merges_are_expanded(text: str, value: object) -> None:
    assert data(text) == value


def test_a_service_may_merge_the_settings_of_another_service() -> None:
    text = edited(
        'old: { targets: ["http://127.0.0.1:8001"] }',
        'old: &old { targets: ["http://127.0.0.1:8001"], timeouts: { connect: 1 } }',
    ).replace("new: {", "new: { <<: *old,")
    timeouts = [service.timeouts.connect for service in loaded(text).services.values()]
    assert timeouts == [1, 1]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "a: &x 1\nb: {<<: *x}",
            ["1:4: b.<<: can only merge mappings, as in <<: *name"],
            id="merging a number",
        ),
        pytest.param(
            "a: {<<: [{k: 1}, 2]}",
            ["1:9: a.<<: can only merge mappings, as in <<: *name"],
            id="merging a number among others",
        ),
        pytest.param(
            "a: &x {k: 1, k: 2}\nb: *x\nc: {<<: *x}",
            ["1:14: a.k: occurs twice, first in line 1; remove one of the two"],
            id="a shared mistake is reported once",
        ),
        pytest.param(
            "a: &x [*x]",
            ["1:4: its aliases expand endlessly; does one contain itself?"],
            id="itself",
        ),
        pytest.param(
            "a: &x {b: {c: *x}}",
            ["1:4: its aliases expand endlessly; does one contain itself?"],
            id="itself, further in",
        ),
        pytest.param(
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
                for old, new in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            ["1:22: its aliases expand to more than 250000 values"],
            id="a bomb",
        ),
        pytest.param(
            "? &m0 {k: 0}\n: 1\n"
            + "".join(f"? &m{n} {{<<: *m{n - 1}}}\n: 1\n" for n in range(1, 2000))
            + "y: {<<: *m1999}",
            ["3873:3: its aliases expand endlessly; does one contain itself?"],
            id="a chain of merges",
        ),
    ],
)
def test_invalid_aliases_and_merges_are_reported(text: str, lines: list[str]) -> None:
    assert report(text)[-len(lines) :] == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: 2\na: 3", ["3:1: a: occurs twice, first in line 1; remove one of the two"]),
        ("a: 1\n'a': 2", ["2:1: a: occurs twice, first in line 1; remove one of the two"]),
        ("1: a", ['1:1: 1: a key must be a string; write it in quotes: "1"']),
        ("1.0: a", ['1:1: 1.0: a key must be a string; write it in quotes: "1.0"']),
        ("~: a", ['1:1: ~: a key must be a string; write it in quotes: "~"']),
        ("? # empty\n: a", ['1:2: a key must be a string; write it in quotes: ""']),
        ("? [a]\n: b", ["1:3: a key must be a string, not a list or mapping"]),
        ("? {a: b}\n: c", ["1:3: a key must be a string, not a list or mapping"]),
        (
            "a: !!python/object:os.system b",
            ["1:4: a: the tag !!python/object:os.system is not supported; remove it"],
        ),
        ("a: !secret {b: 1}", ["1:4: a: the tag !secret is not supported; remove it"]),
        ("a: !!set [b]", ["1:4: a: the tag !!set is not supported; remove it"]),
    ],
)
def test_repeated_keys_non_string_keys_and_unknown_tags_are_reported(
    text: str, lines: list[str]
) -> None:
    assert report(text) == lines


def test_a_missing_location_has_the_position_of_the_nearest_container() -> None:
    found = document("a:\n  - b: 1\n  -   [c, d]\n")
    positions = {
        (): (1, 1),
        ("a",): (1, 1),
        ("a", 0): (2, 5),
        ("a", 0, "b"): (2, 5),
        ("a", 1): (3, 7),
        ("a", 1, 0): (3, 8),
        ("a", 1, 1): (3, 11),
        ("a", 2): (1, 1),
        ("b",): (1, 1),
    }
    assert {at: found.position(at) for at in positions} == positions
    issue = found.issue(("a", 0, "x", "y"), "is missing")
    assert (issue.line, issue.column, issue.place) == (2, 5, "a[0].x.y")


def test_an_issue_in_an_empty_file_has_a_position() -> None:
    issue = document("").issue((), "is empty")
    assert (issue.line, issue.column, issue.place) == (1, 1, "")
