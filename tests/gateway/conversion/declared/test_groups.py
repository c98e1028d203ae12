"""Groups: the expansion of `use` to the changes of a group, and warnings about these changes."""

from typing import Any

import pytest

from gateway.base.mistakes import ConfigError
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.declared.groups import declared_changes, endless, listed_changes
from gateway.rules.load import check

NODE: list[Any] = [
    {"type": {"field": "size", "newer": "number", "older": "text"}},
    {"rename": {"field": "a", "to": "b"}},
    {"python": {"up": "copy:copy", "down": "copy:copy"}},
    {"use": {"group": "node", "at": ("children[]",)}},
]


def configs(*declared: Any) -> list[ChangeConfig]:
    return [ChangeConfig.model_validate(one) for one in declared]


def test_each_use_is_expanded_to_the_changes_of_its_group() -> None:
    groups = {"node": configs(*NODE), "deep": configs({"use": {"group": "node", "at": ("x",)}})}
    entries = configs(
        {"default": {"field": "v", "value": 1}},
        {"use": {"group": "deep", "at": ("i[]", "m.*")}},
        {"use": {"group": "node"}},
        {"use": {"group": "unknown"}},
    )
    found = list(declared_changes(entries, ("here",), groups, ("there",)))
    inner = [("there", "node", index, *one.named()) for index, one in enumerate(groups["node"])]
    assert [(one.used, one.at, one.field_use.takes) for one in found] == [
        ((), ("here", 0, "default"), ()),
        *(
            (("here", number, "use"), at, (f"{place}{field}".removesuffix("."),))
            for number, place in ((1, "i[].x."), (1, "m.*.x."), (2, ""))
            for at, field in zip(inner, ("size", "b", "", "children[]"), strict=True)
        ),
    ]
    assert found[0].use == ""
    assert found[1].use == " (of a group, used by here[1].use)"
    assert found[1].field_use.reads["i[].x.size"].types == {"a string"}
    assert found[2].field_use.moves == {"i[].x.a": "i[].x.b"}


def test_each_change_is_listed_once_at_the_location_of_its_declaration() -> None:
    groups = {
        "item": configs({"default": {"field": "a", "value": 1}}, {"use": {"group": "part"}}),
        "part": configs({"use": {"group": "item", "at": ("x",)}}, {"link": {"field": "u"}}),
        "idle": configs({"link": {"field": "v"}}),
    }
    used = configs(
        {"use": {"group": "item", "at": ("i[]", "j[]")}},
        {"use": {"group": "item"}},
        {"use": {"group": "unknown"}},
        {"link": {"field": "w"}},
    )
    assert [one.at for one in listed_changes(used, ("here",), groups, ("groups",))] == [
        ("here", 0, "use"),
        ("here", 1, "use"),
        ("here", 2, "use"),
        ("here", 3, "link"),
        ("groups", "item", 0, "default"),
        ("groups", "item", 1, "use"),
        ("groups", "part", 0, "use"),
        ("groups", "part", 1, "link"),
    ]


def test_a_group_that_uses_itself_for_the_same_object_is_reported_as_endless() -> None:
    def use(group: str, **at: Any) -> list[ChangeConfig]:
        return configs({"use": {"group": group, **at}})

    found = endless({"a": use("b"), "b": use("a"), "c": use("a"), "d": use("d", at=("x[]",))})
    assert list(found) == ["a", "b"]


GROUPED = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  shop:
    endpoints: [ { path: /shop, version: { in: query, name: v } } ]
    versions: { "1": { service: s }, "2": { service: s }, "3": { service: s } }
    groups:
      item: [ { default: { field: a, value: 1 } } ]
    conversions:
      - between: ["1", "2"]
        methods: [GET]
        changes: [ { use: { group: item, at: ["i[]", j] } } ]
      - { between: ["1", "2"], methods: [PUT], changes: [ { use: { group: item } } ] }
      - { between: ["2", "3"], changes: [ { use: { group: item } } ] }
"""


def test_a_lossy_change_in_a_group_gives_one_warning_for_each_pair_of_versions() -> None:
    """The warning is at the declaration of the change in the group."""
    _, warnings = check(GROUPED.encode(), "gateway.yaml", {})
    lost = [issue for issue in warnings if "lossy" in issue.text]
    assert [issue.text for issue in lost] == [
        f"warning: lossy towards version {version}: 'a' is left out" for version in (1, 2)
    ]
    assert {issue.place for issue in lost} == {"apis.shop.groups.item[0].default"}


@pytest.mark.parametrize(
    ("item", "used", "conversion", "allowed"),
    [
        ("", "", "", False),
        (", allow_loss: no use", "", "", True),
        ("", ", allow_loss: no use", "", True),
        ("", "", "allow_loss: no use, ", True),
    ],
)
def test_allow_loss_at_a_change_a_use_or_a_conversion_replaces_the_warning(
    item: str, used: str, conversion: str, allowed: bool
) -> None:
    text = f"""\
services: {{ s: {{ targets: ["http://127.0.0.1:9"] }} }}
apis:
  shop:
    endpoints: [ {{ path: /a, version: {{ in: query, name: v }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    groups: {{ item: [ {{ default: {{ field: a, value: 1 }}{item} }} ] }}
    conversions:
      - {{ between: ["1", "2"], {conversion}changes: [ {{ use: {{ group: item }}{used} }} ] }}
"""
    _, (issue,) = check(text.encode(), "gateway.yaml", {})
    assert issue.is_allowed == allowed
    lost = "lossy towards version 1: 'a' is left out"
    assert issue.text == (f"allowed: {lost} (no use)" if allowed else f"warning: {lost}")


def test_a_loss_is_a_warning_if_one_use_of_the_group_does_not_allow_it() -> None:
    text = GROUPED.replace("group: item, at", "group: item }, allow_loss: no use } ]#").replace(
        "use: { group: item } } ] }", "use: { group: item } } ] }"
    )
    _, issues = check(text.encode(), "gateway.yaml", {})
    lost = [issue.text for issue in issues if "lossy towards version 1" in issue.text]
    assert lost == [
        "warning: lossy towards version 1: 'a' is left out",
        "allowed: lossy towards version 1: 'a' is left out (no use)",
    ]


@pytest.mark.parametrize("reason", ['""', '"  "', "true", "[]"])
def test_allow_loss_needs_a_reason(reason: str) -> None:
    text = GROUPED.replace("group: item, at", f"group: item }}, allow_loss: {reason} }} ]#")
    with pytest.raises(ConfigError, match="allow_loss"):
        check(text.encode(), "gateway.yaml", {})
