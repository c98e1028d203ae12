"""`include`: each team edits its own file of a configuration."""

from pathlib import Path

import pytest

from gateway.base.mistakes import ConfigError
from gateway.rules.load import check_file, load_file, read_rules
from gateway.rules.redaction import redacted

MAIN = "include: [teams/*.yaml]\nversion_header: API-Version\n"
ORDERS = """\
---
# the team of orders
services: { orders: { targets: ["http://${ORDERS:-127.0.0.1:1}"] } }
apis:
  orders: { service: orders, endpoints: [ { path: /orders } ] }
"""
USERS = """\
services:
  users: { targets: ["http://127.0.0.1:2"] }
  # token: hunter2-hunter2
apis:
  users: { service: SERVICE, endpoints: [ { path: /users } ] }
"""


@pytest.fixture
def main(tmp_path: Path) -> Path:
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams/orders.yaml").write_text(ORDERS)
    path = tmp_path / "gateway.yaml"
    path.write_text(MAIN)
    return path


def mistakes(main: Path, added: str, name: str = "teams/added.yaml") -> str:
    (main.parent / name).write_text(added)
    with pytest.raises(ConfigError) as caught:
        load_file(main, {})
    return str(caught.value).replace(f"{main.parent}/", "")


def test_services_and_apis_of_all_files_are_served(main: Path) -> None:
    added = USERS.replace("SERVICE", "users")
    (main.parent / "teams/b.yaml").write_text(added)
    (main.parent / "teams/empty.yaml").write_text("# nothing yet\n")

    assert check_file(main, {"ORDERS": "127.0.0.1:9"})[0].summary == "2 services, 2 endpoints"


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (
            USERS.replace("SERVICE", "user"),
            "teams/added.yaml:5:12: apis.users.service: no service is called 'user'; did you mean",
        ),
        (
            "services: {}\nlimits: {}\n",
            "teams/added.yaml:2:1: an included file may only have services and apis; move the rest",
        ),
        (
            "\nservices: { orders: { targets: [] } }\n",
            "teams/orders.yaml:3:13: services.orders: occurs twice, first in line 2 of teams/added",
        ),
        ("apis: [\n", "teams/added.yaml:2:1: not YAML: while parsing a flow node"),
        (
            "apis: {}\n---\napis: {}\n",
            "teams/added.yaml:2:1: the file has a second document; keep only",
        ),
        ("- 1\n", "teams/added.yaml:1:1: an included file may only have services and apis"),
        (
            "services: { a: { targets: ['${X}'] } }",
            "teams/added.yaml:1:28: services.a.targets[0]: the",
        ),
    ],
)
def test_a_mistake_names_its_file_and_line(main: Path, added: str, expected: str) -> None:
    assert mistakes(main, added).startswith(expected)


def test_a_missing_file_and_a_pattern_without_files_are_mistakes(main: Path) -> None:
    missing = mistakes(main, "include: [teams/x.yaml]", "gateway.yaml")
    no_match = mistakes(main, "include: [y/*.yaml]", "gateway.yaml")

    assert (
        missing
        == "gateway.yaml: include[0]: 'teams/x.yaml' cannot be read: No such file or directory"
    )
    assert no_match == "gateway.yaml: include[0]: 'y/*.yaml' matches no file; add one, or remove it"


def test_secrets_in_an_included_file_are_hidden_on_the_page(main: Path) -> None:
    (main.parent / "teams/users.yaml").write_text(USERS)

    shown = redacted(read_rules(main))

    assert shown is not None
    assert "--- # file: teams/users.yaml" in shown
    assert "hunter2" not in shown
