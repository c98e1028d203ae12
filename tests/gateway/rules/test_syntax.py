"""What is not YAML is reported where it goes wrong, with what would be right."""

import pytest

from gateway.rules.document import MAX_DEPTH, MappingNode, ScalarNode, SequenceNode, compose
from tests.gateway.rules.rules import edited, report


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(
            "services:\n\told: {}\n",
            "2:1: not YAML: while scanning for the next token, found character that cannot start"
            " any token; indent with spaces, and quote a text that begins so",
            id="a tab to indent with",
        ),
        pytest.param(
            "path: @users\n",
            "1:7: not YAML: while scanning for the next token, found character that cannot start"
            " any token; indent with spaces, and quote a text that begins so",
            id="a character that is YAML's own",
        ),
        pytest.param(
            edited('"/v{version}/person"', "/v{version}/person"),
            "8:19: not YAML: while parsing a flow mapping, did not find expected ',' or '}';"
            " close the bracket, and quote a text that holds brackets or braces",
            id="braces without quotes",
        ),
        pytest.param(
            edited("[POST]", "[POST"),
            "22:40: not YAML: while parsing a flow sequence, did not find expected ',' or ']';"
            " close the bracket, and quote a text that holds brackets or braces",
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
            " indent alike what belongs together, end a key with a colon, quote a text with ': '",
            id="a colon in a text",
        ),
        pytest.param(
            edited(
                "    endpoints:\n      - { path: /users", "     endpoints:\n      - { path: /users"
            ),
            "21:15: not YAML: mapping values are not allowed in this context;"
            " indent alike what belongs together, end a key with a colon, quote a text with ': '",
            id="a key indented too far",
        ),
        pytest.param(
            edited("    service: old\n", "   service: old\n"),
            "21:14: not YAML: mapping values are not allowed in this context;"
            " indent alike what belongs together, end a key with a colon, quote a text with ': '",
            id="a key indented too little",
        ),
        pytest.param(
            edited("    versions:\n", "  - versions:\n"),
            "12:3: not YAML: while parsing a block mapping, did not find expected key;"
            " indent alike what belongs together",
            id="a list between keys",
        ),
        pytest.param(
            "a: - b\n",
            "1:4: not YAML: block sequence entries are not allowed in this context;"
            " begin the list on a line of its own",
            id="a list behind a key",
        ),
        pytest.param(
            "a:\n  - b\n  c: d\n",
            "3:3: not YAML: while parsing a block collection, did not find expected '-' indicator;"
            " indent alike what belongs together",
            id="a key between elements",
        ),
        pytest.param(
            "services:\n  old\n  new: {}\n",
            "3:6: not YAML: mapping values are not allowed in this context;"
            " indent alike what belongs together, end a key with a colon, quote a text with ': '",
            id="a key without a colon",
        ),
        pytest.param(
            "a: *b\n", "1:4: no &b stands before this *b; add it", id="an alias of nothing"
        ),
        pytest.param(
            "a: 1\n---\na: 2\n",
            "2:1: a second document begins; keep one, with no --- between",
            id="two documents",
        ),
        pytest.param(
            "a: 1\nb\n",
            "3:1: not YAML: while scanning a simple key, could not find expected ':';"
            " put a colon and a space behind the key",
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
def test_broken(text: str | bytes, line: str) -> None:
    assert report(text) == [line]


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n...\n", "\ufeff"])
def test_nothing(text: str) -> None:
    node = compose(text.encode())
    assert node is None or (isinstance(node, ScalarNode) and not node.text)


def test_nodes() -> None:
    """Every node has its position, its tag if one is written, and aliases share nodes."""
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


def test_depth_up_to_the_bound() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert isinstance(compose(text.encode()), SequenceNode)
