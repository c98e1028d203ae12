"""PyGithub and Octokit use the older version of GitHub's API at a service of the newer one."""

from pathlib import Path

import pytest

from tests.clients.comparison import Client, compare
from tests.clients.github_api import NEWER, OLDER, GitHub, GitHubByMediaType

PYGITHUB = Client("pygithub.py")
OCTOKIT = Client("octokit.mjs", "node")

# The published differences that the stand-in has. The gateway replaces the variables.
CONVERSIONS = """
    groups:
      repository:
        - remove: { field: has_downloads, value: true }
        - remove: { field: parent.has_downloads, value: true }
    conversions:
      - between: ["${OLDER}", "${NEWER}"]
        on: responses
        statuses: [4xx]
        headers:
          - map:
              field: X-GitHub-Media-Type
              values: { "github.v4; format=json": "github.v3; format=json" }
              unknown: keep
      - between: ["${OLDER}", "${NEWER}"]
        on: responses
        operations:
          - GET /repos/{owner}/{repo}
          - PATCH /repos/{owner}/{repo}
          - GET /repositories/{id}
          - GET /orgs/{org}/repos
        changes: [ { use: { group: repository } } ]
      - between: ["${OLDER}", "${NEWER}"]
        on: responses
        operations: [ "GET /repos/{owner}/{repo}/check-suites/{id}" ]
        changes: [ { use: { group: repository, at: [repository] } } ]
      - between: ["${OLDER}", "${NEWER}"]
        on: responses
        operations:
          - /repos/{owner}/{repo}/issues
          - /repos/{owner}/{repo}/issues/{number}
          - /repositories/{id}/issues
        changes:
          - python:
              up: tests.clients.functions:unchanged
              down: tests.clients.functions:first_assignee
              pure: true
      - between: ["${OLDER}", "${NEWER}"]
        on: responses
        operations: [ GET /rate_limit ]
        changes:
          - python:
              up: tests.clients.functions:unchanged
              down: tests.clients.functions:core_rate
              pure: true
      - between: ["${OLDER}", "${NEWER}"]
        on: requests
        operations: [ "POST /orgs/{org}/teams" ]
        changes: [ { remove: { field: permission } } ]
      - between: ["${OLDER}", "${NEWER}"]
        on: responses
        operations:
          - GET /repos/{owner}/{repo}/contents
          - GET /repos/{owner}/{repo}/contents/
          - GET /repos/{owner}/{repo}/contents/{path*}
        changes:
          - python:
              each: false
              up: tests.clients.functions:unchanged
              down: tests.clients.functions:submodules_as_files
              pure: true
"""
BY_HEADER = """
services: { github: { targets: ["${SERVICE}"] } }
apis:
  github:
    version_format: date
    version_header: X-GitHub-Api-Version-Selected
    default_version: 2022-11-28
    endpoints: [ { path: "/{rest*}", version: { in: header, name: X-GitHub-Api-Version } } ]
    versions: { 2022-11-28: { via: 2026-03-10 }, 2026-03-10: { service: github } }
    media_types:
      application/vnd.github.raw+json: pass
      application/vnd.github.raw: pass
      application/vnd.github.v3.raw: pass
"""
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
RAISED = {"create, invalid", "missing", "missing path"}


@pytest.mark.parametrize("version", [OLDER, NEWER])
@pytest.mark.parametrize("client", [PYGITHUB, OCTOKIT], ids=["PyGithub", "Octokit"])
def test_every_call_by_header_returns_what_the_service_of_the_version_returns(
    client: Client, version: str, tmp_path: Path
) -> None:
    rules, services = BY_HEADER + CONVERSIONS, (GitHub(), GitHub())
    labels = {"OLDER": OLDER, "NEWER": NEWER}
    found = compare(tmp_path, rules, services, client, "header", version, **labels)
    assert found.different == {}
    assert found.raised - {"not modified"} == RAISED
    assert found.altered <= {"POST /orgs/acme/teams"}
    assert {request.headers.get("x-github-api-version") for request in found.requests} == {NEWER}


@pytest.mark.parametrize("version", ["3", "4"])
@pytest.mark.parametrize("client", [PYGITHUB, OCTOKIT], ids=["PyGithub", "Octokit"])
def test_every_call_by_media_type_returns_what_the_service_of_the_version_returns(
    client: Client, version: str, tmp_path: Path
) -> None:
    # No version is added to an Accept header without one, so the service needs a default version.
    rules, services = BY_ACCEPT + CONVERSIONS, (GitHubByMediaType(OLDER), GitHubByMediaType(NEWER))
    labels = {"OLDER": "3", "NEWER": "4"}
    found = compare(tmp_path, rules, services, client, "accept", version, **labels)
    assert found.different == {}
    assert found.raised - {"not modified"} == RAISED
    assert found.altered <= {"POST /orgs/acme/teams"}
    assert not any(".v3" in request.headers["accept"] for request in found.requests)
