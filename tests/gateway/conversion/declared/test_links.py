"""Declared conversions become the changes of the core."""

import decimal
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gateway.base.mistakes import ConfigError
from gateway.conversion.change import ELEMENT, Change, ChangeSequence, Elements, Inverse, Whole
from gateway.conversion.changes import python
from gateway.conversion.changes.affix import AffixForm
from gateway.conversion.changes.default import Default
from gateway.conversion.changes.invert import Invert
from gateway.conversion.changes.join_steps import Join
from gateway.conversion.changes.kept import KeptParameter
from gateway.conversion.changes.link import Link
from gateway.conversion.changes.map import Map, Unknown
from gateway.conversion.changes.money import Money
from gateway.conversion.changes.multiply import Multiply, Product
from gateway.conversion.changes.python import PythonChange
from gateway.conversion.changes.rename import Rename
from gateway.conversion.changes.round import Round
from gateway.conversion.changes.time import UnixTime, rfc_3339
from gateway.conversion.changes.type import Retype, Scale
from gateway.conversion.changes.value_rewrite import ValueRewrite, ways_between
from gateway.conversion.changes.wrap import Several, Wrap
from gateway.conversion.document import MISSING, Number
from gateway.conversion.parameter_change import in_direction, rewrite_query
from gateway.conversion.scalars import Type
from gateway.conversion.steps import BODY
from gateway.conversion.version_step import VersionLink
from gateway.rules.load import check, load_file
from tests.gateway.rules.rules import edited, loaded

LOADS: Any = json.loads
ABSOLUTE: Any = decimal.Decimal.copy_abs
TEXT, NUMBER = Type.TEXT, Type.NUMBER
JOIN = "join: { fields: [name.first, name.last], into: name }"


def link(old: str, new: str) -> VersionLink:
    """Return the link between 1 and 2, in rules that serve 1 via 2."""
    text = edited(old, new).replace('"1": { service: old }', '"1": { via: "2" }')
    found = loaded(text).router.find("/v1/person")
    assert found is not None
    (conversion,) = [
        route.response for route in found[0].routes.values() if route.response is not None
    ]
    (only,) = conversion.links
    return only


