"""A hint is shown only if `check` accepts the rules with that change in them."""

from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.core.versions.version import Version
from gateway.verify import located_operation
from gateway.verify.checks.conversion_check import check_conversions
from gateway.verify.claim import Claim, MessagePart
from gateway.verify.hint_trial import HintTrial
from gateway.verify.located_operation import LocatedOperation
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.proof import Finding
from tests.gateway.verify.loans import document, rules, written

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def claim(given: dict[str, object], wanted: dict[str, object], part: MessagePart) -> Claim:
    sent: Schema = {"type": "object", "properties": given}
    read: Schema = {"type": "object", "properties": wanted}
    return Claim("loans", Version(1), Version(2), "GET /loans", part, "200", sent, read, None)


@pytest.mark.parametrize(
    ("changes", "part", "finding", "given", "wanted", "expected"),
    [
        (
            "",
            MessagePart.RESPONSE,
            ("/size", "type"),
            {"size": NUMBER},
            {"size": TEXT},
            "type: { field: size, newer: number, older: text }",
        ),
        (
            "",
            MessagePart.RESPONSE,
            ("/a", "required"),
            {"b": TEXT},
            {"a": TEXT},
            "rename: { field: b, to: a }",
        ),
        # The older name is taken by another change already, whichever way the two are ordered.
        (
            "{ rename: { field: c, to: a } }",
            MessagePart.RESPONSE,
            ("/a", "required"),
            {"b": TEXT},
            {"a": TEXT},
            None,
        ),
        # No change names an element of an array that is no object.
        (
            "",
            MessagePart.RESPONSE,
            ("/a/*", "enum"),
            {},
            {},
            'map: { field: "a[]", values: { ... } }',
        ),
        (
            "",
            MessagePart.RESPONSE,
            ("/a/*/b c", "enum"),
            {},
            {},
            'map: { field: "a[].b c", values: { ... } }',
        ),
        (
            "",
            MessagePart.QUERY,
            ("/page", "ignored"),
            {},
            {},
            "remove: { field: page, value: ... }",
        ),
        # The gateway writes this field itself.
        ("", MessagePart.HEADERS, ("/host", "ignored"), {}, {}, None),
        ("", MessagePart.RESPONSE, ("/size", "maximum"), {}, {}, None),
    ],
)
def test_hints(
    changes: str,
    part: MessagePart,
    finding: tuple[str, str],
    given: dict[str, object],
    wanted: dict[str, object],
    expected: str | None,
    tmp_path: Path,
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(rules(changes))
    snapshot = load(path.read_bytes(), str(path), {})
    found = Finding(*finding, "is wrong")
    assert HintTrial(path, {}, snapshot).hint(claim(given, wanted, part), found) == expected


def test_the_rules_are_not_built_anew_for_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules of many operations take a second to build."""
    documents = document(loans="get"), document(lendings="get")
    path, snapshot = written(tmp_path, *documents, "{ rename: { field: c, to: a } }")
    trial = HintTrial(path, {}, snapshot)
    located = []
    real = located_operation.locate

    def locate(*given: Any) -> list[LocatedOperation]:
        located.append(given)
        return real(*given)

    for builder in ("build.build", "conversions.links_builder.build_link"):
        monkeypatch.setattr(f"gateway.config.{builder}", lambda *_: pytest.fail("built anew"))
    monkeypatch.setattr("gateway.verify.checks.field_check.locate", locate)
    for name in ("id", "size", "colour"):
        wrong = Finding(f"/{name}", "enum", "is another")
        trial.hint(claim({}, {}, MessagePart.RESPONSE), wrong)
    assert len(located) == 2  # once for each document


def closed(**fields: object) -> dict[str, object]:
    """Return the schema of an object with some fields alone."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


def listed(**fields: object) -> dict[str, object]:
    """Return the schema of a list of objects with some fields alone."""
    return {"type": "array", "items": closed(**fields)}


@pytest.mark.parametrize(
    ("older", "newer", "field", "expected"),
    [
        (
            closed(id=TEXT, look_color=TEXT, look_size=TEXT),
            closed(id=TEXT, look=closed(color=TEXT, size=TEXT)),
            "/look",
            "flatten: { field: look, prefix: look_ }",
        ),
        (
            closed(id=TEXT, city=TEXT, street=TEXT),
            closed(id=TEXT, address=closed(city=TEXT, street=TEXT)),
            "/address",
            'flatten: { field: address, prefix: "", but: [id] }',
        ),
        (
            closed(lines=listed(price=TEXT, currency=TEXT)),
            closed(lines=listed(price=TEXT), currency=TEXT),
            "/currency",
            'spread: { field: currency, into: "lines[].currency", keep: false }',
        ),
        (
            closed(paid_at=TEXT, sent_lines=listed(unit_price=TEXT)),
            closed(paidAt=TEXT, sentLines=listed(unitPrice=TEXT)),
            "/paidAt",
            "key_case: { newer: camel, older: snake }",
        ),
        (
            closed(id=TEXT, name=TEXT),
            closed(data=closed(id=TEXT, name=TEXT), meta=closed()),
            "/data",
            "extract: { key: data }",
        ),
    ],
)
def test_a_hint_of_a_whole_shape(
    older: dict[str, object],
    newer: dict[str, object],
    field: str,
    expected: str,
    tmp_path: Path,
) -> None:
    """It is what `check` accepts, with the documents at hand."""
    documents = document(older, loans="get"), document(newer, lendings="get")
    path, snapshot = written(tmp_path, *documents)
    about = ("loans", Version(1), Version(2), "GET /loans", MessagePart.RESPONSE, "200")
    wrong = Finding(field, "additionalProperties", "is not known")
    shown = HintTrial(path, {}, snapshot).hint(Claim(*about, newer, older, None), wrong)
    assert shown == expected
    path, snapshot = written(tmp_path, *documents, f"{{ {shown} }}")
    assert check_conversions(path, {}, snapshot) == []


@pytest.mark.parametrize(("name", "shown"), [("id", True), ("colour", False)])
def test_a_field_that_the_documents_lack_is_in_no_hint(
    name: str, shown: bool, tmp_path: Path
) -> None:
    documents = document(loans="get"), document(lendings="get")
    path, snapshot = written(tmp_path, *documents)
    assert check_conversions(path, {}, snapshot) == []
    wrong = Finding(f"/{name}", "enum", "is another")
    found = HintTrial(path, {}, snapshot).hint(claim({}, {}, MessagePart.RESPONSE), wrong)
    assert found == (f"map: {{ field: {name}, values: {{ ... }} }}" if shown else None)
