"""PyGithub and Octokit use the older version of GitHub's API at a service of the newer one."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.comparison import Client, Comparison, Results, compare
from tests.clients.github_api import NEWER, OLDER, GitHub, GitHubByMediaType

RULES = Path(__file__).with_name("github.yaml").read_text()
PYGITHUB = Client("pygithub.py")
OCTOKIT = Client("octokit.mjs", "node")
# Each client with its arguments after the mechanism and the version.
CLIENTS: dict[str, tuple[Client, *tuple[str, ...]]] = {
    "PyGithub": (PYGITHUB,),
    "PyGithub 1, without a version": (Client("pygithub.py", "pygithub-1"),),
    "Octokit": (OCTOKIT, "@octokit/rest"),
    "Octokit 18": (OCTOKIT, "octokit-18"),
}


class Change(NamedTuple):
    """A breaking change of GitHub's list, and the calls that see it."""

    title: str
    calls: tuple[str, ...]


DECLARED = [
    Change("rate is removed", ("rate limit",)),
    Change("permission is removed from new teams", ("create a team",)),
    Change("submodules of a folder have the type submodule", ("folder", "submodule", "contents")),
    Change("SARIF has another content type", ("analysis",)),
    Change("use_squash_pr_title_as_default is removed", ("get", "squash")),
    Change("authorizations_url and hub_url are removed", ("root",)),
    Change("the beta media type is removed", ("beta", "beta, emails")),
    Change("204 becomes 202 for deleted installations", ("delete an installation",)),
    Change("custom_link_enabled is removed", ("organization", "update an organization")),
    Change("has_downloads is removed", ("get", "list", "squash", "check suite")),
    Change("422 becomes 451 for new repositories", ("create a repository",)),
    Change("403 becomes 451 for deleted organizations", ("delete an organization",)),
    Change("403 becomes 451 for removed members", ("remove a member",)),
    Change("cvss_severities replace cvss", ("advisories",)),
    Change("204 becomes 200 for a workflow dispatch", ("dispatch",)),
    Change(
        "assignee is removed",
        ("list in pages", "update", "assign", "unassign", "assign a new one", "events", "search"),
    ),
    Change("selected_repository_ids are integers", ("secret",)),
]
# The newer version does not have the data, and a conversion sends no requests of its own.
IMPOSSIBLE = [
    Change("merge_commit_sha is removed", ("pull", "pulls")),
    Change("bundle is removed from attestations", ("attestations",)),
    Change("/hub is removed", ("hub",)),
]
BY_ACCEPT = """
services: { github: { targets: ["${SERVICE}"] } }
apis:
  github:
    default_version: "3"
    endpoints:
      - path: "/{rest*}"
        version:
          - { in: accept, media_type: "application/vnd.github.v{version}+json" }
          - { in: accept, media_type: "application/vnd.github.v{version}.raw+json" }
          - { in: accept, media_type: "application/vnd.github.v{version}.raw" }
    versions: { "3": { via: "4" }, "4": { service: github } }
    media_types:
      application/vnd.github.v4.raw+json: pass
      application/vnd.github.v4.raw: pass
      application/vnd.github.raw: pass
"""
OF_MEDIA_TYPE = """
      - between: ["3", "4"]
        on: responses
        statuses: [4xx]
        headers:
          - map:
              field: X-GitHub-Media-Type
              values: { "github.v4; format=json": "github.v3; format=json" }
              unknown: keep
"""
REFUSED = {"create, invalid", "missing", "missing path"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Comparison]:
    """Run each client once for each version, which it names in a header field."""

    @cache
    def of_client(name: str, version: str) -> Comparison:
        client, *arguments = CLIENTS[name]
        folder = tmp_path_factory.mktemp("client")
        services = GitHub(), GitHub()
        return compare(folder, RULES, services, client, "header", version, *arguments)

    return of_client


@pytest.fixture(scope="module")
def unconverted() -> Results:
    """Return the results of an old client at a service that has only the newer version."""
    with GitHub(only=NEWER).serve() as base:
        return PYGITHUB.run(base, "header", OLDER)


@pytest.mark.parametrize("change", DECLARED, ids=[change.title for change in DECLARED])
def test_an_old_client_does_not_see_the_change(
    change: Change, found: Callable[[str, str], Comparison], unconverted: Results
) -> None:
    results = found("PyGithub", OLDER)
    for call in change.calls:
        assert results.through[call] == results.direct[call]
    assert any(unconverted[call] != results.direct[call] for call in change.calls)


@pytest.mark.parametrize("name", CLIENTS)
def test_every_call_returns_what_the_service_of_the_older_version_returns(
    name: str, found: Callable[[str, str], Comparison]
) -> None:
    results = found(name, OLDER)
    assert set(results.different) == {call for change in IMPOSSIBLE for call in change.calls}
    assert results.raised >= REFUSED
    assert {one.headers.get("x-github-api-version") for one in results.requests} == {NEWER}


def test_a_removed_value_is_null_if_the_older_version_allows_it(
    found: Callable[[str, str], Comparison],
) -> None:
    results = found("PyGithub", OLDER)
    direct, through = (one["pull"]["data"] for one in (results.direct, results.through))
    assert through == {**direct, "merge_commit_sha": None}


@pytest.mark.parametrize("name", ["PyGithub", "Octokit", "Octokit 18"])
def test_a_client_of_the_newer_version_is_not_converted(
    name: str, found: Callable[[str, str], Comparison]
) -> None:
    results = found(name, NEWER)
    assert results.different == {}
    assert results.altered == set()


@pytest.mark.parametrize("version", ["3", "4"])
@pytest.mark.parametrize("name", ["PyGithub", "Octokit"])
def test_every_call_by_media_type_returns_what_the_service_of_the_version_returns(
    name: str, version: str, tmp_path: Path
) -> None:
    # No version is added to an Accept header without one, so the service needs a default version.
    groups_and_conversions = RULES[RULES.index("    groups:") :].replace(
        f'["{OLDER}", "{NEWER}"]', '["3", "4"]'
    )
    rules = BY_ACCEPT + groups_and_conversions + OF_MEDIA_TYPE
    services = GitHubByMediaType(OLDER), GitHubByMediaType(NEWER)
    client, *arguments = CLIENTS[name]
    found = compare(tmp_path, rules, services, client, "accept", version, *arguments)
    lost = {call for change in IMPOSSIBLE for call in change.calls if version == "3"}
    assert set(found.different) == lost
    assert not any(".v3" in request.headers["accept"] for request in found.requests)
