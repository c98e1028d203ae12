"""Calls the GitHub API with PyGithub: `pygithub.py BASE_URL (header|accept) VERSION`."""

import inspect
import json
import sys
from typing import Any

import github

from tests.clients.calls.report import report

BASE, MECHANISM, VERSION = sys.argv[1:]
BY_HEADER = MECHANISM == "header"
# PyGithub 1 has none of these options.
options = {"seconds_between_requests": 0, "seconds_between_writes": 0, "api_version": VERSION}
known = inspect.signature(github.Github).parameters
given = {name: value for name, value in options.items() if name in known}
if not BY_HEADER:
    del given["api_version"]
client = github.Github(base_url=BASE, per_page=2, retry=None, **given)
# PyGithub sends this media type for some calls, such as those for check suites.
ACCEPT = {} if BY_HEADER else {"Accept": f"application/vnd.github.v{VERSION}+json"}
repo = client.get_repo("alice/hello")
requester = repo._requester


def ask(method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    found, data = requester.requestJsonAndCheck(
        method, path, headers={**ACCEPT, **named}, input=body
    )
    names = (
        *("content-type", "link", "location", "x-github-media-type"),
        "x-github-api-version-selected",
    )
    return {"data": data, **{name: found[name] for name in names if name in found}}


def unchanged() -> dict[str, Any]:
    found, _ = requester.requestJsonAndCheck("GET", "/repos/alice/hello", headers={**ACCEPT})
    status, headers, body = requester.requestJson(
        "GET", "/repos/alice/hello", headers={**ACCEPT, "If-None-Match": found["etag"]}
    )
    return {"status": status, "same tag": headers["etag"] == found["etag"], "body": body}


def raw(path: str, media_type: str) -> dict[str, Any]:
    """Return the raw content of a file; PyGithub returns bodies that are not JSON as strings."""
    status, headers, body = requester.requestJson(
        "GET", f"/repos/alice/hello/contents/{path}", headers={"Accept": media_type}
    )
    return {"status": status, "type": headers.get("content-type"), "body": body}


def update_issue() -> Any:
    issue = repo.get_issue(1)
    issue.edit(title="Edited", body="zwölf", assignees=["dave"])
    first = issue.assignee and issue.assignee.login  # 2026-03-10 has only the list
    return [issue.title, issue.body, first, [one.login for one in issue.assignees]]


OLDER = VERSION in ("2022-11-28", "3")
BETA = "application/vnd.github.beta+json"
LINK = "secret_scanning_push_protection_custom_link"


def form(older: Any, newer: Any) -> Any:
    """Return the parameters of a request in the form of this version."""
    return older if OLDER else newer


def assigned(login: str | None) -> dict[str, Any]:
    return form({"assignee": login}, {"assignees": [login] if login else []})  # type: ignore[no-any-return]


def squashed() -> dict[str, Any]:
    newer = {"squash_merge_commit_title": "COMMIT_OR_PR_TITLE"}
    return form({"use_squash_pr_title_as_default": False, "has_downloads": True}, newer)  # type: ignore[no-any-return]


def status(method: str, path: str, body: Any = None) -> Any:
    found, _, text = requester.requestJson(method, path, headers={**ACCEPT}, input=body)
    return {"status": found, "body": json.loads(text or "null")}


VERSIONED = "" if BY_HEADER else f"v{VERSION}."
report(
    {
        "get": lambda: client.get_repo("alice/hello").raw_data,
        "get, whole": lambda: ask("GET", "/repos/alice/hello"),
        "get a renamed one": lambda: client.get_repo("alice/old").raw_data,
        "list": lambda: ask("GET", "/orgs/acme/repos"),
        "list in pages": lambda: [issue.raw_data for issue in repo.get_issues()],
        "list, whole page": lambda: ask("GET", "/repos/alice/hello/issues?per_page=2&page=2"),
        "create": lambda: repo.create_issue("New", body="line\nline", assignees=["erin"]).raw_data,
        "create, whole": lambda: ask("POST", "/repos/alice/hello/issues", {"title": "Newer"}),
        "create, invalid": lambda: repo.create_issue("").raw_data,
        "update": update_issue,
        "update a repository": lambda: ask("PATCH", "/repos/alice/hello", {"description": None}),
        "lock": lambda: repo.get_issue(1).lock("resolved"),
        "missing": lambda: repo.get_issue(99).raw_data,
        "missing path": lambda: ask("GET", "/nothing/here"),
        "not modified": unchanged,
        "contents": lambda: repo.get_contents("README.md").decoded_content,
        "contents of JSON": lambda: repo.get_contents("package.json").decoded_content,
        "folder": lambda: [one.raw_data for one in repo.get_contents("")],
        "submodule": lambda: repo.get_contents("lib").raw_data,
        "raw": lambda: raw("README.md", f"application/vnd.github.{VERSIONED}raw+json"),
        "raw JSON": lambda: raw("package.json", f"application/vnd.github.{VERSIONED}raw+json"),
        "raw, short type": lambda: raw("README.md", f"application/vnd.github.{VERSIONED}raw"),
        "create a file": lambda: repo.create_file("new.txt", "Add", "text")["content"].raw_data,
        "check suite": lambda: repo.get_check_suite(9).raw_data,
        "rate limit": lambda: client.get_rate_limit().raw_data,
        "create a team": lambda: (
            ask("POST", "/orgs/acme/teams", {"name": "T", "permission": "push"})
            if OLDER
            else ask("POST", "/orgs/acme/teams", {"name": "T"})
        ),
        "assign": lambda: ask("PATCH", "/repos/alice/hello/issues/2", assigned("bob")),
        "unassign": lambda: ask("PATCH", "/repos/alice/hello/issues/2", assigned(None)),
        "assign a new one": lambda: ask(
            "POST", "/repos/alice/hello/issues", {"title": "Newest", **assigned("bob")}
        ),
        "squash": lambda: ask("PATCH", "/repos/alice/hello", squashed()),
        "events": lambda: ask("GET", "/events"),
        "search": lambda: [issue.raw_data for issue in client.search_issues("two")],
        "pulls": lambda: ask("GET", "/repos/alice/hello/pulls"),
        "pull": lambda: ask("GET", "/repos/alice/hello/pulls/1"),
        "dispatch": lambda: status(
            "POST", "/repos/alice/hello/actions/workflows/ci/dispatches", {"ref": "main"}
        ),
        "analysis": lambda: ask(
            "GET", "/repos/alice/hello/code-scanning/analyses/4", Accept="application/sarif+json"
        ),
        "attestations": lambda: ask("GET", "/repos/alice/hello/attestations/sha256:1"),
        "organization": lambda: ask("GET", "/orgs/acme"),
        "update an organization": lambda: ask(
            "PATCH", "/orgs/acme", {LINK: None, **form({f"{LINK}_enabled": False}, {})}
        ),
        "delete an organization": lambda: status("DELETE", "/orgs/acme"),
        "remove a member": lambda: status("DELETE", "/orgs/acme/members/bob"),
        "create a repository": lambda: status("POST", "/orgs/acme/repos", {"name": "new"}),
        "secret": lambda: status(
            "PUT",
            "/orgs/acme/dependabot/secrets/KEY",
            {"selected_repository_ids": form(["1", 2], [1, 2])},
        ),
        "delete an installation": lambda: status("DELETE", "/app/installations/5"),
        "advisories": lambda: ask("GET", "/advisories"),
        "root": lambda: ask("GET", "/"),
        "beta": lambda: ask("GET", "/repos/alice/hello", Accept=BETA),
        "beta, emails": lambda: ask("GET", "/user/emails", Accept=BETA),
        "hub": lambda: status("POST", "/hub"),
        "delete": lambda: repo.delete(),
    }
)
