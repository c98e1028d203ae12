"""The check that fields and parameters named by changes exist in the documents."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.base.mistakes import ConfigError, Issue
from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load_file
from tests.fork_server import fork_server
from tests.gateway.kit import ROOT
from tests.gateway.verify.loans import document, written

TEXT = {"type": "string"}


def loan(name: str = "books", title: str = "title", **book: object) -> dict[str, object]:
    """Return the closed schema of a loan; `book` adds keywords to the elements of its array."""
    inner = {"type": "object", "properties": {title: TEXT}, "additionalProperties": False, **book}
    return {
        "type": "object",
        "properties": {"id": TEXT, name: {"type": "array", "items": inner}},
        "additionalProperties": False,
    }


KIDS: dict[str, object] = {"kids": {"type": "array", "items": {}}}
NODE = {"type": "object", "properties": {**KIDS, "title": TEXT}, "additionalProperties": False}


def cards(**fields: tuple[str, ...]) -> dict[str, object]:
    closed = {"type": "object", "additionalProperties": False}
    inner = {
        name: {**closed, "properties": dict.fromkeys(given, TEXT)} for name, given in fields.items()
    }
    return {**closed, "properties": inner}


def texts(issues: list[Issue]) -> list[str]:
    """Return the texts of warnings, except those about fields that only one version has."""
    return [one.text for one in issues if "no change names the parts that only" not in one.text]


def said(folder: Path, older: object, newer: object, *changes: str) -> list[str]:
    """Return the messages about changes, without their locations; `!` marks a mistake."""
    listed = ", ".join(f"{{ {change} }}" for change in changes)
    documents = document(older, loans="get"), document(newer, lendings="get")
    path, snapshot = written(folder, *documents, listed)
    try:
        return texts(check_conversions(path, {}, snapshot))
    except ConfigError as error:
        return [f"! {issue.text}" for issue in error.issues]


def lines(*fields: str) -> dict[str, Any]:
    closed = {"type": "object", "additionalProperties": False}
    line = {**closed, "properties": dict.fromkeys(fields, TEXT)}
    return {**closed, "properties": {"lines": {"type": "array", "items": line}}}


def closed(**fields: object) -> dict[str, object]:
    return {"type": "object", "properties": fields, "additionalProperties": False}


FLAT = closed(id=TEXT, l_color=TEXT, l_size=TEXT, l_count=TEXT)
DEEP = closed(id=TEXT, look=closed(color=TEXT, size=TEXT), l_count=TEXT)
FLATTEN = "flatten: { field: look, prefix: l_, but: [l_count] }"
NEST = FLATTEN.replace("flatten", "nest")
FINE = closed(fine=closed(amount=TEXT, currency=TEXT))
FINES = closed(fine=TEXT, currency=TEXT)
AMOUNT = "rename: { field: fine.amount, to: fine }"
CURRENCY = "rename: { field: fine.currency, to: currency }"
BACK = {
    "amount": "rename: { field: fine, to: fine.amount }",
    "currency": "rename: { field: currency, to: fine.currency }",
}
LOST = (
    "where a body of version {0} has 'fine.{1}' beside 'fine.amount', it is refused: 'fine.amount'"
    " becomes 'fine' here, and 'fine.{1}' would be lost; list a change that removes it {2} this"
    " one"
)
MAP = {"type": "object", "additionalProperties": closed(free=TEXT)}
LIST = {"type": "array", "items": closed(name=TEXT, free=TEXT)}
SNAKE = closed(
    order_lines={"type": "array", "items": closed(unit_price=TEXT)}, meta_data=closed(a_b=TEXT)
)
CAMEL = closed(
    orderLines={"type": "array", "items": closed(unitPrice=TEXT)}, metaData=closed(a_b=TEXT)
)
KEYS = "key_case: { newer: camel, older: snake, but: [metaData] }"
USED = " (of a group, used by apis.loans.conversions[0].changes[0].use)"
RENAMED = "rename: { field: books, to: items }"
TITLED = 'rename: { field: "books[].title", to: "books[].name" }'


@pytest.mark.parametrize(
    ("older", "newer", "changes"),
    [
        (loan(), loan(), []),
        (loan(), loan(), ["map: { field: id, values: { a: b } }"]),
        (loan(title="name"), loan(), [TITLED]),
        (loan(), loan(), ['map: { field: "books[]", values: { a: b } }']),
        # A renamed field is found by its new name, with its nested fields.
        (loan("items", "name"), loan(), [RENAMED, TITLED]),
        # If the document does not describe an object, it may have any field.
        (loan(), loan(), ["type: { field: id, newer: text, older: number }"]),
        ({"type": "object"}, {}, ["rename: { field: a.b, to: c }"]),
        (
            loan(additionalProperties={"type": "object"}),
            loan(additionalProperties=True),
            ['rename: { field: "books[].anything.x", to: "books[].else.x" }'],
        ),
        # The content of an envelope is the bare body of the other version.
        (
            {"type": "array", "items": loan(title="name")},
            {"properties": {"data": {"type": "array", "items": loan()}}},
            [TITLED, "extract: { key: data }", "map: { field: 'data[].id', values: { a: b } }"],
        ),
        (
            {"properties": {"data": {"type": "array", "items": loan()}, "n": {}}},
            {"type": "array", "items": loan(title="name")},
            [
                "envelope: { into: data, count: n }",
                'rename: { field: "books[].name", to: "books[].title" }',
            ],
        ),
        (
            {"properties": {"customerId": {"type": "integer"}}},
            {"properties": {"customer": {"properties": {"id": {"type": "integer"}}}}},
            [
                "rename: { field: customer, to: customerId }",
                "extract: { field: customer, key: id }",
                "type: { field: customer.id, newer: number, older: text }",
            ],
        ),
        # A group that uses itself is checked one level deep. Deeper objects may have any field.
        (
            {"properties": {"tree": NODE}},
            {"properties": {"tree": {**NODE, "properties": {**KIDS, "label": TEXT}}}},
            [
                "use: { group: node, at: [tree] }",
                "map: { field: 'tree.kids[].label', values: { a: b } }",
            ],
        ),
        (
            {"properties": {"trees": {"additionalProperties": NODE}}},
            {"properties": {"trees": {"additionalProperties": {"properties": {"label": TEXT}}}}},
            ["use: { group: copied, at: ['trees.*'] }"],
        ),
        # A group describes whole objects, and a request may have only some of their fields.
        (
            cards(all=("title", "note"), some=("note",)),
            cards(all=("label", "text"), some=("text",)),
            ["use: { group: card, at: [all, some] }"],
        ),
        # After a Python function, the whole body may have any fields.
        (loan(), loan(), ["python: { up: 'copy:copy', down: 'copy:copy' }"]),
        # A single value of one version is the element of a list in the other version.
        (
            {"properties": {"owner": {"properties": {"name": TEXT}}}},
            {"properties": {"owner": {"type": "array", "items": {"properties": {"nick": TEXT}}}}},
            ["unwrap: { field: owner }", 'rename: { field: "owner[].nick", to: "owner[].name" }'],
        ),
        (
            {"properties": {"rows": {"type": "array", "items": {"items": loan(title="name")}}}},
            {"properties": {"rows": {"type": "array", "items": loan()}}},
            [
                'wrap: { field: "rows[]" }',
                'rename: { field: "rows[].books[].title", to: "rows[].books[].name" }',
            ],
        ),
        (
            {"properties": {"a": {"additionalProperties": {"type": "array"}}, "b": TEXT}},
            {"properties": {"a": {"additionalProperties": {}}, "b": {}}},
            ["wrap: { field: a.* }", "wrap: { field: b, many: keep, empty: list }"],
        ),
        (loan(title="name"), {"type": "array", "items": loan()}, ["unwrap: {}", TITLED]),
        # Members that move out of an object or into an object have new paths.
        (FLAT, DEEP, [FLATTEN, "map: { field: look.color, values: { a: b } }"]),
        (DEEP, FLAT, ["map: { field: look.color, values: { a: b } }", NEST]),
        (DEEP, FLAT, [NEST, "map: { field: l_size, values: { a: b } }"]),
        (
            {"properties": {"item": FLAT}},
            {"properties": {"item": DEEP}},
            ["use: { group: flat, at: [item] }"],
        ),
        # If an object allows undeclared keys, it also allows keys with the prefix.
        (
            {"properties": {"id": TEXT, "no": TEXT}, "additionalProperties": TEXT},
            {"properties": {"nr": TEXT, "look": {"additionalProperties": TEXT}}},
            [
                "flatten: { field: look, prefix: l_ }",
                "rename: { field: nr, to: no }",
                "map: { field: look.any, values: { a: b } }",
            ],
        ),
        # A value that moves between an object and the elements of its array.
        (
            lines("currency", "price"),
            {**lines("sum"), "properties": {**lines("sum")["properties"], "currency": TEXT}},
            [
                'spread: { field: currency, into: "lines[].currency", keep: false }',
                'rename: { field: "lines[].sum", to: "lines[].price" }',
                "map: { field: currency, values: { a: b } }",
            ],
        ),
        (
            {**lines("n"), "properties": {**lines("n")["properties"], "currency": TEXT}},
            lines("currency", "n"),
            [
                "map: { field: currency, values: { a: b } }",
                'collect: { field: "lines[].currency", into: currency, keep: false }',
            ],
        ),
        # A list that becomes a map, and a map that becomes a list.
        (
            closed(days=LIST),
            closed(days=MAP),
            [
                'map: { field: "days[].free", values: { a: a } }',
                "entries: { field: days, key: name }",
                'map: { field: "days.*.free", values: { a: a } }',
                "map: { field: days.spa.free, values: { a: a } }",
            ],
        ),
        (
            closed(fees={"additionalProperties": TEXT}),
            closed(fees={"type": "array", "items": closed(name=TEXT, amount=TEXT)}),
            [
                'map: { field: "fees.*", values: { a: a } }',
                "index: { field: fees, key: name, value: amount }",
                'map: { field: "fees[].amount", values: { a: a } }',
                'map: { field: "fees[].name", values: { a: a } }',
            ],
        ),
        # All keys change their case, except keys that are data.
        (
            SNAKE,
            CAMEL,
            [
                'map: { field: "order_lines[].unit_price", values: { a: b } }',
                KEYS,
                'map: { field: "orderLines[].unitPrice", values: { a: b } }',
                "map: { field: metaData.a_b, values: { a: b } }",
            ],
        ),
        (
            closed(item=SNAKE),
            closed(item=CAMEL),
            [
                KEYS.replace("{ n", "{ field: item, n"),
                "map: { field: item.metaData, values: {a: b} }",
            ],
        ),
        (
            {"properties": {"name": {"properties": {"a": TEXT, "b": TEXT}}}},
            {"properties": {"name": TEXT}},
            ["split: { field: name, into: [name.a, name.b] }"],
        ),
    ],
)
def test_declared_fields_cause_no_warning(
    tmp_path: Path, older: object, newer: object, changes: list[str]
) -> None:
    assert said(tmp_path, older, newer, *changes) == []


BEFORE = "the changes above remove it; list this one before them"
UP, DOWN = "at this point of an upgrade", "at this point of a downgrade"


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
        # `add_value` names the form field without backslashes.
        (
            cards(**{"expand[]": ()}),
            cards(**{"expand[]": ()}),
            ["add_value: { field: 'expnd[]', value: a }"],
            [f"! no body of version 2 has 'expnd' {DOWN}; did you mean 'expand[]'?"],
        ),
        # Each version has the name that is declared for the other version.
        (
            loan("items"),
            loan(),
            ["rename: { field: items, to: books }"],
            [
                (
                    f"! no body of version 1 has 'books' {UP}; it has 'items', and the newer"
                    " version has 'books': swap 'field' and 'to'"
                ),
                (
                    f"! no body of version 2 has 'items' {DOWN}; it has 'books', and the older"
                    " version has 'items': swap 'field' and 'to'"
                ),
            ],
        ),
        # The other version has no such field either, so the message does not suggest a swap.
        (
            loan("items"),
            loan("items"),
            ["rename: { field: items, to: itens }"],
            [f"! no body of version 1 has 'itens' {UP}; did you mean 'items'?"],
        ),
        # A string has no elements.
        (
            loan(),
            loan(),
            ['map: { field: "id[]", values: { a: b } }'],
            [
                f"! no body of version 1 has 'id[]' {UP}; did you mean 'id'?",
                f"! no body of version 2 has 'id[]' {DOWN}; did you mean 'id'?",
            ],
        ),
        # Undeclared fields are allowed here, so there is only a warning.
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
        # The content of an envelope and its container are known.
        (
            {"type": "array", "items": loan()},
            {"properties": {"data": {"type": "array", "items": loan()}}},
            ["map: { field: idd, values: { a: b } }", "extract: { key: data }"],
            [
                f"! no body of version 1 has 'idd' {UP}; did you mean 'id'?",
                f"! no body of version 2 has 'idd' {DOWN}; did you mean 'id'?",
            ],
        ),
        (
            {"type": "array", "items": loan()},
            {"properties": {"data": {"type": "array", "items": loan()}}},
            ["extract: { key: dta }"],
            [f"warning: no body of version 2 has 'dta' {DOWN}; did you mean 'data'?"],
        ),
        # An envelope around the whole body has no other fields.
        (
            loan(),
            closed(data=loan(), n=TEXT),
            ["extract: { key: data, count: m }", "map: { field: idd, values: { a: b } }"],
            [
                f"! no body of version 2 has 'm' {DOWN}; known: data, idd, n",
                f"! no body of version 2 has 'idd' {DOWN}; known: data, n",
            ],
        ),
        (
            {"type": "array", "items": closed(id=TEXT)},
            {"properties": {"data": {"type": "array", "items": closed(id=TEXT)}, "n": TEXT}},
            ["extract: { key: data, count: n }", "map: { field: id, values: { a: b } }"],
            [
                f"warning: no body of version 1 has 'id' {UP}; {BEFORE}",
                f"warning: no body of version 2 has 'id' {DOWN}; known: data, n",
            ],
        ),
        (
            loan(),
            {"type": "array", "items": loan()},
            ["unwrap: {}", "map: { field: idd, values: { a: b } }"],
            [
                f"! no body of version 1 has 'idd' {UP}; did you mean 'id'?",
                f"! no body of version 2 has 'idd' {DOWN}; did you mean 'id'?",
            ],
        ),
        # A list in place of a single value.
        (
            closed(owner=closed(name=TEXT)),
            closed(owner={"type": "array", "items": closed(name=TEXT)}),
            ["unwrap: { field: owner }", 'map: { field: "owner[].nam", values: { a: b } }'],
            [
                f"! no body of version 1 has 'owner[].nam' {UP}; did you mean 'owner[].name'?",
                f"! no body of version 2 has 'owner[].nam' {DOWN}; did you mean 'owner[].name'?",
            ],
        ),
        (
            closed(owner=closed(name=TEXT)),
            closed(owner=closed(name=TEXT)),
            ["unwrap: { field: owner }", "map: { field: owner.name, values: { a: b } }"],
            [
                f"! no body of version 2 has 'owner[]' {DOWN}; did you mean 'owner'?",
                (
                    f"! no body of version 1 has 'owner.name' {UP}; did you mean 'owner[].name'?"
                    f" Or {BEFORE}"
                ),
            ],
        ),
        # Members of an object that become fields beside it, and the reverse.
        (
            FLAT,
            DEEP,
            [FLATTEN, "map: { field: look.colour, values: { a: b } }"],
            [f"! no body of version 2 has 'look.colour' {DOWN}; did you mean 'look.color'?"],
        ),
        (
            FLAT,
            DEEP,
            ["map: { field: l_sise, values: { a: b } }", FLATTEN],
            [
                f"! no body of version 1 has 'l_sise' {UP}; did you mean 'l_size'?",
                f"! no body of version 2 has 'l_sise' {DOWN}; did you mean 'l_size'?",
            ],
        ),
        (
            closed(id=TEXT, look_color=TEXT),
            DEEP,
            [FLATTEN],
            [
                f"! no body of version 1 has 'l_*' {UP}; known: id, look_color",
                f"! no body of version 1 has 'l_count' {UP}; known: id, look_color",
            ],
        ),
        (
            closed(item=TEXT),
            closed(item=TEXT),
            ["nest: { field: item.look, prefix: l_ }"],
            [
                f"! no body of version 1 has 'item.look' {UP}; did you mean 'item'?",
                f"! no body of version 2 has 'item.l_*' {DOWN}; did you mean 'item'?",
            ],
        ),
        # A value that moves between an object and the elements of its array.
        (
            lines("currency"),
            closed(currency=TEXT, **lines("n")["properties"]),
            [
                'spread: { field: currency, into: "lines[].currncy", keep: false }',
                'map: { field: "lines[].currency", values: { a: b } }',
            ],
            [
                (
                    f"! no body of version 1 has 'lines[].currncy' {UP};"
                    " did you mean 'lines[].currency'?"
                ),
                f"! no body of version 2 has 'lines[].currency' {DOWN}; did you mean 'lines[].n'?",
            ],
        ),
        (
            closed(currency=TEXT, **lines("n")["properties"]),
            lines("currency", "n"),
            [
                'collect: { field: "lines[].currency", into: curency }',
                'map: { field: "lines[].m", values: { a: b } }',
            ],
            [
                f"! no body of version 1 has 'curency' {UP}; did you mean 'currency'?",
                f"! no body of version 1 has 'lines[].m' {UP}; did you mean 'lines[].n'?",
                f"! no body of version 2 has 'lines[].m' {DOWN}; did you mean 'lines[].n'?",
            ],
        ),
        # A list that becomes a map, and a map that becomes a list.
        (
            closed(days=LIST),
            closed(days=MAP),
            [
                "entries: { field: days, key: nam }",
                'map: { field: "days.*.fre", values: { a: b } }',
            ],
            [
                f"! no body of version 1 has 'days[].nam' {UP}; did you mean 'days[].name'?",
                f"! no body of version 1 has 'days.*.fre' {UP}; did you mean 'days.*.free'?",
                f"! no body of version 2 has 'days.*.fre' {DOWN}; did you mean 'days.*.free'?",
            ],
        ),
        (
            closed(fees={"additionalProperties": TEXT}),
            closed(fees={"type": "array", "items": closed(name=TEXT, sum=TEXT)}),
            ["index: { field: fees, key: name, value: amount }"],
            [f"! no body of version 2 has 'fees[].amount' {DOWN}; did you mean 'fees[].name'?"],
        ),
        # All keys change their case, except keys that are data.
        (
            SNAKE,
            CAMEL,
            [KEYS.replace("metaData", "metData")],
            [
                f"warning: no body of version 1 has 'met_data' {UP}; did you mean 'meta_data'?",
                f"warning: no body of version 2 has 'metData' {DOWN}; did you mean 'metaData'?",
            ],
        ),
        (
            SNAKE,
            CAMEL,
            [KEYS, 'map: { field: "orderLines[].unit_price", values: { a: b } }'],
            [
                (
                    f"! no body of version 1 has 'orderLines[].unit_price' {UP};"
                    " did you mean 'orderLines[].unitPrice'?"
                ),
                (
                    f"! no body of version 2 has 'orderLines[].unit_price' {DOWN};"
                    " did you mean 'orderLines[].unitPrice'?"
                ),
            ],
        ),
        # One member of an object gets the object's name, so the other members would be lost.
        (
            FINES,
            FINE,
            [AMOUNT, "map: { field: fine.currency, values: { a: b } }"],
            [
                f"warning: no body of version 1 has 'fine.currency' {UP}; did you mean 'currency'?",
                f"warning: {LOST.format(2, 'currency', 'below')}",
            ],
        ),
        (FINES, FINE, [AMOUNT], [f"warning: {LOST.format(2, 'currency', 'below')}"]),
        (FINES, FINE, [AMOUNT, CURRENCY], []),
        (FINE, FINES, [BACK["currency"], BACK["amount"]], []),
        (FINE, FINES, [BACK["amount"]], [f"warning: {LOST.format(1, 'currency', 'above')}"]),
        (
            FINE,
            FINES,
            [BACK["amount"], BACK["currency"]],
            [f"! no body of version 1 has 'fine.currency' {UP}; {BEFORE}"],
        ),
        # The new name already belongs to another field.
        (
            closed(all=closed(a=TEXT)),
            closed(all=closed(a=TEXT, b=TEXT)),
            ["rename: { field: all.b, to: all.a }"],
            [
                (
                    "warning: where a body of version 2 has 'all.a' beside 'all.b', it is refused:"
                    " 'all.b' becomes 'all.a' here, and 'all.a' would be lost; list a change that "
                    "removes it below this one"
                )
            ],
        ),
        # Two alternatives never occur in the same body.
        (
            closed(a=TEXT),
            {"oneOf": [closed(a=TEXT), closed(b=TEXT)]},
            ["rename: { field: b, to: a }"],
            [],
        ),
        # The field can only be in the newer version, but its document lacks it.
        (
            loan(),
            loan(),
            ["default: { field: gift, value: true }"],
            [f"! no body of version 2 has 'gift' {DOWN}; known: books, id"],
        ),
        # An object has no field of its group, so its path must be wrong.
        (
            cards(all=("title", "note")),
            cards(all=("label", "text")),
            ["use: { group: card, at: [all, al] }"],
            [
                f"! no body of version 1 has 'al.title' {UP}; did you mean 'all.text'?{USED}",
                f"! no body of version 2 has 'al.text' {DOWN}; did you mean 'all.text'?{USED}",
            ],
        ),
        # The previous change has already renamed the field, so the configuration is refused.
        (
            loan(title="name"),
            loan(),
            [TITLED, 'map: { field: "books[].name", values: { a: b } }'],
            None,
        ),
    ],
)
def test_undeclared_fields_are_reported(
    tmp_path: Path, older: object, newer: object, changes: list[str], expected: list[str] | None
) -> None:
    if expected is None:
        with pytest.raises(ConfigError, match="is removed by"):
            said(tmp_path, older, newer, *changes)
    else:
        assert said(tmp_path, older, newer, *changes) == expected


def test_an_unusable_document_causes_a_warning(tmp_path: Path) -> None:
    older = document({"$ref": "#/nowhere"}, loans="get")
    path, snapshot = written(tmp_path, older, document(lendings="get"))
    (issue,) = check_conversions(path, {}, snapshot)
    assert issue.place == "apis.loans.versions.1.schema"
    assert issue.text.startswith("warning: the fields of changes are not checked: v1.json: ")


def test_the_command_check_reports_an_undeclared_field_with_its_position(tmp_path: Path) -> None:
    change = "{ default: { field: x, value: 1 } }"
    written(tmp_path, document(loans="get"), document(lendings="get"), change)
    command = [fork_server().python, "-m", "gateway", "check", str(tmp_path / "gateway.yaml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "gateway.yaml:16:21: apis.loans.conversions[0].changes[0].default: " in done.stderr
    assert "no body of version 2 has 'x' at this point of a downgrade" in done.stderr


def test_a_gateway_that_serves_does_not_import_the_openapi_code() -> None:
    code = "import gateway.app, sys; print(*(n for n in sys.modules if 'verify.openapi' in n))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def checked(
    folder: Path, older: Mapping[str, object], newer: Mapping[str, object], rules: str
) -> list[str]:
    (folder / "v1.json").write_text(json.dumps({"openapi": "3.1.0", "paths": older}))
    (folder / "v2.json").write_text(json.dumps({"openapi": "3.1.0", "paths": newer}))
    path = folder / "gateway.yaml"
    path.write_text(rules)
    return texts(check_conversions(path, {}, load_file(path, {})))


def written_operation(
    place: str = "query", body: object = None, **parameters: object
) -> dict[str, object]:
    content = {"content": {"application/json": {"schema": body or {}}}}
    listed = [{"name": name, "in": place, "schema": {}} for name in parameters]
    return {"parameters": listed, "requestBody": content, "responses": {"200": content}}


PAYMENTS = """\
services: { new: { targets: ["http://127.0.0.1:9002"] } }
apis:
  pay:
    upstream_path: "/{rest}"
    versions: { "1": { via: "2", schema: v1.json }, "2": { service: new, schema: v2.json } }
    endpoints: [ { path: "/v{version}/{rest*}", version: { in: path }, methods: [POST] } ]
    conversions:
      - between: ["1", "2"]
        operations: [ { newer: POST /payments, older: POST /pay } ]
        changes: [ { rename: { field: total, to: sum } } ]
        query: [ { rename: { field: offset, to: skip } }, { rename: { field: max, to: most } } ]
      - between: ["1", "2"]
        on: requests
        headers: [ { rename: { field: X-Key, to: X-Id } } ]
