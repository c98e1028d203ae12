"""Fields that changes name are looked up in the documents, as the changes before leave them."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config.text.mistakes import ConfigError
from gateway.verify.field_check import check_fields
from tests.gateway.kit import ROOT
from tests.gateway.verify.loans import document, written

TEXT = {"type": "string"}


def loan(name: str = "books", title: str = "title", **book: object) -> dict[str, object]:
    """Return the schema of a loan, closed; `book` says more of what is in the array."""
    inner = {
        "type": "object",
        "properties": {title: TEXT},
        "additionalProperties": False,
        **book,
    }
    return {
        "type": "object",
        "properties": {"id": TEXT, name: {"type": "array", "items": inner}},
        "additionalProperties": False,
    }


def said(folder: Path, older: object, newer: object, *changes: str) -> list[str]:
    """Return what is said of changes, the place left out; `!` marks a mistake."""
    listed = ", ".join(f"{{ {change} }}" for change in changes)
    documents = document(older, loans="get"), document(newer, lendings="get")
    path, snapshot = written(folder, *documents, listed)
    try:
        return [issue.text for issue in check_fields(path, {}, snapshot)]
    except ConfigError as error:
        return [f"! {issue.text}" for issue in error.issues]


RENAMED = "rename: { field: books, to: items }"
TITLED = 'rename: { field: "books[].title", to: "books[].name" }'


@pytest.mark.parametrize(
    ("older", "newer", "changes"),
    [
        (loan(), loan(), []),
        (loan(), loan(), ["map: { field: id, values: { a: b } }"]),
        (loan(title="name"), loan(), [TITLED]),
        (loan(), loan(), ['map: { field: "books[]", values: { a: b } }']),
        # What was renamed is found by its new name, with all that is in it.
        (loan("items", "name"), loan(), [RENAMED, TITLED]),
        # Where the document does not describe what is inside, any field may be.
        (loan(), loan(), ["type: { field: id, newer: text, older: number }"]),
        ({"type": "object"}, {}, ["rename: { field: a.b, to: c }"]),
        (
            loan(additionalProperties={"type": "object"}),
            loan(additionalProperties=True),
            ['rename: { field: "books[].anything.x", to: "books[].else.x" }'],
        ),
        # The whole body may be anything after a function.
        (loan(), loan(), ["python: { up: 'copy:copy', down: 'copy:copy' }"]),
        (loan("items"), loan(), [RENAMED, "unwrap: { field: id }"]),
        (
            {"properties": {"name": {"properties": {"a": TEXT, "b": TEXT}}}},
            {"properties": {"name": TEXT}},
            ["split: { field: name, into: [name.a, name.b] }"],
        ),
    ],
)
def test_fields_that_are_there(
    tmp_path: Path, older: object, newer: object, changes: list[str]
) -> None:
    assert said(tmp_path, older, newer, *changes) == []


UP, DOWN = "when an upgrade comes here", "when a downgrade comes here"


@pytest.mark.parametrize(
    ("older", "newer", "changes", "expected"),
    [
        (
            loan("items"),
            loan(),
            ["rename: { field: boks, to: itens }"],
            [
                f"! no body of version 1 has 'itens' {UP}; did you mean 'items'?",
                f"! no body of version 2 has 'boks' {DOWN}; did you mean 'books'?",
            ],
        ),
        (
            loan("items"),
            loan(),
            [RENAMED, 'map: { field: "books[].titel", values: { a: b } }'],
            [
                f"! no body of version 1 has 'books[].titel' {UP}; did you mean 'books[].title'?",
                f"! no body of version 2 has 'books[].titel' {DOWN}; did you mean 'books[].title'?",
            ],
        ),
        # A text has no elements.
        (
            loan(),
            loan(),
            ['map: { field: "id[]", values: { a: b } }'],
            [
                f"! no body of version 1 has 'id[]' {UP}; did you mean 'id'?",
                f"! no body of version 2 has 'id[]' {DOWN}; did you mean 'id'?",
            ],
        ),
        # Further fields are neither declared nor forbidden: a warning.
        (
            {"properties": {"size": TEXT}},
            {"properties": {"size": TEXT}},
            ["map: { field: sise, values: { a: b } }"],
            [
                f"warning: no body of version 1 has 'sise' {UP}; did you mean 'size'?",
                f"warning: no body of version 2 has 'sise' {DOWN}; did you mean 'size'?",
            ],
        ),
        # An array has no fields of its own.
        (
            loan(),
            loan(),
            ["map: { field: books.title, values: { a: b } }"],
            [
                f"! no body of version 1 has 'books.title' {UP}; did you mean 'books[].title'?",
                f"! no body of version 2 has 'books.title' {DOWN}; did you mean 'books[].title'?",
            ],
        ),
        (
            {"properties": {"p": {"additionalProperties": {"properties": {"x": TEXT}}}}},
            {},
            ['map: { field: "p.*.y", values: { a: b } }'],
            [f"warning: no body of version 1 has 'p.*.y' {UP}; did you mean 'p.*.x'?"],
        ),
        # Only the newer version has it, and its document does not.
        (
            loan(),
            loan(),
            ["default: { field: gift, value: true }"],
            [f"! no body of version 2 has 'gift' {DOWN}; known: books, id"],
        ),
        # The name that the change before gave it is not looked for in vain.
        (
            loan(title="name"),
            loan(),
            [TITLED, 'map: { field: "books[].name", values: { a: b } }'],
            None,
        ),
    ],
)
def test_fields_that_are_not(
    tmp_path: Path, older: object, newer: object, changes: list[str], expected: list[str] | None
) -> None:
    if expected is None:
        with pytest.raises(ConfigError, match="is taken by"):
            said(tmp_path, older, newer, *changes)
    else:
        assert said(tmp_path, older, newer, *changes) == expected


def test_a_document_that_cannot_be_used_is_warned_of(tmp_path: Path) -> None:
    older = document({"$ref": "#/nowhere"}, loans="get")
    path, snapshot = written(tmp_path, older, document(lendings="get"))
    (issue,) = check_fields(path, {}, snapshot)
    assert issue.place == "apis.loans.versions.1.schema"
    assert issue.text.startswith("warning: the fields of changes are not looked up: v1.json: ")


def test_the_command(tmp_path: Path) -> None:
    change = "{ default: { field: x, value: 1 } }"
    written(tmp_path, document(loans="get"), document(lendings="get"), change)
    command = [sys.executable, "-m", "gateway", "check", str(tmp_path / "gateway.yaml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "gateway.yaml:16:21: apis.loans.conversions[0].changes[0].default: " in done.stderr
    assert "no body of version 2 has 'x' when a downgrade comes here" in done.stderr


def test_a_gateway_that_serves_loads_none_of_it() -> None:
    code = "import gateway.app, sys; print(*(n for n in sys.modules if 'verify.openapi' in n))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
