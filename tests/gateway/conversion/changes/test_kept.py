"""`unfit: keep`: invalid values in a request are forwarded unchanged, in the converted field."""

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import (
    ELEMENT,
    Change,
    GroupUse,
    elements,
    inverse,
    keeping_unfit,
    sequence,
    whole_body,
)
from gateway.conversion.changes.default import default
from gateway.conversion.changes.envelope import envelope
from gateway.conversion.changes.invert import invert
from gateway.conversion.changes.join import join
from gateway.conversion.changes.map import map_words
from gateway.conversion.changes.money import money, money_by_currency, money_parameter
from gateway.conversion.changes.omit_null import omit_null
from gateway.conversion.changes.paging import PagingForm, move_unfit, rewrite_pages
from gateway.conversion.changes.rename import rename, rename_parameter
from gateway.conversion.changes.spread import spread
from gateway.conversion.changes.type import retype, scale
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, JsonForm
from gateway.conversion.field_path import Inside, Members, Scope
from gateway.conversion.parameter_change import (
    QUERY,
    ParameterChange,
    inverse_parameter,
    parameter_sequence,
    parse_query,
    recombined,
    rewritten,
    write_query,
)
from gateway.conversion.scalars import Type
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.conversion.changes.test_laws import change_of
from tests.gateway.conversion.documents import (
    SEALED,
    Json,
    fails,
    jsons,
    keeping,
    seal,
    unsealed,
    up,
)
from tests.gateway.conversion.test_conversion_error import bodies, changes
from tests.gateway.world import LAW

TYPES = Type.NUMBER, Type.TEXT
NUMBER = retype((), ("a",), Type.NUMBER, Type.TEXT)
NAME = rename((), ("n",), ("name",))
ITEMS = retype((("items",),), ("a",), Type.NUMBER, Type.TEXT)
PRICES = retype((Members(("prices",)),), ("a",), Type.NUMBER, Type.TEXT)
LISTS = retype((Members(("lists",)), ()), ("a",), Type.NUMBER, Type.TEXT)
GRID = retype((("grid",), ()), ("a",), Type.NUMBER, Type.TEXT)
FAR = retype((("far", "rows"),), ("a",), Type.NUMBER, Type.TEXT)
NEW = map_words((), ELEMENT, {"new": "N"}, {"N": "new"})
TAGS = elements((), ("tags",), 1, NEW)
ROWS = elements((), ("far", "rows"), 2, NEW)
WORDS = elements((), ("words",), 0, NEW)
PRICED = money((), ("c",), (("items",),), ("a",), Type.TEXT)
SPREAD = spread((), ("c",), (("items",),), ("c",), keep=False)
SPREAD_FAR = spread((), ("o", "c"), (("items",),), ("c",))
INTO = rename((), ("o", "n"), ("p", "name"))
DEEP = rename((), ("o", "m", "n"), ("p", "q", "name"))
GROUPS: dict[str, tuple[Change, ...]] = {
    "item": (NUMBER, NAME, GroupUse("item", ((("items",),),), {}).compile())
}
GROUPS["item"] = (*GROUPS["item"][:2], GroupUse("item", ((("items",),),), GROUPS).compile())


def converted(document: Json, *changes: Change, of_request: bool = True) -> Json:
    """Upgrade a body with lenient changes, and check that its sealed form gives the same result."""
    link = VersionLink(Version(1, "1"), Version(2, "2"), keeping(*changes))
    upgrade = BodyConversion((link,), Direction.UP, of_request)
    made = upgrade.convert(document, PLAIN)
    assert unsealed(upgrade.convert(seal(document), SEALED)) == made
    return made


