"""Pick: an element of a list in the newer version is a field of the older version."""

from dataclasses import replace

import pytest

from gateway.conversion.change import inverse
from gateway.conversion.changes.pick import pick
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Number
from tests.gateway.conversion.documents import Json, both, down, fails, up

FIRST = pick((), ("emails",), ("email",), {})
MAIN = pick((), ("emails",), ("email",), {("type",): "main", ("rank", "n"): Number("1")})
ALONE = pick((), ("emails",), ("email",), {("type",): "main"}, "drop")
HOME, WORK = {"a": "h", "type": "home"}, {"a": "w", "type": "main", "rank": {"n": 1, "of": 2}}
OWN = {"a": "w", "rank": {"of": 2}}


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ({"emails": [1, 2]}, {"emails": [2], "email": 1}),
        ({"emails": [1]}, {"email": 1}),
        ({"emails": []}, {"emails": []}),
        ({"emails": None}, {"emails": None}),
        ({"emails": [None, 1]}, {"emails": [None, 1]}),
        ({}, {}),
    ],
)
def test_the_first_element_becomes_a_field_and_the_first_element_again(
    newer: Json, older: Json
) -> None:
    assert both(FIRST, newer, upwards=False) == older
    assert both(FIRST, older, upwards=True) == newer
    assert both(inverse(FIRST), newer, upwards=True) == older


@pytest.mark.parametrize(
    ("newer", "older", "back"),
    [
        ([HOME, WORK], {"emails": [HOME], "email": OWN}, [WORK, HOME]),
        ([WORK], {"email": OWN}, [WORK]),
        ([HOME], {"emails": [HOME]}, [HOME]),
        ([{**WORK, "rank": None}, "x"], {"emails": [{**WORK, "rank": None}, "x"]}, None),
        ([{**WORK, "rank": {"n": 1.0}}], {"email": {"a": "w"}}, [{**WORK, "rank": {"n": 1}}]),
    ],
)
def test_an_element_chosen_by_its_fields_lacks_these_fields_in_the_older_version(
    newer: Json, older: Json, back: Json
) -> None:
    assert both(MAIN, {"emails": newer}, upwards=False) == older
    assert both(MAIN, older, upwards=True) == {"emails": back or newer}


def test_the_other_elements_are_dropped_if_configured() -> None:
    assert both(ALONE, {"emails": [HOME, {**HOME, "type": "main"}]}, upwards=False) == {
        "email": {"a": "h"}
    }
    assert both(ALONE, {"email": {"a": "h"}}, upwards=True) == {
        "emails": [{"a": "h", "type": "main"}]
    }
    assert both(ALONE, {"emails": [HOME]}, upwards=False) == {}
    assert both(ALONE, {"emails": None}, upwards=False) == {"email": None}
    assert both(ALONE, {"email": None}, upwards=True) == {"emails": None}


def test_documents_that_do_not_fit_are_refused() -> None:
    with fails("/emails", "expected an array, found a string"):
        down(FIRST, {"emails": "x"})
    with fails("/email", "already exists, and /emails would become it"):
        down(FIRST, {"emails": [1], "email": 2})
    with fails("/emails", "expected an array, found an object"):
        up(FIRST, {"emails": {}, "email": 2})
    with fails("/email", "expected an object, found a string"):
        up(ALONE, {"email": "x"})
    with fails("/email/type", "already exists"):
        up(ALONE, {"email": {"type": "home"}})


def test_a_json_patch_of_the_element_is_refused() -> None:
    places = replace(PLAIN, of_places=True)
    for place, step in (
        ("emails", FIRST.down.step),
        ("email", FIRST.up.step),
        ("emails", FIRST.up.step),
    ):
        with pytest.raises(ConversionError, match="positions differ") as caught:
            step({place: None}, places)
        assert caught.value.pointer == f"/{place}"


def test_a_merge_patch_that_removes_the_element_is_refused() -> None:
    """The list in the newer version has other elements, which the patch lacks."""
    patch = FIRST.for_patch()
    with fails("/email", "null would remove an element of a list that the patch lacks; send a PUT"):
        up(patch, {"email": None})
    assert up(patch, {"email": None, "emails": [1]}) == {"emails": [1]}


def test_a_merge_patch_of_the_other_elements_alone_is_refused() -> None:
    """The service would replace the whole list, which also has the picked element."""
    patch = FIRST.for_patch()
    reason = "also replaces the element that is a field of its own; send both, or a PUT"
    for others in ([], [2], None):
        with fails("/emails", reason):
            up(patch, {"emails": others})
    assert up(patch, {"email": 1, "emails": [2]}) == {"emails": [1, 2]}


def test_a_merge_patch_may_remove_a_list_of_one_element() -> None:
    assert up(ALONE.for_patch(), {"email": None}) == {"emails": None}