@pytest.mark.parametrize(
    ("written", "change"),
    [
        (JOIN, Join((), (("name", "first"), ("name", "last")), ("name",), " ", "")),
        (
            "join: { fields: [b, a, d], into: c, optional: [d, b], default: null }",
            Join((), (("b",), ("a",), ("d",)), ("c",), " ", None, (2, 0)),
        ),
        (
            'join: { fields: [b, a], into: c, separator: ", ", default: "?" }',
            Join((), (("b",), ("a",)), ("c",), ", ", "?"),
        ),
        (
            'join: { fields: ["list[].a", "list[].b.c"], into: "list[].d" }',
            Join((("list",),), (("a",), ("b", "c")), ("d",), " ", ""),
        ),
        (
            "split: { field: c, into: [a, b], separator: / }",
            Inverse(Join((), (("a",), ("b",)), ("c",), "/", "")),
        ),
        ("rename: { field: a.b, to: c }", Rename((), ("a", "b"), ("c",))),
        ('rename: { field: "i[].b", to: "i[].c.d" }', Rename((("i",),), ("b",), ("c", "d"))),
        (
            "map: { field: f, values: { A: a, B: 1, C: true }, unknown: keep }",
            Map(
                (),
                ("f",),
                {"A": "a", "B": Number("1"), "C": True},
                {"a": "A", Number("1"): "B", True: "C"},
                Unknown.KEEP,
                Unknown.KEEP,
            ),
        ),
        (
            """map: { field: f, values: { A: 1, B: 1 }, back: { "1": B, c: C },
                default: { older: 0, newer: Z } }""",
            Map(
                (),
                ("f",),
                {"A": Number("1"), "B": Number("1")},
                {Number("1"): "B", "c": "C"},
                Number("0"),
                "Z",
            ),
        ),
        ("type: { field: f, newer: number, older: text }", Retype((), ("f",), NUMBER, TEXT)),
        ("type: { field: f, newer: integer, older: text, scale: 2 }", Scale((), ("f",), 2, TEXT)),
        (
            "type: { field: f, newer: number, older: integer, scale: 3 }",
            Inverse(Scale((), ("f",), 3, NUMBER)),
        ),
        (
            "multiply: { field: a.f, by: 0.3048, digits: { older: 2 } }",
            Multiply(
                (), ("a", "f"), Product(Fraction(10000, 3048)), Product(Fraction("0.3048"), 2)
            ),
        ),
        (
            "divide: { field: f, by: 1.8, plus: 32, digits: { older: 1 }, inexact: round }",
            Multiply(
                (),
                ("f",),
                Product(Fraction("1.8"), plus=Fraction(32)),
                Product(Fraction(5, 9), 1, rounds=True, plus=Fraction(-160, 9)),
            ),
        ),
        (
            'divide: { field: "a[]", by: "60", digits: { older: 2 }, inexact: round }',
            Elements(
                (),
                ("a",),
                1,
                Multiply(
                    (),
                    ELEMENT,
                    Product(Fraction(60)),
                    Product(Fraction(1, 60), 2, rounds=True),
                ),
            ),
        ),
        ("round: { field: a.f, digits: 2 }", Round((), ("a", "f"), 2)),
        ('round: { field: "a[][]", digits: 2 }', Elements((), ("a",), 2, Round((), ELEMENT, 2))),
        (
            'round: { field: "a.*[][].*", digits: 2 }',
            Elements(
                (),
                ("a",),
                0,
                Elements((), ELEMENT, 2, Elements((), ELEMENT, 0, Round((), ELEMENT, 2))),
            ),
        ),
        ('round: { field: "*", digits: 2 }', Elements((), (), 0, Round((), ELEMENT, 2))),
        (
            'round: { field: "[][]", digits: 2 }',
            Whole(Elements((), BODY, 2, Round((), ELEMENT, 2))),
        ),
        (
            "rename: { field: a, to: b, default: null }",
            ChangeSequence((Rename((), ("a",), ("b",)), Default((), ("a",), None, keep=True))),
        ),
        (
            "time: { field: f, newer: rfc3339, older: unix_ms, text: true, zone: '+02:00' }",
            ValueRewrite((), ("f",), *ways_between(rfc_3339(120), UnixTime(3, None, TEXT))),
        ),
        (
            'money: { field: "i[].f", currency: c, newer: text, older: integer, unknown: 2 }',
            Inverse(Money((), ("c",), (("i",),), ("f",), TEXT, 2)),
        ),
        (
            "affix: { field: f, newer: { type: number }, older: { prefix: E, suffix: '!' } }",
            ValueRewrite((), ("f",), *ways_between(AffixForm(type=NUMBER), AffixForm("E", "!"))),
        ),
        ("invert: { field: f, to: f }", Invert((), ("f",))),
        ("link: { field: f }", Link((), ("f",))),
        ("wrap: { field: f }", Wrap((), ("f",))),
        ("unwrap: { field: f, many: refuse }", Inverse(Wrap((), ("f",), Several.REFUSE))),
        ("remove: { field: f }", Inverse(Default((), ("f",), MISSING))),
        ("remove: { field: f, value: null }", Inverse(Default((), ("f",), None))),
        (
            'python: { field: "i[].f", up: "json:loads", down: "json:dumps" }',
            PythonChange((("i",),), ("f",), LOADS, json.dumps),
        ),
        (
            'python: { up: "decimal:Decimal.copy_abs", down: "json:dumps" }',
            PythonChange((), None, ABSOLUTE, json.dumps),
        ),
        ("default: { field: a.b, value: 1 }", Default((), ("a", "b"), 1)),
        ("default: { field: a, value: }", Default((), ("a",), None)),
        (
            'default: { field: "a[].b", value: { c: [1.5, text, no, true] } }',
            Default((("a",),), ("b",), {"c": [1.5, "text", "no", True]}),
        ),
    ],
)
def test_a_written_change_compiles(written: str, change: Change) -> None:
    assert link(JOIN, written).changes == (change,)


def test_a_module_lies_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "beside_the_rules.py").write_text("def up(x): return x\n\ndef down(x): return x\n")
    rules = tmp_path / "gateway.yaml"
    rules.write_text(
        edited(JOIN, 'python: { up: "beside_the_rules:up", down: "beside_the_rules:down" }')
    )
    assert load_file(rules, {}).summary == "2 services, 5 endpoints"


def test_a_module_that_cannot_be_imported_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "fails_on_import.py").write_text("raise SystemExit('no')\n")
    rules = tmp_path / "gateway.yaml"
    rules.write_text(edited(JOIN, 'python: { up: "fails_on_import:a", down: "json:dumps" }'))
    with pytest.raises(ConfigError, match="'fails_on_import' cannot be imported: it raises Sys"):
        load_file(rules, {})