@pytest.mark.parametrize(
    ("changes", "older", "newer"),
    [
        ((NUMBER, NAME), {"a": "x", "name": "N"}, {"a": "x", "n": "N"}),
        ((NUMBER, NAME), {"a": "1", "name": "N"}, {"a": 1, "n": "N"}),
        ((NUMBER,), {"a": {"b": "1"}}, {"a": {"b": "1"}}),
        ((NUMBER,), "text", "text"),
        ((NUMBER,), [{"a": "1"}, 7, None, {"a": "x"}], [{"a": 1}, 7, None, {"a": "x"}]),
        ((ITEMS,), {"items": [{"a": "1"}, 5, {"a": []}]}, {"items": [{"a": 1}, 5, {"a": []}]}),
        ((ITEMS,), {"items": {"a": "1"}}, {"items": {"a": "1"}}),
        ((ITEMS,), {"items": None}, {"items": None}),
        ((PRICES,), {"prices": 5}, {"prices": 5}),
        ((PRICES,), {"prices": {"x": 5, "y": {"a": "1"}}}, {"prices": {"x": 5, "y": {"a": 1}}}),
        ((LISTS,), {"lists": {"x": 5, "y": [{"a": "1"}]}}, {"lists": {"x": 5, "y": [{"a": 1}]}}),
        ((GRID,), {"grid": [5, [5, {"a": "1"}]]}, {"grid": [5, [5, {"a": 1}]]}),
        ((FAR,), {"far": 5}, {"far": 5}),
        ((GroupUse("item", ((Inside(("one",)),),), GROUPS).compile(),), {"one": [5]}, {"one": [5]}),
        ((TAGS,), {"tags": ["N", "x"]}, {"tags": ["new", "x"]}),
        ((TAGS,), {"tags": 5}, {"tags": 5}),
        ((ROWS,), {"far": {"rows": [["N"], 5]}}, {"far": {"rows": [["new"], 5]}}),
        ((ROWS,), {"far": 5}, {"far": 5}),
        ((WORDS,), {"words": {"k": "N"}}, {"words": {"k": "new"}}),
        ((WORDS,), {"words": 1.5}, {"words": 1.5}),
        ((rename((), ("o", "n"), ("o", "name")),), {"o": 5}, {"o": 5}),
        ((rename((), ("o", "n"), ("name",)),), {"o": 5}, {"o": 5}),
        ((inverse(rename((), ("o", "n"), ("name",))),), {"o": 5}, {"o": 5}),
        ((INTO, rename((), ("o", "x"), ("p", "x"))), {"p": [5]}, {"o": [5]}),
        ((inverse(INTO),), {"o": 5, "z": 1}, {"p": 5, "z": 1}),
        ((INTO,), {"p": 5, "o": {"z": 1}}, {"p": 5, "o": {"z": 1}}),
        ((INTO,), {"p": {"name": 5}}, {"o": {"n": 5}}),
        ((DEEP,), {"p": {"q": 5}}, {"o": {"m": 5}}),
        ((DEEP,), {"p": 5}, {"o": 5}),
        ((rename((), ("o", "n"), ("p", "q", "n")),), {"p": {"q": 5}}, {"o": 5}),
        ((rename((), ("o", "n"), ("p", "q", "n")),), {"p": 5}, {"p": 5}),
        ((default((), ("o", "n"), 1),), {"o": 5}, {"o": 5}),
        ((inverse(default((), ("o", "n"), 1)),), {"o": 5}, {"o": 5}),
        ((omit_null((), ("o", "n")),), {"o": 5}, {"o": 5}),
        (
            (inverse(join((), (("a",), ("o", "n")), ("name",), " ", "", ())),),
            {"a": "A", "o": True},
            {"a": "A", "o": True},
        ),
        ((SPREAD_FAR,), {"o": 5, "items": [{"c": 1}]}, {"o": 5, "items": [{"c": 1}]}),
        ((inverse(scale((), ("a",), 2, Type.TEXT)),), {"a": "x"}, {"a": "x"}),
        ((sequence(*(rename((), ("b",), ("a",)), invert((), ("b",)))),), {"a": 1}, {"b": 1}),
        ((money((), ("c",), (), ("a",), Type.TEXT),), {"a": "1", "c": "?"}, {"a": "1", "c": "?"}),
        ((PRICED,), {"c": "EUR", "items": 5}, {"c": "EUR", "items": 5}),
        (
            (PRICED,),
            {"c": "EUR", "items": [{"a": "x"}, {"a": "1.5"}, 5]},
            {"c": "EUR", "items": [{"a": "x"}, {"a": 150}, 5]},
        ),
        ((money((), ("m", "c"), (), ("a",), Type.TEXT),), {"a": "1", "m": 5}, {"a": "1", "m": 5}),
        (
            (money_by_currency((), ("a",), Type.TEXT),),
            {"a": {"EUR": "x", "JPY": "5", "?": "1"}},
            {"a": {"EUR": "x", "JPY": 5, "?": "1"}},
        ),
        ((money_by_currency((), ("a",), Type.TEXT),), {"a": 5}, {"a": 5}),
        ((money_by_currency((), ("m", "a"), Type.TEXT),), {"m": "5"}, {"m": "5"}),
        ((SPREAD,), {"items": {"c": 1}}, {"items": {"c": 1}}),
        ((SPREAD,), {"items": [5, {"c": 1, "a": 2}]}, {"items": [5, {"a": 2}], "c": 1}),
        ((inverse(SPREAD),), {"c": 1, "items": "x"}, {"items": "x"}),
        ((inverse(SPREAD),), {"c": 1, "items": [5, {}]}, {"items": [5, {"c": 1}]}),
        ((envelope((), ("a",), ("b", "c")),), {"a": {"b": {"d": 1}}}, {"a": {"b": {"d": 1}}}),
        (
            (GroupUse("item", ((),), GROUPS).compile(),),
            {"a": "x", "name": 1, "items": [{"a": "2", "items": [{"a": "y"}, "z"]}]},
            {"a": "x", "n": 1, "items": [{"a": 2, "items": [{"a": "y"}, "z"]}]},
        ),
    ],
)
def test_a_value_that_cannot_be_converted_is_forwarded_unchanged(
    changes: tuple[Change, ...], older: Json, newer: Json
) -> None:
    assert converted(older, *changes) == newer


