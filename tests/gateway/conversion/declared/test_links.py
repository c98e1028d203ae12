"""Conversions in gateway.yaml compile to links, and lossy changes give warnings."""

import decimal
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.base.mistakes import ConfigError
from gateway.conversion.changes import python
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.parameter_change import QUERY, parse_query
from gateway.conversion.scalars import Type
from gateway.conversion.version_step import VersionLink
from gateway.rules.load import check, load_file
from tests.gateway.rules.rules import edited, loaded

LOADS: Any = json.loads
ABSOLUTE: Any = decimal.Decimal.copy_abs
TEXT, NUMBER = Type.TEXT, Type.NUMBER
JOIN = "join: { fields: [name.first, name.last], into: name }"


def link(old: str, new: str) -> VersionLink:
    text = edited(old, new).replace('"1": { service: old }', '"1": { via: "2" }')
    found = loaded(text).router.find("/v1/person")
    assert found is not None
    (conversion,) = [
        route.response for route in found[0].routes.values() if route.response is not None
    ]
    (only,) = conversion.links
    return only


def test_a_python_module_is_found_in_the_folder_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "beside_the_rules.py").write_text("def up(x): return x\n\ndef down(x): return x\n")
    rules = tmp_path / "gateway.yaml"
    rules.write_text(
        edited(JOIN, 'python: { up: "beside_the_rules:up", down: "beside_the_rules:down" }')
    )
    assert load_file(rules, {}).summary == "2 services, 5 endpoints"


def test_a_python_module_that_cannot_be_imported_is_reported(tmp_path: Path) -> None:
    (tmp_path / "fails_on_import.py").write_text("raise SystemExit('no')\n")
    rules = tmp_path / "gateway.yaml"
    rules.write_text(edited(JOIN, 'python: { up: "fails_on_import:a", down: "json:dumps" }'))
    with pytest.raises(ConfigError, match="'fails_on_import' cannot be imported: it raises Sys"):
        load_file(rules, {})