def test_pure_functions_do_not_vary_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their modules are in the hash of a link, and so in entity tags, which stay strong."""
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
    with pytest.raises(ConfigError, match="goes with functions of the value alone; remove it"):
        load_file(rules, {})


def test_a_link_of_some_paths_applies_at_their_endpoints() -> None:
    text = edited("changes:", "paths: [/param]\n        changes:")
    router = loaded(text.replace('"1": { service: old }', '"1": { via: "2" }')).router
    for path, links in (("/param", 1), ("/header", 0)):
        found = router.find(path)
        assert found is not None
        responses = [
            route.response for route in found[0].routes.values() if route.response is not None
        ]
        assert [len(response.links) for response in responses] == [links]


QUERY = [
    ("rename: { field: page, to: p }", "page=2", "p=2"),
    ("map: { field: sort, values: { up: asc, down: 1, same: true } }", "sort=up", "sort=asc"),
    ("map: { field: sort, values: { up: asc, down: 1, same: true } }", "sort=same", "sort=true"),
    ("map: { field: sort, values: { up: asc }, unknown: keep }", "sort=x", "sort=x"),
    ("map: { field: s, values: { a: b }, default: { older: 1 } }", "s=x", "s=1"),
    ("type: { field: all, newer: boolean, older: number }", "all=true", "all=1"),
    ("type: { field: min, newer: integer, older: text, scale: 2 }", "min=1250", "min=12.50"),
    ("type: { field: min, newer: text, older: integer, scale: 2 }", "min=12.50", "min=1250"),
    ("multiply: { field: min, by: 60 }", "min=12.25&min=3", "min=735&min=180"),
    ("multiply: { field: t, by: 1.8, plus: 32, inexact: refuse }", "t=-40&t=21.5", "t=-40&t=70.7"),
    ("round: { field: min, digits: 1 }", "min=12.25&min=3", "min=12.3&min=3"),
    ("time: { field: t, newer: rfc3339, older: unix }", "t=1970-01-01T00%3A00%3A01Z", "t=1"),
    ("affix: { field: id, older: { prefix: E } }", "id=12&id=13", "id=E12&id=E13"),
    ("invert: { field: live, to: old }", "live=true", "old=false"),
    ("case: { field: s, newer: camel, older: upper_snake }", "s=aB", "s=A_B"),
    ("rename: { field: a, to: b, default: x }", "a=1", "b=1"),
    ("default: { field: size }", "size=1&x", "x"),
    ("remove: { field: size, value: '20' }", "x", "x&size=20"),
]


@pytest.mark.parametrize(("written", "newer", "older"), QUERY)
def test_changes_of_queries_compile(written: str, newer: str, older: str) -> None:
    declared = link("changes:", f"query: [ {written} ]\n        changes:").query
    assert rewrite_query(newer, in_direction(declared, upwards=False)) == older


@pytest.mark.parametrize(("unfit", "keeps"), [("keep", True), ("refuse", False)])
def test_unfit_keeps_or_refuses_values(unfit: str, keeps: bool) -> None:
    query = "query: [ affix: { field: id, older: { prefix: E } } ]"
    declared = link("changes:", f"unfit: {unfit}\n        {query}\n        changes:")
    assert declared.keeps_unfit is keeps
    assert isinstance(declared.query[0], KeptParameter) is keeps


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
        ["lossy towards version 1: 'a' in an hour that clocks repeat comes back as in the first"],
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
                "a number that would have decimal places without end in the newer version is"
                " refused; round it, by digits: { newer: 2 } and inexact: round, or write inexact:"
                " refuse"
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
                "lossy towards version 1: 'a' is rounded to 1 digit after the decimal point, and"
                " the way back cannot restore the others"
            )
        ],
    ),
    (
        "time: { field: a, newer: rfc3339, older: dd/MM/yyyy, zone: '+01:00' }",
        [
            "lossy towards version 1: 'a' is cut to days",
            (
                "lossy towards version 1: 'a' loses the offset that it names; the way back writes"
                " +01:00"
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
                f"lossy towards version {version}: 'a' is kept where it is in {case} case already,"
                " and the way back changes it"
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
def test_losses_of_changes_are_warned_of(written: str, losses: list[str]) -> None:
    _, warnings = check(edited(JOIN, written).encode(), "gateway.yaml", {})
    assert [issue.text for issue in warnings] == [f"warning: {text}" for text in losses]
    assert all((issue.line, issue.column) == (18, 13) for issue in warnings)


def test_losses_of_parameters_are_warned_of() -> None:
    text = edited("changes:", "query: [ default: { field: q } ]\n        changes:")
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert [issue.line for issue in warnings] == [17, 19]
    assert warnings[0].text == "warning: lossy towards version 1: 'q' is left out"
