"""Configured examples are converted like live bodies, and compared with the expected result."""

from pathlib import Path

import pytest

from gateway.base.mistakes import ConfigError
from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load_file

RULES = """\
services: { new: { targets: ["http://127.0.0.1:9002"] } }
apis:
  shop:
    versions: { "1": { via: "2" }, "2": { service: new } }
    endpoints: [ { path: "/v{version}/orders/{id}", version: { in: path } } ]
    conversions:
      - between: ["1", "2"]
        changes:
          - rename: { field: total, to: amount }
          - type: { field: total, newer: integer, older: text, scale: 2 }
        examples: [ EXAMPLE ]
        unfit: refuse
      - between: ["1", "2"]
        methods: [PUT]
        changes: [ { default: { field: new, value: 7 } }, { remove: { field: old, value: 1 } } ]
"""
ORDER = 'older: { amount: "12.50" }, newer: { total: 1250 }'
PUT = (
    'older: { amount: "1.00", old: 1 }, newer: { total: 100, new: 7 },'
    ' operation: "PUT /v{version}/orders/{id}"'
)
WRONG = "/v{version}/order/{id}"
UNFIT = "it does not fit: {}expected {}, found a number"


def reported(folder: Path, example: str) -> list[str]:
    path = folder / "gateway.yaml"
    path.write_text(RULES.replace("EXAMPLE", example))
    try:
        found = check_conversions(path, {}, load_file(path, {}))
        return [issue.text for issue in found if "destroys data" not in issue.text]
    except ConfigError as error:
        return [f"{issue.line}: {issue.text}" for issue in error.issues]


@pytest.mark.parametrize(
    "example",
    [
        f"{{ {ORDER} }}",
        '{ older: [{ amount: "1.00" }], newer: [{ total: 100 }] }',
        '{ older: { amount: "12.5" }, newer: { total: 1250 }, direction: up }',
        '{ older: { amount: "12.50", x: 1.10 }, newer: { total: 1250, x: 1.1 } }',
        f'{{ {ORDER}, operation: "GET /v{{version}}/orders/{{id}}" }}',
        f'{{ {ORDER}, operation: "GET /v{{version}}/orders/{{id}}", status: 201 }}',
        # The other conversion, for PUT, also applies to requests and responses.
        f"{{ {PUT} }}",
        f"{{ {PUT}, status: 200 }}",
    ],
)
def test_an_example_that_is_converted_to_its_counterpart_has_no_report(
    tmp_path: Path, example: str
) -> None:
    assert reported(tmp_path, example) == []


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (
            '{ older: { amount: "12.5" }, newer: { total: 1250 } }',
            ['converted to version 1, /amount is "12.50", and the example has "12.5"'],
        ),
        (
            "{ older: { amount: 12.5 }, newer: { total: 1250 } }",
            [
                f"converted to version 2, {UNFIT.format('/amount: ', 'a string')}",
                'converted to version 1, /amount is "12.50", and the example has 12.5',
            ],
        ),
        (
            "{ older: { a: [1, {}] }, newer: { a: [1.5, { b: 2 }] } }",
            [
                "converted to version 2, /a/* is 1, and the example has 1.5; and 1 more differ",
                "converted to version 1, /a/* is 1.5, and the example has 1; and 1 more differ",
            ],
        ),
        (
            "{ older: { a: 1 }, newer: {} }",
            [
                "converted to version 2, /a is 1, and the example has no such field",
                "converted to version 1, /a is missing, and the example has 1",
            ],
        ),
        (
            f'{{ older: {{ a: "{"x" * 300}" }}, newer: {{}}, direction: up }}',
            [f'converted to version 2, /a is "{"x" * 199}..., and the example has no such field'],
        ),
        (
            f'{{ {ORDER}, operation: "GET {WRONG}" }}',
            [f"no endpoint is called '{WRONG}'; did you mean '/v{{version}}/orders/{{id}}'?"],
        ),
        (
            f'{{ {ORDER}, operation: "GET /v{{version}}/orders/{{id}}", status: 404 }}',
            ["the conversion does not apply to it; move the example"],
        ),
        (
            f"{{ {ORDER}, status: 200 }}",
            ["is only valid for an operation; name the operation, or remove the status"],
        ),
    ],
)
def test_an_example_with_an_unexpected_result_is_reported(
    tmp_path: Path, example: str, expected: list[str]
) -> None:
    assert reported(tmp_path, example) == [f"11: {text}" for text in expected]


