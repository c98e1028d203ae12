"""Steps: changes of elements, members and nested objects, and errors for other types of values."""

import pytest

from gateway.conversion.document import PLAIN, Document, JsonForm, JsonObject
from gateway.conversion.field_path import Inside, Members
from gateway.conversion.steps import ConversionTask, change_object, fuse
from tests.gateway.conversion.documents import SEALED, Json, fails, seal, untouched


def mark(fields: JsonObject, form: JsonForm) -> None:
    fields["seen"] = True


def marked(document: Document, scopes: list[str], form: JsonForm) -> Document:
    arrays = tuple(tuple(text.split(".")) if text else () for text in scopes)
    return change_object(fuse([ConversionTask(arrays, (), mark)]), form, document)


class TestElements:
    @pytest.mark.parametrize(
        ("document", "scopes", "at", "expected", "found"),
        [
            ([], [], "", "an object", "an array"),
            (True, [], "", "an object", "a boolean"),
            (False, ["a"], "", "an object", "a boolean"),
            ({"a": {}}, ["a"], "/a", "an array", "an object"),
            ({"a": [{}, True]}, ["a"], "/a/1", "an object", "a boolean"),
            ({"a": [None, []]}, ["a"], "/a/1", "an object", "an array"),
            ({"d": []}, ["d.a"], "/d", "an object", "an array"),
            ({"a": [{"b": [{}, True]}]}, ["a", "b"], "/a/0/b/1", "an object", "a boolean"),
            ({"a": [{"b": "x"}]}, ["a", "b"], "/a/0/b", "an array", "a string"),
            ({"a": [{}]}, ["a", ""], "/a/0", "an array", "an object"),
            ({"a": [[], [True]]}, ["a", ""], "/a/1/0", "an object", "a boolean"),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_the_error_for_a_value_of_another_type_names_its_location(
        self, document: Json, scopes: list[str], at: str, expected: str, found: str, sealed: bool
    ) -> None:
        given = seal(document) if sealed else document
        with untouched(document), fails(at, f"expected {expected}, found {found}"):
            marked(given, scopes, SEALED if sealed else PLAIN)


def test_object_members_and_nested_objects_of_another_type_are_refused() -> None:
    steps = fuse([ConversionTask((Members(("p",)), ()), (), mark)])
    assert change_object(steps, PLAIN, {"p": {"x": [{}]}}) == {"p": {"x": [{"seen": True}]}}
    with fails("/p", "expected an object, found an array"):
        change_object(steps, PLAIN, {"p": []})
    with fails("/p/y/0", "expected an object, found a boolean"):
        change_object(steps, PLAIN, {"p": {"x": None, "y": [True]}})
    one = fuse([ConversionTask((Inside(("a",)), ("b",)), (), mark)])
    with fails("/a/b", "expected an array, found an object"):
        change_object(one, PLAIN, {"a": {"b": {}}})