def test_a_value_without_a_location_in_the_other_version_is_refused() -> None:
    with fails("/n", "already exists, and /name would become it"):
        converted({"name": 1, "n": 2}, NAME)
    with fails("/o", "expected an object, found a number"):
        converted({"name": 1, "o": 5}, rename((), ("o", "n"), ("name",)))
    whole = whole_body(envelope((), ("",), ("data",)))
    with fails("/data", "is missing"):
        converted({"a": 1}, whole)


@pytest.mark.parametrize(
    ("scopes", "given_value", "place"),
    [
        ((("b",),), {"b": 5}, "/b"),
        ((("b",),), {"b": [True]}, "/b/0"),
        ((("b",), ()), {"b": [[], 5]}, "/b/1"),
        ((Members(("b",)),), {"b": {"k": True}}, "/b/k"),
        ((Members(("b",)),), {"b": []}, "/b"),
        ((Inside(("b",)),), {"b": True}, "/b"),
        ((Inside(("b",)), ("c",)), {"b": {"c": 5}}, "/b/c"),
    ],
)
def test_a_value_is_refused_if_one_of_two_fused_changes_refuses_it(
    scopes: tuple[Scope, ...], given_value: Json, place: str
) -> None:
    """The two changes are fused, because they apply to the same objects. Only one is lenient."""
    tolerant, refusing = (
        VersionLink(Version(1, "1"), Version(2, "2"), changes)
        for changes in (keeping(retype(scopes, ("a",), *TYPES)), (retype(scopes, ("z",), *TYPES),))
    )
    for links in ((tolerant, refusing), (refusing, tolerant)):
        with pytest.raises(ConversionError) as caught:
            BodyConversion(links, Direction.UP, of_request=True).convert(given_value, PLAIN)
        assert caught.value.pointer == place
    alone = BodyConversion((tolerant,), Direction.UP, of_request=True)
    assert alone.convert(given_value, PLAIN) is not None