"""
CLOSED = {"type": "object", "properties": {"sum": TEXT}, "additionalProperties": False}


def test_fields_of_a_mapped_operation_are_checked_in_its_own_document(tmp_path: Path) -> None:
    older = {"/pay": {"post": written_operation(body=CLOSED, skip=1, most=1)}}
    fields = {**CLOSED, "properties": {"totals": TEXT}}
    newer = {"/payments": {"post": written_operation(body=fields, offset=1)}}
    with pytest.raises(ConfigError) as caught:
        checked(tmp_path, older, newer, PAYMENTS)
    assert [issue.text for issue in caught.value.issues] == [
        "no body of version 2 has 'total' at this point of a downgrade; did you mean 'totals'?"
    ]


def test_an_undeclared_parameter_or_header_field_is_reported(tmp_path: Path) -> None:
    older = {"/pay": {"post": written_operation(skipped=1, most=1)}}
    newer = {"/payments": {"post": written_operation("header", **{"X-Kee": 1})}}
    assert checked(tmp_path, older, newer, PAYMENTS) == [
        "warning: no request of version 1 has the query parameter 'skip'; did you mean 'skipped'?",
        "warning: no request of version 2 has the header field 'X-Key'; known: x-kee",
    ]


def test_a_renamed_parameter_with_swapped_names_is_reported(tmp_path: Path) -> None:
    older = {"/pay": {"post": written_operation(offset=1, most=1)}}
    newer = {"/payments": {"post": written_operation(skip=1, max=1)}}
    assert checked(tmp_path, older, newer, PAYMENTS) == [
        (
            "warning: no request of version 1 has the query parameter 'skip'; it has 'offset', and"
            " the newer version has 'skip': swap 'field' and 'to'"
        ),
        (
            "warning: no request of version 2 has the query parameter 'offset'; it has 'skip', and"
            " the older version has 'offset': swap 'field' and 'to'"
        ),
    ]


def test_operations_without_an_endpoint_are_reported(tmp_path: Path) -> None:
    operation: dict[str, object] = {"get": {"responses": {}}, "post": {"responses": {}}}
    older: dict[str, object] = {f"/a/{number}": operation for number in range(6)}
    (found,) = checked(tmp_path, older, {"/payments": {"post": {"responses": {}}}}, PAYMENTS)
    listed = ", ".join(f"GET /a/{number}" for number in range(5))
    assert found == f"warning: no endpoint leads to {listed} and 1 more of this document"


def test_the_second_of_two_paths_that_differ_only_in_parameter_names_is_reported(
    tmp_path: Path,
) -> None:
    operation: dict[str, object] = {"get": {"responses": {}}}
    older: dict[str, object] = {"/pay/{id}": operation, "/pay/{number}": operation}
    (found, _) = checked(tmp_path, older, {"/payments": {"post": {"responses": {}}}}, PAYMENTS)
    assert found == (
        "warning: GET /pay/{number} of this document differs from GET /pay/{id} only"
        " in parameter names, so no request reaches it; keep one of them"
    )


LISTS = """\
services: { new: { targets: ["http://127.0.0.1:9002"] } }
apis:
  shop:
    versions: { "1": { via: "2", schema: v1.json }, "2": { service: new, schema: v2.json } }
    endpoints: [ { path: /orders, version: { in: header, name: X-Version } } ]
    conversions:
      - between: ["1", "2"]
        on: responses
        unfit: refuse
        changes:
          - to_header: { field: total, header: X-Count, type: number }
          - to_header: { field: next, header: X-Next }
          - from_header: { field: id, header: X-Id }
        headers:
          - rename: { field: X-Next, to: X-After }
          - map: { field: Content-Type, values: { a/b: c/d } }
      - between: ["1", "2"]
        on: requests
        changes:
          - to_query: { field: dryRun, parameter: dry }
          - to_header: { field: why, header: X-Why }
