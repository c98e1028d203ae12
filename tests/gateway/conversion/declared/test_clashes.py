"""Changes that do not conflict are accepted. Other tests cover the reported conflicts."""

import pytest

from tests.gateway.rules.rules import edited, loaded

JOIN = "join: { fields: [name.first, name.last], into: name }"


@pytest.mark.parametrize(
    "apart",
    [
        'methods: [GET], changes: [ *renamed ] }\n      - { between: ["1", "2"], methods: [POST]',
        'on: requests, changes: [ *renamed ] }\n      - { between: ["1", "2"], on: responses',
        'paths: [/param], changes: [ *renamed ] }\n      - { between: ["1", "2"], paths: [/header]',
        (
            "on: errors, statuses: [404], changes: [ *renamed ] }\n"
            '      - { between: ["1", "2"], on: errors, statuses: [409]'
        ),
        'on: errors, statuses: [5xx], changes: [ *renamed ] }\n      - { between: ["1", "2"]',
    ],
)
def test_conversions_without_common_messages_do_not_conflict(apart: str) -> None:
    twice = apart.replace("*renamed", "rename: { field: a, to: b }")
    text = edited("        changes:\n          - " + JOIN, "").replace(
        '- between: ["1", "2"]',
        f'- {{ between: ["1", "2"], {twice}, changes: [ rename: {{ field: a, to: b }} ] }}',
    )
    loaded(text)


@pytest.mark.parametrize(
    "fitting",
    [
        ["type: { field: a, newer: number, older: text }", "map: { field: a, values: { x: 1 } }"],
        [
            "map: { field: a, values: { A: x }, unknown: keep }",
            "map: { field: a, values: { B: y } }",
        ],
        [
            "map: { field: a, values: { A: x, C: z } }",
            "map: { field: a, values: { B: A, D: A }, back: { A: B } }",
        ],
        [
            "map: { field: a, values: { A: x } }",
            "map: { field: a, values: { B: y }, default: { newer: C } }",
        ],
        [
            "map: { field: a, values: { A: x }, back: { y: 1 } }",
            "type: { field: a, newer: boolean, older: number }",
        ],
        ["wrap: { field: a }", "type: { field: a, newer: number, older: text }"],
        ["unwrap: { field: a, many: refuse }", "wrap: { field: a, many: refuse }"],
        [
            "type: { field: a, newer: number, older: text }",
            "python: { field: a, up: 'json:loads', down: 'json:dumps' }",
            "type: { field: a, newer: number, older: text }",
        ],
        [
            "type: { field: a, newer: number, older: text }",
            "python: { up: 'json:loads', down: 'json:dumps' }",
            "type: { field: a, newer: number, older: text }",
        ],
        [
            "type: { field: a.b, newer: number, older: text }",
            "wrap: { field: a }",
            "type: { field: a.b, newer: number, older: text }",
        ],
        ["default: { field: a, value: null }", "type: { field: a, newer: number, older: text }"],
        ["join: { fields: [b, c], into: a }", "split: { field: d, into: [b, c] }"],
        ["add_value: { field: 'a[]', value: x }", "add_value: { field: 'a[]', value: y }"],
        ["remove_value: { field: a, value: x }", "remove_value: { field: a, value: y }"],
    ],
)
def test_changes_that_can_read_each_others_values_do_not_conflict(fitting: list[str]) -> None:
    loaded(edited(JOIN, "\n          - ".join(fitting)))


@pytest.mark.parametrize("change", ["add_value", "remove_value"])
def test_several_values_of_one_parameter_do_not_conflict(change: str) -> None:
    values = ", ".join(f"{{ {change}: {{ field: 'a[]', value: {one} }} }}" for one in "xy")
    loaded(edited(f"        changes:\n          - {JOIN}", f"        query: [ {values} ]"))
