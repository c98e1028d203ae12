"""The Rules view: the configuration, its latest change, mistakes, drafts and explanations."""

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import lru_cache
from typing import Any, NamedTuple

# PyYAML is a dependency of the configuration.
import yaml

from gateway.admin.explanation import Fact, example_request, facts, parse_address, parse_request
from gateway.base.dates import parse_date
from gateway.base.mistakes import Issue
from gateway.base.overrides import VersionKey
from gateway.findings.operator import Operator, Rules
from gateway.findings.refused_rules import rules_hash
from gateway.routing.snapshot import Snapshot
from gateway.rules.draft import MAX_BYTES, DraftReport, check_apart
from gateway.rules.redaction import redacted

# The maximum number of lines shown of a file or a comparison, and of issues shown for a draft.
_MOST_LINES = 2000
_MOST_ISSUES = 100


DiffLines = tuple[tuple[str, str], ...]
"""Lines of a comparison: the sign +, -, @ or a space, and the text."""


class _Mistaken(NamedTuple):
    """An issue, and the line of the file with the issue; `line` is empty if it cannot be shown."""

    issue: Issue
    line: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to explain, as entered in the form.

    Attributes:
        client: the client's name; empty to derive the name from the request.
        at: the time of the request; empty for the current time.
    """

    request: str = ""
    headers: str = ""
    client: str = ""
    peer: str = ""
    at: str = ""


async def rules_page(operator: Operator) -> Mapping[str, Any]:
    """Compute the template values in a thread, since a large configuration takes long."""
    return await asyncio.to_thread(_rules_page, operator.reloader)


def _rules_page(rules: Rules) -> Mapping[str, Any]:
    text = _shown(rules.content)
    refused = rules.refused
    return {
        "hash": rules_hash(rules.content),
        "summary": rules.latest.summary,
        "since": rules.since,
        "loaded": rules.loaded,
        # None if secrets in the configuration cannot be redacted.
        "text": None if text is None else [*enumerate(text[:_MOST_LINES], 1)],
        "more": max(len(text or ()) - _MOST_LINES, 0),
        "changes": None if rules.former is None else _changes(rules.former, rules.content),
        "refused_at": None if refused is None else refused.at,
        "mistakes": [] if refused is None else _with_lines(refused.content, [*refused.issues]),
    }


@lru_cache(maxsize=4)
def _shown(content: bytes) -> tuple[str, ...] | None:
    text = redacted(content)
    return None if text is None else tuple(text.splitlines())


@lru_cache(maxsize=2)
def _changes(before: bytes, after: bytes) -> DiffLines | None:
    former, latest = _shown(before), _shown(after)
    return None if former is None or latest is None else _diff(former, latest)


def _diff(former: Sequence[str], latest: Sequence[str]) -> DiffLines:
    found = []
    for line in unified_diff(former, latest, lineterm="", n=2):
        if line.startswith(("---", "+++")):
            continue
        found.append((line[0], line if line[0] == "@" else line[1:]))
        if len(found) == _MOST_LINES:
            break
    return tuple(found)


@lru_cache(maxsize=64)
def edit(content: bytes, key: VersionKey, add: str, drop: frozenset[str]) -> DiffLines:
    """Return how to add an entry to a version in gateway.yaml, and to remove others.

    The result is empty if the text of the version cannot be found, such as with YAML aliases.
    """
    text = "\n".join(_shown(content) or ())
    try:
        for document in yaml.compose_all(text, Loader=yaml.CSafeLoader):
            version: yaml.Node | None = document
            for name in ("apis", key[0], "versions", key[1]):
                entries = version.value if isinstance(version, yaml.MappingNode) else ()
                version = next((value for one, value in entries if one.value == name), None)
            if isinstance(version, yaml.MappingNode) and version.value:
                return _diff(text.splitlines(), _edited(text, version, add, drop).splitlines())
    except yaml.YAMLError:
        pass
    return ()


def _edited(text: str, version: yaml.MappingNode, add: str, drop: Container[str]) -> str:
    spans = []
    for name, value in version.value:
        begin, end = name.start_mark.index, value.end_mark.index
        spans.append((begin, begin + len(text[begin:end].rstrip()), name.value in drop))
    first, indent = spans[0][0], version.start_mark.column
    between = ", " if version.flow_style else f"\n{' ' * indent}"
    if not drop:
        return text[: spans[-1][1]] + between + add + text[spans[-1][1] :]
    kept = [text[begin:end] for begin, end, dropped in spans if not dropped]
    return text[:first] + between.join([add, *kept]) + text[spans[-1][1] :]


def _with_lines(content: bytes, issues: list[Issue]) -> list[_Mistaken]:
    lines = _shown(content) or ()
    return [
        _Mistaken(issue, lines[at - 1] if issue.line and 0 < at <= len(lines) else "")
        for issue in issues[:_MOST_ISSUES]
        for at in (issue.before + issue.line,)
    ]


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """`summary` has the numbers of APIs, versions and other things that the draft configures."""

    text: str = ""
    summary: str = ""
    mistakes: list[_Mistaken] = field(default_factory=list)
    warnings: list[_Mistaken] = field(default_factory=list)


# Drafts are checked one at a time, since each check occupies a processor.
_checking = asyncio.Lock()


async def checked_draft(operator: Operator, text: str) -> CheckedDraft:
    """Check a draft in a separate process. Cancelling this call also stops the check."""
    rules = operator.reloader
    content = text.replace("\r\n", "\n").encode("utf-8", "replace")[: MAX_BYTES + 1]
    async with _checking:
        report = await check_apart(content, rules.content, rules.environment, rules.folder)
    return await asyncio.to_thread(_checked, text, content, report)


def _checked(text: str, content: bytes, report: DraftReport) -> CheckedDraft:
    mistakes, warnings = (_with_lines(content, each) for each in (report.mistakes, report.warnings))
    return CheckedDraft(text, report.summary, mistakes, warnings)


def explained(operator: Operator, asked: Asked) -> list[Fact]:
    """Explain a request step by step; raises ValueError that shows a valid example."""
    lines = [line for line in asked.headers.splitlines() if line.strip()]
    head = parse_request(asked.request, lines, operator.rules)
    now = parse_date(asked.at) if asked.at else operator.state.now
    return facts(
        operator.rules,
        head,
        now,
        parse_address(asked.peer),
        asked.client or None,
        overrides=operator.state.in_force,
    )


def example(rules: Snapshot) -> Asked:
    request, headers = example_request(rules)
    return Asked(request, "\n".join(headers))


def asked(fields: Mapping[str, str]) -> Asked:
    names = ("request", "headers", "client", "peer", "at")
    return Asked(*(fields.get(name, "").strip() for name in names))