"""


def answered(*fields: str) -> dict[str, object]:
    named = {"name": "X-Reason", "in": "header", "schema": {}}
    query = {"name": "dryRun", "in": "query", "schema": {}}
    fields_of: dict[str, object] = {"headers": {name: {} for name in fields}}
    return {"/orders": {"get": {"parameters": [named, query], "responses": {"200": fields_of}}}}


def test_header_fields_of_responses_are_checked(tmp_path: Path) -> None:
    """Changes of bodies use the newer version's names of header fields."""
    older, newer = answered("X-Total", "X-After"), answered("X-Key", "X-Next")
    assert checked(tmp_path, older, newer, LISTS) == [
        "warning: no request of version 1 has the query parameter 'dry'; did you mean 'dryRun'?",
        (
            "warning: no answer of version 1 has the header field 'X-Count';"
            " known: content-type, x-after, x-next, x-total"
        ),
        (
            "warning: no request of version 1 has the header field 'X-Why';"
            " known: content-type, x-next, x-reason"
        ),
        "warning: no answer of version 2 has the header field 'X-Id'; known: x-key, x-next",
    ]


def test_undocumented_header_fields_cause_no_warning(tmp_path: Path) -> None:
    rules = LISTS.replace("        on: responses\n", "").partition(
        '      - between: ["1", "2"]\n        on: req'
    )[0]
    assert checked(tmp_path, answered(), answered(), rules) == []
    older, newer = answered("X-Count", "X-After"), answered("X-Next", "X-Old")
    assert checked(tmp_path, older, newer, rules) == [
        (
            "warning: no message of version 2 has the header field 'X-Id';"
            " known: x-next, x-old, x-reason"
        )
    ]


