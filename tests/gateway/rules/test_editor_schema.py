"""The JSON Schema for editors is current, and accepts the same files as the gateway."""

import json
import os
import re
from typing import Any

import jsonschema
import pytest
import yaml

from gateway.rules.document import read
from gateway.rules.editor_schema import json_schema
from tests.gateway.kit import ROOT
from tests.gateway.rules.keys import COMMITTED, KEYS, MODELS, SCHEMA
from tests.gateway.rules.rules import RULES, edited, loaded, report

SHIPPED = ROOT / "gateway.yaml"
# By unit, the keys whose descriptions must name the unit.
UNITS = {
    "percentage": ("percent", "steps"),
    "minutes": ("minutes",),
    "bits": ("ipv4", "ipv6"),
    "bytes": ("convert", "body", "target", "header_bytes", "max_body"),
    "seconds": (
        *("connect", "first_byte", "between_bytes", "whole", "seconds", "longest", "patience"),
        *("interval", "timeout", "timeouts", "window", "every"),
        *("header_seconds", "idle_seconds", "stall_seconds"),
    ),
}


def accepts(data: Any) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_the_committed_schema_is_current() -> None:
    """To update it, run `python -m gateway schema > gateway.schema.json`."""
    assert COMMITTED.read_text() == json.dumps(json_schema(), indent=2) + "\n"


def test_the_editor_schema_is_a_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_first_line_of_the_shipped_file_refers_to_the_schema() -> None:
    first = SHIPPED.read_text().partition("\n")[0]
    assert first == "# yaml-language-server: $schema=gateway.schema.json"
    assert (SHIPPED.parent / first.partition("=")[2]).samefile(COMMITTED)


@pytest.mark.parametrize("text", [SHIPPED.read_text(), RULES], ids=["shipped", "of the tests"])
def test_valid_configurations_are_valid_before_and_after_variables_are_replaced(text: str) -> None:
    assert accepts(yaml.safe_load(text))
    assert accepts(read(text.encode(), "gateway.yaml", os.environ).data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('8001"] }', '8001"], timeouts: { connect: "${X:-1.5}", first_byte: "${X:-2}" } }'),
        ("services:\n", "limits:\n  convert: ${X:-1}\nservices:\n"),
        ("services:\n", 'limits: { convert: "${X:-1}" }\nservices:\n'),
        ("services:\n", 'trusted_proxies: ["${X:-::1}"]\nservices:\n'),
        ("changes:", 'statuses: ["${X:-404}"]\n        changes:'),
        ("[POST]", '["${X:-POST}"]'),
        ("X-API-VERSION", '"${X:-X-API-VERSION}"'),
    ],
)
def test_a_variable_is_accepted_where_a_number_or_a_pattern_is_expected(old: str, new: str) -> None:
    text = edited(old, new)
    assert accepts(yaml.safe_load(text))
    assert loaded(text).summary == "2 services, 5 endpoints"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{ service: new }", "{ service: new, port: 1 }"),
        ('8001"] }', '8001"], timeouts: { connect: 0 } }'),
        ('8001"] }', '8001"], timeouts: { connect: 1s } }'),
        ("[POST]", "[post]"),
        ("[POST]", "[]"),
        ("  old:", '  "o ld":'),
        ("X-API-VERSION", "X API"),
        ("in: query, name: version", "in: query"),
        ("in: path", "in: body"),
        ('["1", "2"]', '["1"]'),
        ("changes:", "statuses: [200]\n        changes:"),
    ],
)
def test_the_editor_schema_refuses_mistakes_that_the_gateway_refuses(old: str, new: str) -> None:
    text = edited(old, new)
    assert not accepts(yaml.safe_load(text))
    assert report(text)


def is_sentence(text: str) -> bool:
    """Return whether a string looks like a full sentence of at least five words."""
    return bool(re.match(r"[A-Z`]", text)) and text.endswith(".") and len(text.split()) >= 5


def test_the_description_of_each_key_is_a_full_sentence() -> None:
    assert len(KEYS) > 300
    assert [key.path for key in KEYS if not is_sentence(key.description)] == []


def test_the_description_of_each_section_is_a_full_sentence() -> None:
    sections = {
        name: model["description"]
        for name, model in MODELS.items()
        if name == "Config" or any(key.schema in model["properties"].values() for key in KEYS)
    }
    assert len(sections) > 20
    assert all(is_sentence(text) for text in sections.values())


def test_a_description_states_the_default_of_its_key() -> None:
    wrong = [
        key.path
        for key in KEYS
        if key.default
        and not re.search(rf"The default is {re.escape(key.default)}[.,]", key.description)
    ]
    assert wrong == []


@pytest.mark.parametrize("unit", UNITS)
def test_a_description_names_the_unit_of_its_key(unit: str) -> None:
    described = [key for key in KEYS if key.path.rpartition(".")[2] in UNITS[unit]]
    described = [
        key for key in described if not key.path.endswith(".errors.body")
    ]  # a template of a body, not a number of bytes
    assert {key.path.rpartition(".")[2] for key in described} == {*UNITS[unit]}
    assert [key.path for key in described if unit not in key.description] == []


def test_keys_with_different_names_have_different_descriptions() -> None:
    named: dict[str, set[str]] = {}
    for key in KEYS:
        named.setdefault(key.description, set()).add(key.path.rpartition(".")[2])
    assert [names for names in named.values() if len(names) > 1] == []
