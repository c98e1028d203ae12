"""Draft: checked as a file is, without running what it names."""

import sys
from pathlib import Path

import pytest

from gateway.rules.draft import MAX_BYTES, check_draft
from tests.gateway.kit import rules

IN_FORCE = rules(1).encode()


def test_one_that_can_be_used(tmp_path: Path) -> None:
    report = check_draft(rules(2, via=True).encode(), IN_FORCE, {}, tmp_path)
    assert report.mistakes == []
    assert report.summary == "1 service, 6 endpoints"
    assert "lossy" in report.warnings[0].text


def test_mistakes_have_their_lines(tmp_path: Path) -> None:
    draft = rules(2).replace("service: s }", "service: gone }")
    report = check_draft(draft.encode(), IN_FORCE, {}, tmp_path)
    mistake = report.mistakes[0]
    assert (mistake.line, mistake.text) == (16, "no service is called 'gone'; known: s")
    assert report.summary == ""


def test_what_is_not_yaml(tmp_path: Path) -> None:
    (mistake,) = check_draft(b"apis: ]", IN_FORCE, {}, tmp_path).mistakes
    assert mistake.line == 1


def test_it_runs_no_code(tmp_path: Path) -> None:
    """A function is named that the rules in force do not name: its module is not imported."""
    (tmp_path / "told_by_a_draft.py").write_text("def up(value): return value\n")
    change = "- python: { field: a, up: 'told_by_a_draft:up', down: 'told_by_a_draft:up' }"
    draft = rules(1, changes=change, via=True).encode()
    report = check_draft(draft, IN_FORCE, {}, tmp_path)
    assert [each.place[-2:] for each in report.mistakes] == ["up", "wn"]
    assert "a draft runs no other" in report.mistakes[0].text
    assert "told_by_a_draft" not in sys.modules
    assert check_draft(draft, draft, {}, tmp_path).mistakes == []


def test_secrets_are_not_told(tmp_path: Path) -> None:
    draft = rules(1).replace("service: s }", 'service: "${PASSWORD}" }')
    report = check_draft(draft.encode(), IN_FORCE, {"PASSWORD": "hunter2"}, tmp_path)
    assert report.mistakes
    assert "hunter2" not in repr(report)


def test_one_that_is_too_large(tmp_path: Path) -> None:
    (mistake,) = check_draft(b"#" * (MAX_BYTES + 1), IN_FORCE, {}, tmp_path).mistakes
    assert "larger than 256 KiB" in mistake.text


@pytest.mark.parametrize(
    "named",
    [
        "admin: { tokens: { ann: { right: read, token_file: /dev/zero } } }",
        "admin: { tls: { certificate: /dev/zero, key: /dev/zero } }",
        "clients: { by: [{ jwt: { claim: a, key_file: /dev/zero, algorithms: [HS256] } }] }",
        "",
    ],
    ids=["token_file", "tls", "key_file", "schema"],
)
def test_a_file_that_has_no_end_is_not_read(named: str, tmp_path: Path) -> None:
    draft = f"{named}\n{rules(1)}"
    if not named:
        draft = draft.replace('"1": { service: s', '"1": { schema: /dev/zero, service: s')
    (mistake,) = check_draft(draft.encode(), IN_FORCE, {}, tmp_path).mistakes
    assert "not a regular file" in mistake.text