def test_a_document_may_name_a_list_without_its_brackets(tmp_path: Path) -> None:
    configuration = PAYMENTS.replace(
        "rename: { field: offset, to: skip }", 'add_value: { field: "expand[]", value: owner }'
    )
    older = {"/pay": {"post": written_operation(most=1)}}
    for name in ("expand", "expand[]"):
        newer = {"/payments": {"post": written_operation("query", **{name: 1, "max": 1})}}
        assert checked(tmp_path, older, newer, configuration) == []


EXPANDED = """\
services: { new: { targets: ["http://127.0.0.1:9002"] } }
apis:
  pay:
    versions: { "1": { via: "2", schema: v1.json }, "2": { service: new, schema: v2.json } }
    endpoints: [ { path: "/{rest*}", version: { in: header, name: V } } ]
    conversions:
      - between: ["1", "2"]
        on: requests
        allow_loss: each version has its own lists
        changes: [ { add_value: { field: "expand[]", value: owner } } ]
"""


def form_with_list(name: str, style: str) -> dict[str, object]:
    form = {
        "encoding": {name: {"style": style, "explode": True}},
        "schema": {**CLOSED, "properties": {name: {"type": "array", "items": TEXT}}},
    }
    content = {"content": {"application/x-www-form-urlencoded": form}}
    return {"/pay": {"post": {"requestBody": content, "responses": {}}}}


@pytest.mark.parametrize(
    ("name", "style"), [("expand", "deepObject"), ("expand", "form"), ("expand[]", "form")]
)
def test_a_list_of_a_form_is_found_with_and_without_brackets(
    tmp_path: Path, name: str, style: str
) -> None:
    pay = form_with_list(name, style)
    assert checked(tmp_path, pay, pay, EXPANDED) == []


def test_a_list_that_no_form_has_is_reported(tmp_path: Path) -> None:
    pay = form_with_list("extend", "form")
    with pytest.raises(ConfigError, match="no body of version 2 has 'expand'"):
        checked(tmp_path, pay, pay, EXPANDED)
