"""Groups: what each use of one stands for, with the names that fields have from outside."""

from typing import Any

from gateway.config.changes.change_list import ChangeConfig
from gateway.config.changes.value_kinds import TEXT
from gateway.config.conversions.groups import declared_changes, endless

NODE: list[Any] = [
    {"type": {"field": "size", "newer": "number", "older": "text"}},
    {"rename": {"field": "a", "to": "b"}},
    {"python": {"up": "copy:copy", "down": "copy:copy"}},
    {"use": {"group": "node", "at": ("children[]",)}},
]


def configs(*declared: Any) -> list[ChangeConfig]:
    """Return entries of a list of changes."""
    return [ChangeConfig.model_validate(one) for one in declared]


def test_each_use_stands_for_the_changes_of_its_group() -> None:
    groups = {"node": configs(*NODE), "deep": configs({"use": {"group": "node", "at": ("x",)}})}
    entries = configs(
        {"default": {"field": "v", "value": 1}},
        {"use": {"group": "deep", "at": ("i[]", "m.*")}},
        {"use": {"group": "node"}},
        {"use": {"group": "unknown"}},
    )
    found = list(declared_changes(entries, ("here",), groups))
    assert [(one.at, one.upgrade().takes) for one in found] == [
        (("here", 0, "default"), ()),
        (("here", 1, "use"), ("i[].x.size",)),
        (("here", 1, "use"), ("i[].x.b",)),
        (("here", 1, "use"), ("i[].x",)),
        (("here", 1, "use"), ("i[].x.children[]",)),
        (("here", 1, "use"), ("m.*.x.size",)),
        (("here", 1, "use"), ("m.*.x.b",)),
        (("here", 1, "use"), ("m.*.x",)),
        (("here", 1, "use"), ("m.*.x.children[]",)),
        (("here", 2, "use"), ("size",)),
        (("here", 2, "use"), ("b",)),
        (("here", 2, "use"), ("",)),
        (("here", 2, "use"), ("children[]",)),
    ]
    assert found[1].upgrade().reads == {"i[].x.size": TEXT}
    assert found[2].upgrade().moves == {"i[].x.a": "i[].x.b"}


def test_losses_are_of_a_place() -> None:
    groups = {"item": configs({"default": {"field": "a", "value": 1}})}
    used = configs({"use": {"group": "item", "at": ("i[]",)}}, {"use": {"group": "item"}})
    losses = [loss.text for one in declared_changes(used, (), groups) for loss in one.losses()]
    assert losses == ["'a' is left out in 'i[]'", "'a' is left out"]


def test_groups_without_end() -> None:
    def use(group: str, **at: Any) -> list[ChangeConfig]:
        return configs({"use": {"group": group, **at}})

    found = endless({"a": use("b"), "b": use("a"), "c": use("a"), "d": use("d", at=("x[]",))})
    assert list(found) == ["a", "b"]
