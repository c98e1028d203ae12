"""Drafts are checked like the configuration file, but run no new code."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil
import pytest

from gateway.rules import draft as draft_module
from gateway.rules.draft import MAX_BYTES, check_apart, check_draft
from tests.gateway.kit import DEADLINE, rules

IN_FORCE = rules(1).encode()


def test_a_valid_draft_has_a_summary_and_warnings(tmp_path: Path) -> None:
    report = check_draft(rules(2, via=True).encode(), IN_FORCE, {}, tmp_path)
    assert report.mistakes == []
    assert report.summary == "1 service, 6 endpoints"
    assert "lossy" in report.warnings[0].text


def test_a_mistake_in_a_draft_has_its_line(tmp_path: Path) -> None:
    draft = rules(2).replace("service: s }", "service: gone }")
    report = check_draft(draft.encode(), IN_FORCE, {}, tmp_path)
    mistake = report.mistakes[0]
    assert (mistake.line, mistake.text) == (16, "no service is called 'gone'; known: s")
    assert report.summary == ""


def test_a_draft_that_is_not_yaml_has_one_mistake(tmp_path: Path) -> None:
    (mistake,) = check_draft(b"apis: ]", IN_FORCE, {}, tmp_path).mistakes
    assert mistake.line == 1


def test_a_draft_does_not_import_functions_that_are_not_in_force(tmp_path: Path) -> None:
    (tmp_path / "told_by_a_draft.py").write_text("def up(value): return value\n")
    change = "- python: { field: a, up: 'told_by_a_draft:up', down: 'told_by_a_draft:up' }"
    draft = rules(1, changes=change, via=True).encode()
    report = check_draft(draft, IN_FORCE, {}, tmp_path)
    assert [each.place[-2:] for each in report.mistakes] == ["up", "wn"]
    assert "a draft runs no other" in report.mistakes[0].text
    assert "told_by_a_draft" not in sys.modules
    assert check_draft(draft, draft, {}, tmp_path).mistakes == []


def test_the_report_of_a_draft_contains_no_values_of_variables(tmp_path: Path) -> None:
    draft = rules(1).replace("service: s }", 'service: "${PASSWORD}" }')
    report = check_draft(draft.encode(), IN_FORCE, {"PASSWORD": "hunter2"}, tmp_path)
    assert report.mistakes
    assert "hunter2" not in repr(report)


def test_a_draft_that_is_too_large_is_refused(tmp_path: Path) -> None:
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
def test_an_endless_file_that_a_draft_names_is_refused(named: str, tmp_path: Path) -> None:
    draft = f"{named}\n{rules(1)}"
    if not named:
        draft = draft.replace('"1": { service: s', '"1": { schema: /dev/zero, service: s')
    (mistake,) = check_draft(draft.encode(), IN_FORCE, {}, tmp_path).mistakes
    assert "not a regular file" in mistake.text


PROCESS_RULES = rules(1).encode()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow more than 10 s for a check, since a busy machine starts processes slowly."""
    monkeypatch.setattr(draft_module, "SECONDS", int(DEADLINE))


def versions_at_endpoints(each: int) -> bytes:
    """Return a small configuration whose number of routes is the square of `each`."""
    versions = ", ".join(f'"{number}": {{ service: s }}' for number in range(1, each + 1))
    endpoints = "\n".join(
        f'      - {{ path: "/{number}/v{{version}}", version: {{ in: path }} }}'
        for number in range(each)
    )
    return f"""
services: {{ s: {{ targets: ["http://h:1"] }} }}
apis:
  a:
    versions: {{ {versions} }}
    endpoints:
{endpoints}
""".encode()


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize(
    "draft",
    [
        rules(2, via=True).encode(),
        rules(2).replace("service: s }", "service: gone }").encode(),
        rules(1).replace("service: s }", 'service: "${NAME}" }').encode(),
        b"apis: ]",
        b"\xff",
    ],
    ids=["warning", "mistake", "variable", "not YAML", "not UTF-8"],
)
async def test_the_child_process_returns_the_same_report_as_check_draft(
    draft: bytes, tmp_path: Path
) -> None:
    environment: Mapping[str, str] = {"NAME": "s"}
    report = await check_apart(draft, PROCESS_RULES, environment, tmp_path)
    assert report == check_draft(draft, PROCESS_RULES, environment, tmp_path)


async def test_output_of_imported_modules_does_not_change_the_report(tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text("print('hello')\ndef up(value): return value\n")
    change = "- python: { field: a, up: 'chatty:up', down: 'chatty:up' }"
    draft = rules(1, changes=change, via=True).encode()
    assert (await check_apart(draft, draft, {}, tmp_path)).mistakes == []


async def test_a_slow_check_is_stopped_and_its_process_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(draft_module, "SECONDS", 2)
    draft = versions_at_endpoints(3000)
    assert len(draft) < 256 * 1024
    async with asyncio.timeout(60):
        (mistake,) = (await check_apart(draft, PROCESS_RULES, {}, tmp_path)).mistakes
    assert "takes more than 2 s or 512 MiB" in mistake.text
    running = psutil.Process().children()
    assert not [each for each in running if draft_module.__name__ in each.cmdline()]


def test_the_process_of_a_check_ends_even_if_the_gateway_was_killed(tmp_path: Path) -> None:
    """The module sleeps, so a limit on processor time would not stop the process."""
    (tmp_path / "waiting.py").write_text("import time\ntime.sleep(3600)\n")
    change = "- python: { field: a, up: 'waiting:up', down: 'waiting:up' }"
    content = rules(1, changes=change, via=True).encode()
    draft = draft_module._Draft(content, content, {}, str(tmp_path))
    alone = "from gateway.rules import draft as it; it.SECONDS = 1; it._main()"
    given = msgspec.msgpack.encode(draft)
    done = subprocess.run([sys.executable, "-c", alone], input=given, check=False, timeout=DEADLINE)
    assert done.returncode == -signal.SIGALRM


async def test_a_draft_is_refused_if_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))
    (mistake,) = (await check_apart(PROCESS_RULES, PROCESS_RULES, {}, tmp_path)).mistakes
    assert mistake.text == "cannot be checked now: no such file or directory"


@pytest.mark.usefixtures("forked_processes")
async def test_the_number_of_mistakes_in_a_report_is_limited(tmp_path: Path) -> None:
    draft = "services: {" + ", ".join(f"s{number}: 1" for number in range(500)) + "}"
    assert len(check_draft(draft.encode(), PROCESS_RULES, {}, tmp_path).mistakes) > 100
    assert len((await check_apart(draft.encode(), PROCESS_RULES, {}, tmp_path)).mistakes) == 100