def test_the_error_for_a_forwarded_value_names_its_location_in_the_request() -> None:
    refusing = VersionLink(Version(1, "1"), Version(2, "2"), (retype((), ("o", "a"), *TYPES),))
    tolerant = VersionLink(Version(1, "1"), Version(2, "2"), keeping(INTO))
    upgrade = BodyConversion((tolerant, refusing), Direction.UP, of_request=True)
    with fails("/p", "expected an object, found a boolean"):
        upgrade.convert({"p": True}, PLAIN)
    with fails("/p/name/a", "expected a numeric string, found another string"):
        converted_twice = replace(refusing, changes=(retype((), ("o", "n", "a"), *TYPES),))
        BodyConversion((tolerant, converted_twice), Direction.UP, of_request=True).convert(
            {"p": {"name": {"a": "x"}}}, PLAIN
        )


def test_an_invalid_value_in_a_response_is_refused() -> None:
    with fails("/a", "expected a numeric string, found another string"):
        converted({"a": "x"}, NUMBER, of_request=False)


def test_a_downgrade_also_forwards_invalid_values_unchanged() -> None:
    change = keeping_unfit(NUMBER)
    assert (change.scopes, change.touches) == ((), (("a",),))
    assert change.for_patch() == change
    assert change.up.origin(("a",)) == ("a",)
    for given_value, made in ((5, "5"), ("x", "x")):
        fields: Json = {"a": given_value}
        change.down.step(fields, PLAIN)
        assert fields == {"a": made}


def test_a_group_in_a_patch_also_forwards_invalid_values_unchanged() -> None:
    group = keeping_unfit(GroupUse("item", ((),), GROUPS).compile()).for_patch()
    fields: Json = {"a": "x", "name": 1}
    group.up.step(fields, PLAIN)
    assert fields == {"a": "x", "n": 1}


@LAW
@given(jsons)
def test_an_object_is_restored_if_a_change_inside_it_fails(value: Json) -> None:
    """This includes objects on the path that the change has already opened."""
    deep = scale((), ("m", "b", "a"), 2, Type.TEXT)
    fields: Json = {"m": {"b": {"a": value}, "c": [1]}}
    keeping_unfit(deep).up.step(fields, PLAIN)
    expected = value if value is None or type(value) is not str else fields["m"]["b"]["a"]
    assert fields == {"m": {"b": {"a": expected}, "c": [1]}}


@st.composite
def misfits(draw: st.DrawFn) -> tuple[Json, list[Change]]:
    body = draw(bodies)
    document: Json = body
    chain: list[Change] = []
    for _ in range(draw(st.integers(1, 4))):
        change, _ = draw(changes(document))
        with suppress(ConversionError):
            document = up(change, document)
            chain.append(change)
    given_body = deepcopy(body)
    holder, key = draw(st.sampled_from([*holders(given_body)]))
    holder[key] = draw(st.sampled_from([5, 1.5, "x", None, [], {}, [5], {"a": 5}]))
    return given_body, chain


def holders(value: Json) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from holders(inner)


@settings(LAW, max_examples=100)
@given(misfits(), st.sampled_from([(True, True), (True, False), (False, True)]), st.integers(0, 4))
def test_valid_values_are_converted_the_same_with_and_without_unfit_keep(
    case: tuple[Json, list[Change]], keeps: tuple[bool, bool], cut: int
) -> None:
    body, chain = case

    def made(form: JsonForm, *keep: bool) -> Json:
        versions = pairwise((Version(1, "1"), Version(2, "2"), Version(3, "3")))
        links = tuple(
            VersionLink(*pair, keeping(*part) if keeps_unfit else tuple(part))
            for pair, part, keeps_unfit in zip(
                versions, (chain[:cut], chain[cut:]), keep, strict=True
            )
        )
        upgrade = BodyConversion(links, Direction.UP, of_request=True)
        try:
            return unsealed(upgrade.convert(seal(body) if form is SEALED else deepcopy(body), form))
        except ConversionError as error:
            return error

    converted, strict = made(PLAIN, *keeps), made(PLAIN, False, False)
    assert str(converted) == str(made(SEALED, *keeps))
    assert isinstance(strict, ConversionError) or converted == strict


def whole(text: str) -> str:
    return str(int(text))


REWRITTEN = rewritten("a", whole, lambda text: str(Decimal(int(text))))
MONEY = money_parameter("a", "c")


