"""docs/reference.md has every key of gateway.yaml, with its description and its default."""

import json
import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

import gateway.process.settings
import users_service.settings
from gateway.base.errors import FaultCode
from gateway.conversion.changes.registry import CHANGES
from gateway.versions.mechanisms.registry import MECHANISMS
from tests.gateway.kit import ROOT
from tests.gateway.rules.keys import KEYS, MODELS, Key, keys, models

REFERENCE = (ROOT / "docs" / "reference.md").read_text()


def rows() -> Iterator[tuple[str, str]]:
    """Yield the path of each key in the tables, and its row."""
    section = ""
    for line in REFERENCE.splitlines():
        if match := re.match(r"###? (?:`(.+)`)?", line):
            section = f"{match[1]}." if match[1] else ""
        if match := re.match(r"\| `([^`]+)` \|.*\|.*\|$", line):
            yield f"{section}{match[1]}", line


ROWS = dict(rows())


def row(key: Key, name: str) -> str:
    """Return the row of a key; the column of the default stands for the sentence about it."""
    default = f"`{key.default}`" if key.default else "required" if key.required else ""
    text = key.description
    if key.default:
        text = re.sub(r" The default is .+\.$", "", text)
    return f"| `{name}` | {text} | {default} |"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_it_has_every_key_with_its_default(key: Key) -> None:
    """If not: the row that is missing is what this compares with."""
    found = ROWS.get(key.path, "")
    name = re.match(r"\| `([^`]+)`", found)
    assert found == row(key, name[1] if name else key.path)


def changes(config: str) -> Iterator[tuple[str, str]]:
    """Yield each change of a list of changes, and the row of what may be left out of it."""
    for name, schema in MODELS[config]["properties"].items():
        ((model, _),) = models(schema, "")
        optional = [
            f"`{key.path}`: {'none' if key.schema.get('default') is None else _code(key)}"
            for key in keys(model)
            if not key.required and not isinstance(key.schema.get("default"), dict)
        ]
        yield name, f"| `{name}` | {', '.join(optional) or 'nothing'} |"


def _code(key: Key) -> str:
    return f"`{json.dumps(key.schema['default'])}`"


ROWS_OF_CHANGES = {**dict(changes("ParameterConfig")), **dict(changes("ChangeConfig"))}


@pytest.mark.parametrize(("name", "row"), ROWS_OF_CHANGES.items())
def test_it_has_the_defaults_of_every_change(name: str, row: str) -> None:
    """If not: the row that is missing is what this compares with."""
    section = REFERENCE.partition("\n### Defaults of changes\n")[2].partition("\n## ")[0]
    found = [line for line in section.splitlines() if line.startswith(f"| `{name}` |")]
    assert found == [row]


def test_the_defaults_of_parameters_are_those_of_changes() -> None:
    """Except where bodies and parameters differ, as the text beside the table has it."""
    other = [name for name, row in changes("ParameterConfig") if row != ROWS_OF_CHANGES[name]]
    assert other == [
        *("default", "join", "join_list", "python", "split", "split_list", "unwrap", "wrap"),
    ]
    assert '`join` and `split` of parameters have `trailing`: `"drop"`' in REFERENCE


@pytest.mark.parametrize("name", MECHANISMS)
def test_it_has_every_mechanism(name: str) -> None:
    assert f"in: {name}" in REFERENCE


def test_it_has_every_fault() -> None:
    table = REFERENCE.partition("\n## Errors\n")[2].partition("\n## ")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row)}
    assert set(FaultCode) - named == set()


@pytest.mark.parametrize("name", CHANGES)
def test_it_has_every_change(name: str) -> None:
    assert re.search(rf"^\| `{name}[`:]", REFERENCE, re.MULTILINE)


SETTINGS: dict[str, type[BaseModel]] = {
    "GATEWAY": gateway.process.settings.Settings,
    "USERS": users_service.settings.Settings,
}


def defaults() -> Iterator[tuple[str, str]]:
    """Yield each setting of the programs, and its default as it is shown; empty for none."""
    for program, settings in SETTINGS.items():
        for name, field in settings.model_fields.items():
            value = "" if field.default_factory or field.default is None else f"{field.default}"
            yield f"{program}_{name.upper()}", value.removesuffix(".0")


def test_it_has_every_setting_with_its_default() -> None:
    table = REFERENCE.partition("\n## Running a program\n")[2]
    found = re.findall(r"^\| `([A-Z_0-9]+)` \| [^|]+ \| (?:`([^`|]+)`)? \|$", table, re.MULTILINE)
    of_others = ("BACKEND_", "PERSON_")
    assert {name: value for name, value in found if not name.startswith(of_others)} == dict(
        defaults()
    )
