"""Alternatives of `oneOf` and `anyOf` are compared with their counterparts in the other version."""

import json
import os
import random
from itertools import product
from typing import Any

import jsonschema_rs
import pytest

from gateway.conversion.schema import PLACE, Schema, Schemas, definitions
from gateway.conversion.schema_fit import SchemaComparer, Verdict, convert_schema
from gateway.verify.claims import Claim, MessagePart
from gateway.verify.openapi.examples import Examples
from gateway.verify.proof import ClaimProof, Prover
from gateway.versions.version import Version

# The number of random pairs of schemas. A run with LAWS=2000 found no errors.
CASES = 10 * int(os.environ.get("LAWS", "5"))
TEXT: Schema = {"type": "string"}


def an(required: str = "", **properties: object) -> Schema:
    """Return the schema of a closed object; `required` has the letters of required fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }


def either(keyword: str, *members: Schema, **other: object) -> Schema:
    return {keyword: [*members], **other}


def components(keyword: str, **members: Schema) -> Schema:
    references: list[Schema] = [{"$ref": PLACE + name} for name in members]
    return {**either(keyword, *references), "components": {"schemas": members}}


def mapped(schema: Schema, **values: str) -> Schema:
    mapping = {value: PLACE + name for value, name in values.items()}
    return {**schema, "discriminator": {"propertyName": "t", "mapping": mapping}}


def kind(*values: str) -> Schema:
    return {"type": "string", "enum": [*values]}


def proof(given: Schema, wanted: Schema, part: MessagePart = MessagePart.REQUEST) -> ClaimProof:
    about = ("api", Version(1, "1"), Version(2, "2"), "POST /payments", part, "")
    claim = Claim(*about, given, wanted, None, unchanged=True)
    return Prover(Examples(100, 0)).prove(claim)


CARD, BANK, CASH = (
    an("", t=kind("card"), n=TEXT, b=TEXT, c=TEXT, d=TEXT),
    an("", t=kind("bank"), n=TEXT, i=TEXT, j=TEXT),
    an("t", t=kind("cash"), n=TEXT, k=TEXT),
)
CARD_WITHOUT_B = an("", t=kind("card"), n=TEXT, c=TEXT, d=TEXT)
BARE = an("", t=TEXT, b=TEXT, c=TEXT, d=TEXT), an("", t=TEXT, i=TEXT, j=TEXT, k=TEXT)
BARE_WITHOUT_B = an("", t=TEXT, c=TEXT, d=TEXT)
PAID = an("tn", t=kind("paid"), n=TEXT), an("tr", t=kind("failed"), r=TEXT)
OPEN_BANK = {key: one for key, one in BANK.items() if key != "additionalProperties"}
NULL: Schema = {"type": "null"}
B = {("/b", "additionalProperties")}
REMOVED = {("/t", "enum"), ("/n", "required"), ("/r", "additionalProperties")}


@pytest.mark.parametrize(
    ("given", "wanted", "found"),
    [
        # A field is dropped from one alternative.
        (either("oneOf", CARD, BANK, CASH), either("oneOf", CARD_WITHOUT_B, BANK, CASH), B),
        (either("anyOf", CARD, BANK, CASH), either("anyOf", CARD_WITHOUT_B, BANK, CASH), B),
        (either("oneOf", CARD, BANK, CASH), either("oneOf", CASH, BANK, CARD_WITHOUT_B), B),
        (
            components("oneOf", Card=CARD, Bank=BANK, Cash=CASH),
            components("oneOf", Cash=CASH, NewBank=BANK, NewCard=CARD_WITHOUT_B),
            B,
        ),
        (components("oneOf", A=CARD, B=BANK), components("oneOf", A=BANK, B=CARD_WITHOUT_B), B),
        # Only a discriminator, or only the fields, tell which alternatives belong together.
        (
            mapped(components("oneOf", A=BARE[0], B=BARE[1]), card="A", bank="B"),
            mapped(components("oneOf", C=BARE[1], D=BARE_WITHOUT_B), card="D", bank="C"),
            B,
        ),
        (either("oneOf", *BARE), either("oneOf", BARE[1], BARE_WITHOUT_B), B),
        (
            either("anyOf", either("oneOf", CARD, BANK), NULL),
            either("anyOf", either("oneOf", BANK, CARD_WITHOUT_B), NULL),
            B,
        ),
        # An alternative is removed, or added.
        (either("oneOf", *PAID), either("oneOf", PAID[0]), REMOVED),
        (either("oneOf", *PAID), PAID[0], REMOVED),
        (either("oneOf", PAID[0]), either("oneOf", *PAID), set()),
        (PAID[0], either("oneOf", *reversed(PAID)), set()),
        (either("anyOf", CARD, BANK), either("anyOf", CASH, BANK, CARD), set()),
        # Two alternatives together allow all values, but neither of them does alone.
        (
            an(n={**TEXT, "maxLength": 9}),
            either(
                "anyOf", an(n={**TEXT, "maxLength": 5}), an(n={**TEXT, "minLength": 2}), an(m=TEXT)
            ),
            set(),
        ),
    ],
)
def test_only_the_differences_between_counterparts_are_named(
    given: Schema, wanted: Schema, found: set[tuple[str, str]]
) -> None:
    result = proof(given, wanted)
    assert {(one.field, one.keyword) for one in result.findings} == found
    assert len(result.findings) == len(found)


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_a_field_that_one_alternative_of_a_response_lost_is_found(keyword: str) -> None:
    """Another alternative still has the field."""
    others = [an("t", t=kind("bank"), b=TEXT), an("t", t=kind("cash"), k=TEXT)]
    given = either(keyword, CARD_WITHOUT_B, *others)
    result = proof(given, either(keyword, CARD, *others), MessagePart.RESPONSE)
    assert [(one.field, one.keyword) for one in result.findings] == [("/b", "lost")]


@pytest.mark.parametrize(
    ("given", "wanted", "is_proved"),
    [
        # Card and bank overlap: `oneOf` refuses an object with only n.
        (either("oneOf", CARD, BANK), either("oneOf", BANK, CARD), True),
        (components("oneOf", A=CARD, B=BANK), components("oneOf", C=BANK, D=CARD), True),
        (either("anyOf", CARD, BANK), either("anyOf", BANK, CARD, CASH), True),
        (either("anyOf", CARD, BANK), either("oneOf", BANK, CARD), False),
        (either("oneOf", CARD_WITHOUT_B, BANK), either("oneOf", BANK, CARD), False),
        (either("oneOf", CARD, BANK), either("oneOf", BANK, CARD, CASH), False),
        # An open alternative also allows the fields of the others.
        (either("oneOf", CARD, BANK), either("oneOf", CARD, OPEN_BANK), False),
    ],
)
def test_one_of_is_proved_if_all_its_alternatives_exclude_what_they_excluded_before(
    given: Schema, wanted: Schema, is_proved: bool
) -> None:
    assert proof(given, wanted).proved is is_proved


def test_an_alternative_of_another_kind_is_no_counterpart_even_with_most_of_the_fields() -> None:
    cash, coins = (an("t", t=kind(name), k=TEXT, j=TEXT) for name in ("cash", "coins"))
    other = an("t", t=kind("coins"), k=TEXT, j=TEXT, i=TEXT)
    given, wanted = either("oneOf", cash, BANK), either("oneOf", cash, BANK, other)
    result = proof(given, wanted, MessagePart.RESPONSE)
    assert result.findings == ()
    result = proof(either("oneOf", coins, BANK), wanted, MessagePart.RESPONSE)
    assert [(one.field, one.keyword) for one in result.findings] == [("/i", "lost")]


VALUES = (None, "x", "y", "z", 1)  # None: the field is absent
DOCUMENTS = [
    {name: value for name, value in zip("kab", values, strict=True) if value is not None}
    for values in product(VALUES, repeat=3)
] + [None, "x", "y", 1]
PROPERTIES: list[Schema] = [
    TEXT,
    *(kind(*words) for words in ("x", "y", "xy")),
    {"type": ["string", "integer"]},
    {"type": "integer"},
]


def random_object(rng: random.Random) -> Schema:
    names = [name for name in "kab" if rng.random() < 0.7]
    required = "".join(name for name in names if rng.random() < 0.4)
    return an(required, **{name: rng.choice(PROPERTIES) for name in names})


def changed(rng: random.Random, schema: Schema, *, is_open: bool) -> Schema:
    made: Any = json.loads(json.dumps(schema))
    name = rng.choice("kab")
    match rng.randrange(3):
        case 0:
            made["properties"].pop(name, None)
        case 1:
            made["properties"][name] = rng.choice(PROPERTIES)
        case _:
            made["required"] = [one for one in made["properties"] if rng.random() < 0.4]
    made["required"] = [one for one in made["required"] if one in made["properties"]]
    if is_open:
        del made["additionalProperties"]
    return made  # type: ignore[no-any-return]  # from JSON


def combined(rng: random.Random, members: list[Schema]) -> Schema:
    keyword = rng.choice(("oneOf", "oneOf", "anyOf"))
    match rng.randrange(6):
        case 0 if len(members) == 1:
            return members[0]
        case 1:
            return components(keyword, **{f"C{n}": one for n, one in enumerate(members)})
        case 2:
            return either("anyOf", either(keyword, *members), NULL)
        case 3 if len(members) > 2:
            parts = (either("oneOf", *some) for some in (members[:2], members[2:]))
            return either("anyOf", *parts)
        case _:
            return either(keyword, *members)


@pytest.mark.parametrize("seed", range(CASES))
def test_proofs_and_failures_of_random_alternatives_agree_with_validation(seed: int) -> None:
    rng = random.Random(seed)
    members = [random_object(rng) for _ in range(rng.randint(1, 4))]
    # Of given schemas, verify assumes that they allow only declared fields.
    others = [
        changed(rng, one, is_open=rng.random() < 0.3) if rng.random() < 0.5 else one
        for one in members
    ]
    rng.shuffle(others)
    members += rng.sample((NULL, TEXT, kind("x")), rng.randrange(2))
    others += rng.sample((NULL, TEXT, random_object(rng)), rng.randrange(2))
    given, wanted = combined(rng, members), combined(rng, others[rng.randrange(2) :] or others)
    converted = convert_schema(None, given)
    comparer = SchemaComparer(converted.schemas, Schemas(definitions(wanted)))
    found = comparer.differences(converted, wanted)
    verdict = max((one.fit.verdict for one in found), default=Verdict.PROVED)
    before, after = map(jsonschema_rs.Draft202012Validator, (given, wanted))
    fits = all(after.is_valid(one) for one in DOCUMENTS if before.is_valid(one))
    assert fits or verdict is not Verdict.PROVED
    assert not fits or verdict is not Verdict.FAILS