@pytest.mark.parametrize(
    ("change", "older", "newer"),
    [
        (REWRITTEN, "a=x&b=1", "a=x&b=1"),
        (REWRITTEN, "a=01", "a=1"),
        (inverse_parameter(REWRITTEN), "a=x", "a=x"),
        (parameter_sequence(*(rename_parameter("a", "z"), REWRITTEN)), "z=x", "a=x"),
        (MONEY, "a=1.50", "a=1.50"),
        (MONEY, "a=1.50&c=EUR", "a=150&c=EUR"),
    ],
)
def test_an_invalid_parameter_is_forwarded_unchanged_in_an_upgrade(
    change: ParameterChange, older: str, newer: str
) -> None:
    up = change.keeping_unfit().up(parse_query(older), QUERY)
    assert write_query(up) == newer


def test_an_invalid_parameter_is_forwarded_unchanged_in_a_downgrade() -> None:
    change = REWRITTEN.keeping_unfit()
    for given_value, made in (("a=x", "a=x"), ("a=01", "a=1")):
        assert write_query(change.down(parse_query(given_value), QUERY)) == made


def paging(page: PagingForm, offset: PagingForm, usual: int | None) -> ParameterChange:
    return recombined(
        offset.names,
        page.names,
        rewrite_pages(page, offset, usual),
        rewrite_pages(offset, page, usual),
        (move_unfit(page, offset), move_unfit(offset, page)),
    ).keeping_unfit()


def test_invalid_paging_parameters_are_forwarded_under_the_names_of_the_service() -> None:
    page, offset = PagingForm("page", "size", 1), PagingForm("offset", "limit")
    change = paging(page, offset, 20)
    for older, newer in (
        ("page=2", "offset=20"),
        ("page=x&size=5", "offset=x&limit=5"),
        ("page=", "offset="),
        ("page=-3", "offset=-3"),
        ("page=0&size=5", "offset=-1&limit=5"),
        ("page=0&size=x", "offset=0&limit=x"),
        ("page=2&size=0", "offset=0&limit=0"),
    ):
        assert write_query(change.up(parse_query(older), QUERY)) == newer
    assert write_query(change.down(parse_query("offset=y"), QUERY)) == "page=y"
    with pytest.raises(ConversionError):
        change.up(parse_query("size=1&size=2"), QUERY)
    with pytest.raises(ConversionError, match="has no page size"):
        paging(page, offset, None).up(parse_query("page=2"), QUERY)
    with pytest.raises(ConversionError, match="begins within a page"):
        change.down(parse_query("offset=5&limit=20"), QUERY)


@pytest.mark.parametrize(
    "change", [rename_parameter("a", "b"), recombined(("a",), ("b", "c"), dict, dict)]
)
def test_a_change_that_only_renames_parameters_has_no_lenient_variant(
    change: ParameterChange,
) -> None:
    assert change.keeping_unfit() is change


@pytest.mark.parametrize(
    ("written", "given", "expected"),
    [
        ("envelope: { into: data }", {"data": [1]}, [1]),
        ("envelope: { into: data }", {"x": 1}, {"x": 1}),
        ("envelope: { into: data }", [1], [1]),
        ("wrap: { many: refuse }", [5], 5),
        ("wrap: { many: refuse }", [5, 6], [5, 6]),
        ("extract: { key: data }", [1], {"data": [1]}),
        ('type: { field: "[]", newer: number, older: text }', ["1"], [1]),
        ('type: { field: "[]", newer: number, older: text }', {"a": "1"}, {"a": "1"}),
    ],
)
def test_a_whole_body_change_leaves_stream_documents_of_another_shape_unchanged(
    written: str, given: Json, expected: Json
) -> None:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (NAME, change_of(written)))
    conversion = BodyConversion((link,), Direction.UP)
    assert conversion.of_documents.convert(given, PLAIN) == expected
    assert conversion.of_documents.of_documents is conversion.of_documents


def test_a_stream_without_whole_body_changes_is_converted_like_a_body() -> None:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (NAME, whole_body(NUMBER)))
    for one in (link, replace(link, changes=(NAME,))):
        conversion = BodyConversion((one,), Direction.UP)
        assert conversion.of_documents is conversion