def test_a_link_with_pure_functions_does_not_vary_and_has_their_module_in_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entity tags contain the digest. They change with the module, and can therefore be strong."""
    pure = 'python: { up: "json:loads", down: "json:dumps", pure: true }'
    impure = link(JOIN, pure.replace("true", "false"))
    first = link(JOIN, pure)
    assert (impure.varies, first.varies) == (True, False)
    monkeypatch.setattr(python, "module_hash", lambda _: "edited")
    assert link(JOIN, pure).digest != first.digest
    assert link(JOIN, pure.replace("true", "false")).digest == impure.digest
    (tmp_path / "needs_message.py").write_text("def up(value, message): return value\n")
    rules = tmp_path / "gateway.yaml"
    rules.write_text(edited(JOIN, pure.replace("json:loads", "needs_message:up")))
    with pytest.raises(
        ConfigError, match="is only valid for functions that take only the value; remove it"
    ):
        load_file(rules, {})


def test_a_conversion_with_paths_applies_only_at_these_endpoints() -> None:
    text = edited("changes:", "paths: [/param]\n        changes:")
    router = loaded(text.replace('"1": { service: old }', '"1": { via: "2" }')).router
    for path, links in (("/param", 1), ("/header", 0)):
        found = router.find(path)
        assert found is not None
        responses = [
            route.response for route in found[0].routes.values() if route.response is not None
        ]
        assert [len(response.links) for response in responses] == [links]


@pytest.mark.parametrize(("unfit", "keeps"), [("keep", True), ("refuse", False)])
def test_the_unfit_setting_keeps_or_refuses_values_that_cannot_be_converted(
    unfit: str, keeps: bool
) -> None:
    query = "query: [ affix: { field: id, older: { prefix: E } } ]"
    declared = link("changes:", f"unfit: {unfit}\n        {query}\n        changes:")
    assert declared.unfit.refuses is not keeps
    change, misfit = declared.query[0].fitted(of_request=True), parse_query("id=12")
    if keeps:
        assert change.up(misfit, QUERY) == misfit
    else:
        with pytest.raises(ConversionError):
            change.up(misfit, QUERY)


LOSSES = [
    (
        JOIN,
        [
            (
                "lossy towards version 2: 'name' is split at the first ' ', wherever it was joined;"
                " with fewer parts, it has no name.last"
            )
        ],
    ),
    (
        "join: { fields: [a, b, c, d], into: e, optional: [c, b] }",
        [
            (
                "lossy towards version 2: 'e' is split at the first ' ', wherever it was joined;"
                " with fewer parts, it has no c, then no b, then no d"
            )
        ],
    ),
    (
        "split: { field: c, into: [a, b] }",
        [
            (
                "lossy towards version 1: 'c' is split at the first ' ', wherever it was joined;"
                " with fewer parts, it has no b"
            )
        ],
    ),
    ("default: { field: a, value: 1 }", ["lossy towards version 1: 'a' is left out"]),
    ("remove: { field: a }", ["lossy towards version 2: 'a' is left out"]),
    (
        "time: { field: a, newer: unix, older: yyyyMMddHHmmss, zone: Europe/Berlin, digits: 0 }",
        [
            (
                "lossy towards version 1: 'a' in an hour that clocks repeat comes back as"
                " the first of the two"
            )
        ],
    ),
    (
        "time: { field: a, newer: unix_ms, older: unix }",
        ["lossy towards version 1: 'a' is cut to seconds"],
    ),
    (
        "time: { field: a, newer: unix, older: unix_ms }",
        ["lossy towards version 2: 'a' is cut to seconds"],
    ),
    (
        "omit_null: { field: a }",
        [
            "lossy towards version 1: where 'a' is absent, it comes back as null",
            "lossy towards version 2: where 'a' is null, it comes back as absent",
        ],
    ),
    (
        "fill_null: { field: a }",
        [
            "lossy towards version 2: where 'a' is absent, it comes back as null",
            "lossy towards version 1: where 'a' is null, it comes back as absent",
        ],
    ),
    ("multiply: { field: a, by: 60, digits: { newer: 0, older: 0 } }", []),
    ("multiply: { field: a, by: 1.8, plus: 32, inexact: refuse }", []),
    ("multiply: { field: a, by: 0.5, plus: 0.1 }", []),
    (
        "multiply: { field: a, by: 1.8, plus: 32, digits: { older: 1 } }",
        [
            (
                "a number that would need infinitely many decimal places in the"
                " newer version is refused; round it with digits: { newer: 2 } and"
                " inexact: round, or write inexact: refuse"
            )
        ],
    ),
    (
        "multiply: { field: a, by: 60, digits: { newer: 0, older: 1 }, inexact: round }",
        [
            "lossy towards version 1: 'a' is rounded to 1 digit after the decimal point",
            "lossy towards version 2: 'a' is rounded to 0 digits after the decimal point",
        ],
    ),
    (
        "round: { field: a, digits: 1 }",
        [
            (
                "lossy towards version 1: 'a' is rounded to 1 digit after the"
                " decimal point, and the reverse direction cannot restore the other digits"
            )
        ],
    ),
    (
        "time: { field: a, newer: rfc3339, older: dd/MM/yyyy, zone: '+01:00' }",
        [
            "lossy towards version 1: 'a' is cut to days",
            (
                "lossy towards version 1: 'a' loses its own offset;"
                " the reverse direction writes +01:00"
            ),
        ],
    ),
    (
        "time: { field: a, newer: unix, older: 'yyyy-MM-dd HH:mm:ss.S' }",
        ["lossy towards version 1: 'a' is cut to 1 digit of a second"],
    ),
    ("time: { field: a, newer: rfc3339, older: unix, other_zones: refuse }", []),
    (
        "rename: { field: a, to: b, default: x }",
        ["lossy towards version 2: where 'b' is absent, 'a' is the default"],
    ),
    (
        "case: { field: a, newer: camel, older: snake, unknown: keep }",
        [
            (
                f"lossy towards version {version}: 'a' stays unchanged where it is in {case} case"
                " already, and the reverse direction changes it"
            )
            for version, case in ((1, "snake"), (2, "camel"))
        ],
    ),
    ("wrap: { field: a }", ["lossy towards version 2: of several elements, 'a' keeps the first"]),
    ("unwrap: { field: a }", ["lossy towards version 1: of several elements, 'a' keeps the first"]),
    ("wrap: { field: a, many: refuse }", []),
    ("rename: { field: a, to: b }", []),
    ("type: { field: a, newer: integer, older: text, scale: 2 }", []),
    ("map: { field: a, values: { A: x, B: y } }", []),
    (
        "map: { field: a, values: { A: x, B: x }, back: { x: A, y: A }, default: { newer: Z } }",
        [
            "lossy towards version 1: 'a' is x for A and B",
            "lossy towards version 2: 'a' is A for x and y",
            "lossy towards version 2: 'a' is Z for every other value",
        ],
    ),
]


@pytest.mark.parametrize(("written", "losses"), LOSSES)
def test_a_lossy_change_of_bodies_gives_a_warning(written: str, losses: list[str]) -> None:
    _, warnings = check(edited(JOIN, written).encode(), "gateway.yaml", {})
    assert [issue.text for issue in warnings] == [f"warning: {text}" for text in losses]
    assert all((issue.line, issue.column) == (18, 13) for issue in warnings)


def test_a_lossy_change_of_query_parameters_gives_a_warning() -> None:
    text = edited("changes:", "query: [ default: { field: q } ]\n        changes:")
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert [issue.line for issue in warnings] == [17, 19]
    assert warnings[0].text == "warning: lossy towards version 1: 'q' is left out"
