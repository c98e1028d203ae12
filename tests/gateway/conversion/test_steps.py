"""Steps: every element that changes speak of, visited once, with the result of one by one."""

import json

import pytest

from gateway.conversion.document import PLAIN, Document, JsonForm, JsonObject, refuse
from gateway.conversion.field_path import Inside, Members
from gateway.conversion.steps import (
    ArrayStep,
    ConversionStep,
    ConversionTask,
    InsideStep,
    MembersStep,
    Steps,
    change_object,
    fuse,
)
from tests.gateway.conversion.documents import SEALED, Json, fails, seal, unsealed, untouched


def mark(fields: JsonObject, form: JsonForm) -> None:
    """Change an object so that it shows."""
    fields["seen"] = True


def marked(document: Document, scopes: list[str], form: JsonForm) -> Document:
    """Return a document with the objects marked that the scopes lead to."""
    arrays = tuple(tuple(text.split(".")) if text else () for text in scopes)
    return change_object(fuse([ConversionTask(arrays, (), mark)]), form, document)


class TestElements:
    """Every object that the scopes lead to, and what is told where one is none."""

    @pytest.mark.parametrize(
        ("document", "scopes", "after"),
        [
            ({}, [], {"seen": True}),
            ({"a": [{}]}, [], {"a": [{}], "seen": True}),
            (None, [], None),
            (None, ["a"], None),
            ({"a": [None, {}, None]}, ["a"], {"a": [None, {"seen": True}, None]}),
            (
                {"a": [None, {"b": [None, {}]}]},
                ["a", "b"],
                {"a": [None, {"b": [None, {"seen": True}]}]},
            ),
            ({"a": [{}, {"x": 1}]}, ["a"], {"a": [{"seen": True}, {"x": 1, "seen": True}]}),
            ({"a": []}, ["a"], {"a": []}),
            ({"a": None}, ["a"], {"a": None}),
            ({"x": 1}, ["a"], {"x": 1}),
            ({"d": {"a": [{}], "x": 1}}, ["d.a"], {"d": {"a": [{"seen": True}], "x": 1}}),
            ({"d": {}}, ["d.a"], {"d": {}}),
            ({"d": None}, ["d.a"], {"d": None}),
            (
                {"a": [{"b": [{}]}, {"b": None}, {}]},
                ["a", "b"],
                {"a": [{"b": [{"seen": True}]}, {"b": None}, {}]},
            ),
            ({"a": [[{}], [], None]}, ["a", ""], {"a": [[{"seen": True}], [], None]}),
            (
                {"a": [[{"b": [{}]}]]},
                ["a", "", "b"],
                {"a": [[{"b": [{"seen": True}]}]]},
            ),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_each(self, document: Json, scopes: list[str], after: Json, sealed: bool) -> None:
        given = seal(document) if sealed else document
        with untouched(document):
            result = marked(given, scopes, SEALED if sealed else PLAIN)
        assert json.dumps(unsealed(result)) == json.dumps(after)

    @pytest.mark.parametrize(
        ("document", "scopes", "at", "expected", "found"),
        [
            ([], [], "", "an object", "an array"),
            ("x", [], "", "an object", "a string"),
            (7, ["a"], "", "an object", "a number"),
            ({"a": {}}, ["a"], "/a", "an array", "an object"),
            ({"a": [{}, 1]}, ["a"], "/a/1", "an object", "a number"),
            ({"a": [None, []]}, ["a"], "/a/1", "an object", "an array"),
            ({"d": []}, ["d.a"], "/d", "an object", "an array"),
            ({"a": [{"b": [{}, True]}]}, ["a", "b"], "/a/0/b/1", "an object", "a boolean"),
            ({"a": [{"b": "x"}]}, ["a", "b"], "/a/0/b", "an array", "a string"),
            ({"a": [{}]}, ["a", ""], "/a/0", "an array", "an object"),
            ({"a": [[], ["x"]]}, ["a", ""], "/a/1/0", "an object", "a string"),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_what_is_not_what_is_declared(
        self, document: Json, scopes: list[str], at: str, expected: str, found: str, sealed: bool
    ) -> None:
        given = seal(document) if sealed else document
        with untouched(document), fails(at, f"expected {expected}, found {found}"):
            marked(given, scopes, SEALED if sealed else PLAIN)

    def test_a_change_that_fails_is_told_from_the_root(self) -> None:
        def change(fields: JsonObject, form: JsonForm) -> None:
            if "bad" in fields:
                refuse("a string", form.open(fields["bad"]), "x")

        steps = fuse([ConversionTask((("a",), ("b",)), (), change)])
        with fails("/a/0/b/1/x", "expected a string, found a number"):
            change_object(steps, PLAIN, {"a": [{"b": [{}, {"bad": 1}]}]})


class TestFuse:
    """One step for all that is to be done in one array, where the order does not matter."""

    @staticmethod
    def shape(*tasks: tuple[str, str]) -> str:
        """Fuse tasks given as scopes and touched fields; spell what comes of it."""

        def step(fields: JsonObject, form: JsonForm) -> None: ...

        def spell(steps: Steps[ConversionStep]) -> str:
            return " ".join(
                f"{'.'.join(one.keys)}{'[]' * one.depth}[{spell(one.steps)}]"
                if isinstance(one, ArrayStep)
                else "-"
                for one in steps.calls
            )

        return spell(
            fuse(
                ConversionTask(
                    tuple(tuple(s.split(".")) if s != "_" else () for s in scopes.split()),
                    tuple(tuple(t.split(".")) for t in touches.split()),
                    step,
                )
                for scopes, touches in tasks
            )
        )

    @pytest.mark.parametrize(
        ("tasks", "shape"),
        [
            ([], ""),
            ([("", "a"), ("", "a")], "- -"),
            ([("i", "a"), ("i", "a")], "i[- -]"),
            ([("i", "a"), ("", "x"), ("i", "b")], "i[- -] -"),
            ([("i", "a"), ("", "i.x"), ("i", "b")], "i[-] - i[-]"),
            ([("i", "a"), ("", "i"), ("i", "b")], "i[-] - i[-]"),
            ([("d.i", "a"), ("", "d"), ("d.i", "b")], "d.i[-] - d.i[-]"),
            ([("d.i", "a"), ("", "d.x"), ("d.i", "b")], "d.i[- -] -"),
            ([("i", "a"), ("j", "a"), ("i", "b")], "i[- -] j[-]"),
            ([("i", "a"), ("i j", "a"), ("i", "b"), ("i j", "c")], "i[- j[- -] -]"),
            ([("i", "a"), ("i j", "a"), ("i", "j"), ("i j", "c")], "i[- j[-] - j[-]]"),
            ([("i _", "a"), ("i _", "b")], "i[][- -]"),
            ([("i _", "a"), ("i", "b"), ("i _", "b")], "i[][-] i[-] i[][-]"),
        ],
    )
    def test_shape(self, tasks: list[tuple[str, str]], shape: str) -> None:
        assert self.shape(*tasks) == shape


def test_members_and_the_inside_of_an_object() -> None:
    prices, inside = Members(("p",)), Inside(("a", "b"))
    document: Json = {"p": {"x": {}, "y": None}, "a": {"b": {"c": [{}]}}}
    tasks = [
        ConversionTask((prices,), (), mark),
        ConversionTask((inside,), (), mark),
        ConversionTask((inside, ("c",)), (), mark),
        ConversionTask((prices,), (), mark),
    ]
    steps = fuse(tasks)
    assert [type(step) for step in steps.calls] == [MembersStep, InsideStep]
    assert change_object(steps, PLAIN, document) == {
        "p": {"x": {"seen": True}, "y": None},
        "a": {"b": {"c": [{"seen": True}], "seen": True}},
    }
    nothing: Json = {"p": None, "a": {"b": None}}
    assert change_object(steps, PLAIN, nothing) == nothing


def test_where_something_else_is_than_members() -> None:
    steps = fuse([ConversionTask((Members(("p",)), ()), (), mark)])
    assert change_object(steps, PLAIN, {"p": {"x": [{}]}}) == {"p": {"x": [{"seen": True}]}}
    with fails("/p", "expected an object, found an array"):
        change_object(steps, PLAIN, {"p": []})
    with fails("/p/y/0", "expected an object, found a number"):
        change_object(steps, PLAIN, {"p": {"x": None, "y": [1]}})
    one = fuse([ConversionTask((Inside(("a",)), ("b",)), (), mark)])
    with fails("/a/b", "expected an array, found an object"):
        change_object(one, PLAIN, {"a": {"b": {}}})