OPERATIONS = """\
services: { new: { targets: ["http://127.0.0.1:9002"] } }
apis:
  pay:
    upstream_path: "/{rest}"
    versions: { "1": { via: "2" }, "2": { service: new } }
    endpoints:
      - { path: "/v{version}/{rest*}", version: { in: path } }
      - { path: "/v{version}/payments", version: { in: path }, upstream_path: /payments }
      - { path: "/v{version}/pay", version: { in: path }, upstream_path: /pay }
    conversions:
      - between: ["1", "2"]
        operations:
          - { newer: POST /payments, older: POST /pay, status: { newer: 201, older: 200 } }
        statuses: [404]
        changes:
          - rename: { field: total, to: sum }
          - to_header: { field: key, header: X-Key }
          - from_query: { field: dry, parameter: dry_run }
        unfit: refuse
        examples: [ EXAMPLE ]
"""
BODIES = "older: { sum: 5 }, newer: { total: 5 }"
BESIDE = (
    "older: { sum: 5, dry: a }, older_message: { headers: { X-Key: k } },"
    " newer: { total: 5, key: k }, newer_message: { query: dry_run=a }"
)


def beside(example: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "gateway.yaml"
    path.write_text(OPERATIONS.replace("EXAMPLE", example))
    try:
        return [issue.text for issue in check_conversions(path, {}, load_file(path, {}))]
    except ConfigError as error:
        return [issue.text for issue in error.issues]


@pytest.mark.parametrize(
    "example",
    [
        f'{{ {BODIES}, operation: "POST /v{{version}}/pay" }}',
        f'{{ {BODIES}, operation: "POST /v{{version}}/payments" }}',
        f'{{ {BODIES}, operation: "POST /v{{version}}/pay", status: 201 }}',
        f'{{ {BODIES}, operation: "POST /v{{version}}/payments", status: 404 }}',
        f"{{ {BESIDE} }}",
        f'{{ {BESIDE}, operation: "POST /v{{version}}/pay" }}',
    ],
)
def test_an_example_of_a_mapped_operation_is_converted_without_a_report(
    tmp_path: Path, example: str
) -> None:
    assert beside(example, tmp_path) == []


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (
            f'{{ {BODIES}, operation: "GET /v{{version}}/pay" }}',
            ["the conversion does not apply to it; move the example"],
        ),
        (
            f'{{ {BODIES}, operation: "POST /v{{version}}/pay", status: 409 }}',
            ["the conversion does not apply to it; move the example"],
        ),
        (
            "{ older: {}, newer: { key: k }, direction: down }",
            ["converted to version 1, the header x-key is 'k', and the example has None"],
        ),
        (
            "{ older: { dry: a }, newer: {}, newer_message: { query: dry_run=b }, direction: up }",
            ["converted to version 2, the query is 'dry_run=a', and the example has 'dry_run=b'"],
        ),
    ],
)
def test_an_example_of_an_operation_with_an_unexpected_result_is_reported(
    tmp_path: Path, example: str, expected: list[str]
) -> None:
    assert beside(example, tmp_path) == expected


def test_an_example_fails_if_a_python_function_is_too_slow(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    slow = 'python: { field: a, up: "time:sleep", down: "copy:copy", timeout: 0.05 }'
    example = "{ older: { a: 2 }, newer: { a: null }, direction: up }"
    path.write_text(
        RULES.replace("rename: { field: total, to: amount }", slow).replace("EXAMPLE", example)
    )
    with pytest.raises(ConfigError) as caught:
        check_conversions(path, {}, load_file(path, {}))
    (issue,) = caught.value.issues
    assert "it does not fit: the body: the Python functions took longer than 0.05 s" in issue.text


CARDS = """\
services: { new: { targets: ["http://127.0.0.1:9002"] } }
apis:
  shop:
    versions: { "1": { via: "2" }, "2": { service: new } }
    endpoints: [ { path: "/v{version}/customers/{id}/cards", version: { in: path } } ]
    conversions:
      - between: ["1", "2"]
        changes:
          - collect: { field: "data[].owner", into: owner, keep: false, capture: id, type: number }
            allow_loss: the owner is in the path
        examples: [ { older: { data: [], owner: OWNER }, newer: { data: [] } } ]
"""


def test_a_value_of_the_path_is_1_in_an_example(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(CARDS.replace("OWNER", "1"))
    check_conversions(path, {}, load_file(path, {}))
    path.write_text(CARDS.replace("OWNER", "2"))
    with pytest.raises(ConfigError, match=r"converted to version 1, .*owner"):
        check_conversions(path, {}, load_file(path, {}))
