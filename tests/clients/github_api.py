"""A stand-in for the REST API of GitHub with the breaking changes of 2026-03-10.

https://docs.github.com/en/rest/about-the-rest-api/breaking-changes
"""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from tests.clients.stand_in import Request, Response, StandIn, route

OLDER, NEWER = "2022-11-28", "2026-03-10"
DOCUMENTATION = "https://docs.github.com/rest"
FILES = {
    "README.md": b"# Hello\n",
    "package.json": b'{"type": "submodule", "has_downloads": 1.50, "type": "twice"}\n',
}


SQUASH_TITLES = {True: "PR_TITLE", False: "COMMIT_OR_PR_TITLE"}


class GitHub(StandIn):
    """Reads the version from the header X-GitHub-Api-Version."""

    def __init__(self, default: str = OLDER, only: str | None = None) -> None:
        super().__init__()
        self.default = default
        self.only = only  # whatever version a request names
        self.files = dict(FILES)
        self.repo: dict[str, Any] = {"description": "First", "has_issues": True, "stars": 2**60}
        self.repo |= {"default_branch": "main", "squash_merge_commit_title": "PR_TITLE"}
        self.link: str | None = "https://example.com/secrets"
        self.issues = [self._new_issue(number, f"Issue {number}") for number in range(1, 6)]
        self.issues[1]["assignees"] = ["bob", "carol"]

    def version(self, request: Request) -> str:
        return self.only or request.headers.get("x-github-api-version", self.default)

    def told(self, version: str) -> dict[str, str]:
        return {"X-GitHub-Api-Version-Selected": version}

    def answer(self, request: Request) -> Response:
        """Add the header fields of all responses; return 304 for a known entity tag."""
        version = self.version(request)
        if version not in (OLDER, NEWER):
            return _error(400, f"Version {version} is not supported")
        response = super().answer(request)
        headers = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999"}
        headers |= self.told(version)
        if request.method == "GET" and response.status == 200:
            body = response.body
            encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["ETag"] = '"' + hashlib.sha256(encoded).hexdigest() + '"'
            headers["Vary"] = "Accept, Authorization, Cookie, X-GitHub-OTP"
            if request.headers.get("if-none-match") == headers["ETag"]:
                return Response(304, headers=headers)
        return replace(response, headers={**headers, **response.headers})

    def missing(self, request: Request) -> Response:
        return _error(404, "Not Found")

    @route("GET", "/rate_limit")
    def rate_limit(self, request: Request) -> Response:
        core = {"limit": 5000, "used": 1, "remaining": 4999, "reset": 1790000000}
        limits = {"resources": {"core": core, "search": {**core, "limit": 30}}}
        return Response(body={**limits, "rate": core} if self.older(request) else limits)

    @route("GET", "/repos/alice/hello|/repositories/1")
    def get_repo(self, request: Request) -> Response:
        return Response(body=self._repo(request))

    @route("GET", "/repos/alice/old")
    def get_renamed_repo(self, request: Request) -> Response:
        url = f"{request.base}/repositories/1"
        body = {"message": "Moved Permanently", "url": url, "documentation_url": DOCUMENTATION}
        return Response(301, body, {"Location": url})

    @route("GET", "/orgs/acme/repos")
    def list_repos(self, request: Request) -> Response:
        return Response(body=[self._repo(request)])

    @route("POST", "/orgs/acme/repos")
    def create_repo(self, request: Request) -> Response:
        return _error(422 if self.older(request) else 451, "Trade controls apply")

    @route("PATCH", "/repos/alice/hello")
    def update_repo(self, request: Request) -> Response:
        new = request.json()
        if removed := {"has_downloads", "use_squash_pr_title_as_default"} & new.keys():
            if not self.older(request):
                return _error(422, f"Invalid properties {sorted(removed)}")
            if "use_squash_pr_title_as_default" in new:
                by_title = new.pop("use_squash_pr_title_as_default")
                new["squash_merge_commit_title"] = SQUASH_TITLES[by_title]
        self.repo.update(new)
        return Response(body=self._repo(request))

    @route("DELETE", "/repos/alice/hello")
    def delete_repo(self, request: Request) -> Response:
        return Response(204)

    @route("GET", "/repos/alice/hello/issues")
    def list_issues(self, request: Request) -> Response:
        query = dict(request.query)
        page, size = int(query.get("page", 1)), int(query.get("per_page", 30))
        issues = [self._issue(request, issue) for issue in self.issues]
        last = -(-len(issues) // size)
        links = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page == 1:
            del links["prev"], links["first"]
        if page == last:
            del links["next"], links["last"]
        link = ", ".join(
            f'<{request.base}/repositories/1/issues?per_page={size}&page={number}>; rel="{rel}"'
            for rel, number in links.items()
        )
        headers = {"Link": link} if link else {}
        return Response(body=issues[(page - 1) * size : page * size], headers=headers)

    @route("GET", "/repositories/1/issues")
    def list_issues_by_id(self, request: Request) -> Response:
        return self.list_issues(request)

    @route("POST", "/repos/alice/hello/issues")
    def create_issue(self, request: Request) -> Response:
        new = request.json()
        if not new.get("title"):
            errors = [{"resource": "Issue", "code": "missing_field", "field": "title"}]
            return _error(422, "Validation Failed", errors=errors)
        issue = self._new_issue(len(self.issues) + 1, new["title"])
        issue |= {"body": new.get("body"), "assignees": self._assignees(request, new) or []}
        self.issues.append(issue)
        body = self._issue(request, issue)
        return Response(201, body, {"Location": body["url"]})

    @route("GET", "/repos/alice/hello/issues/([0-9]+)")
    def get_issue(self, request: Request, number: str) -> Response:
        if int(number) > len(self.issues):
            return _error(404, "Not Found")
        return Response(body=self._issue(request, self.issues[int(number) - 1]))

    @route("PATCH", "/repos/alice/hello/issues/([0-9]+)")
    def update_issue(self, request: Request, number: str) -> Response:
        issue, new = self.issues[int(number) - 1], request.json()
        assignees = self._assignees(request, new)
        issue.update(new if assignees is None else {**new, "assignees": assignees})
        return Response(body=self._issue(request, issue))

    @route("PUT", "/repos/alice/hello/issues/([0-9]+)/lock")
    def lock_issue(self, request: Request, number: str) -> Response:
        self.issues[int(number) - 1]["locked"] = True
        return Response(204)

    @route("POST", "/orgs/acme/teams")
    def create_team(self, request: Request) -> Response:
        new = request.json()
        if "permission" in new and not self.older(request):
            return _error(422, "Invalid property permission")
        return Response(201, {"id": 7, "name": new["name"], "permission": "pull"})

    @route("GET", "/repos/alice/hello/contents/?(.*)")
    def get_contents(self, request: Request, path: str) -> Response:
        if path == "":
            listed = [self._file(request, name) for name in self.files]
            kind = "file" if self.older(request) else "submodule"
            return Response(body=[*listed, self._submodule(request, kind)])
        if path == "lib":
            link = {"submodule_git_url": "git://example.com/lib.git"}
            return Response(body={**self._submodule(request, "submodule"), **link})
        if path not in self.files:
            return _error(404, "Not Found")
        raw = re.search(r"application/vnd\.github\.(v[34]\.)?raw(\+json)?", self._accept(request))
        if raw:
            return Response(
                body=self.files[path], headers={"Content-Type": f"{raw[0]}; charset=utf-8"}
            )
        content = base64.b64encode(self.files[path]).decode()
        return Response(body=self._file(request, path) | {"content": content, "encoding": "base64"})

    @route("PUT", "/repos/alice/hello/contents/(.*)")
    def put_contents(self, request: Request, path: str) -> Response:
        new = request.json()
        self.files[path] = base64.b64decode(new["content"])
        commit = {"sha": "c" * 40, "message": new["message"]}
        return Response(201, {"content": self._file(request, path), "commit": commit})

    @route("GET", "/repos/alice/hello/check-suites/9")
    def get_check_suite(self, request: Request) -> Response:
        url = f"{request.base}/repos/alice/hello/check-suites/9"
        suite = {"id": 9, "url": url, "status": "queued"}
        return Response(body={**suite, "repository": self._repo(request)})

    @route("GET", "/repos/alice/hello/pulls")
    def list_pulls(self, request: Request) -> Response:
        return Response(body=[self._pull(request)])

    @route("GET", "/repos/alice/hello/pulls/1")
    def get_pull(self, request: Request) -> Response:
        return Response(body=self._pull(request))

    @route("GET", "/events")
    def list_events(self, request: Request) -> Response:
        payload = {"action": "opened", "issue": self._issue(request, self.issues[1])}
        return Response(body=[{"id": "1", "type": "IssuesEvent", "payload": payload}])

    @route("GET", "/search/issues")
    def search_issues(self, request: Request) -> Response:
        items = [self._issue(request, self.issues[1])]
        return Response(body={"total_count": 1, "incomplete_results": False, "items": items})

    @route("POST", "/repos/alice/hello/actions/workflows/ci/dispatches")
    def dispatch(self, request: Request) -> Response:
        details = request.json().pop("return_run_details", None)
        if details is not None and not self.older(request):
            return _error(422, "Invalid property return_run_details")
        run = {"workflow_run_id": 3, "run_url": f"{request.base}/repos/alice/hello/actions/runs/3"}
        return Response(204) if self.older(request) and not details else Response(200, run)

    @route("GET", "/repos/alice/hello/code-scanning/analyses/4")
    def get_analysis(self, request: Request) -> Response:
        kind = "application/json+sarif" if self.older(request) else "application/sarif+json"
        return Response(body={"version": "2.1.0", "runs": []}, headers={"Content-Type": kind})

    @route("GET", "/repos/alice/hello/attestations/sha256:1")
    def list_attestations(self, request: Request) -> Response:
        one = {"repository_id": 1, "bundle_url": "https://example.com/bundle"}
        bundle = {"bundle": {"mediaType": "application/json"}} if self.older(request) else {}
        return Response(body={"attestations": [{**one, **bundle}]})

    @route("GET", "/orgs/acme")
    def get_org(self, request: Request) -> Response:
        org: dict[str, Any] = {
            "login": "acme",
            "secret_scanning_push_protection_custom_link": self.link,
        }
        if self.older(request):
            org["secret_scanning_push_protection_custom_link_enabled"] = self.link is not None
        return Response(body=org)

    @route("PATCH", "/orgs/acme")
    def update_org(self, request: Request) -> Response:
        new = request.json()
        if "secret_scanning_push_protection_custom_link_enabled" in new and not self.older(request):
            return _error(422, "Invalid property")
        self.link = new.get("secret_scanning_push_protection_custom_link", self.link)
        return self.get_org(request)

    @route("DELETE", "/orgs/acme|/orgs/acme/members/bob")
    def refuse_by_trade_controls(self, request: Request) -> Response:
        return _error(403 if self.older(request) else 451, "Trade controls apply")

    @route("PUT", "/orgs/acme/dependabot/secrets/KEY")
    def put_secret(self, request: Request) -> Response:
        ids = request.json()["selected_repository_ids"]
        if not self.older(request) and any(isinstance(one, str) for one in ids):
            return _error(422, "selected_repository_ids has to be a list of integers")
        return Response(201, {})

    @route("DELETE", "/app/installations/5")
    def delete_installation(self, request: Request) -> Response:
        return Response(204) if self.older(request) else Response(202, {})

    @route("GET", "/advisories")
    def list_advisories(self, request: Request) -> Response:
        score = {"vector_string": "CVSS:3.1/AV:N", "score": 9.8}
        advisory = {"ghsa_id": "GHSA-1", "cvss_severities": {"cvss_v3": score, "cvss_v4": None}}
        return Response(body=[{**advisory, "cvss": score} if self.older(request) else advisory])

    @route("GET", "/")
    def get_root(self, request: Request) -> Response:
        urls = {"current_user_url": f"{request.base}/user", "emojis_url": f"{request.base}/emojis"}
        if self.older(request):
            urls |= {f"{name}_url": f"{request.base}/{name}" for name in ("authorizations", "hub")}
        return Response(body=urls)

    @route("GET", "/user/emails")
    def list_emails(self, request: Request) -> Response:
        emails = [{"email": "ann@example.com", "primary": True}]
        return Response(body=[one["email"] for one in emails] if self._beta(request) else emails)

    @route("POST", "/hub")
    def subscribe(self, request: Request) -> Response:
        return Response(204) if self.older(request) else _error(404, "Not Found")

    def older(self, request: Request) -> bool:
        return self.version(request) == OLDER

    def _beta(self, request: Request) -> bool:
        return self.older(request) and "application/vnd.github.beta+json" in self._accept(request)

    def _assignees(self, request: Request, new: dict[str, Any]) -> list[str] | None:
        """Remove the assignees from a new issue or an update, and return them."""
        single: list[str] | None = None
        if "assignee" in new and self.older(request):
            single = [login for login in [new.pop("assignee")] if login]
        return new.pop("assignees", single)  # type: ignore[no-any-return]

    def _pull(self, request: Request) -> dict[str, Any]:
        issue = self._issue(request, self.issues[1])
        ends = {end: {"ref": end, "repo": self._repo(request)} for end in ("head", "base")}
        merged = {"merge_commit_sha": "e" * 40} if self.older(request) else {}
        url = f"{request.base}/repos/alice/hello/pulls/1"
        return {**issue, **ends, **merged, "url": url, "merged_at": None}

    def _repo(self, request: Request) -> dict[str, Any]:
        url = f"{request.base}/repos/alice/hello"
        repo = {"id": 1, "name": "hello", "full_name": "alice/hello", "url": url, **self.repo}
        repo["parent"] = {"id": 2, "has_issues": True, "url": f"{request.base}/repos/bob/origin"}
        if self.older(request):
            repo["has_downloads"] = repo["parent"]["has_downloads"] = True
            by_title = repo["squash_merge_commit_title"] == SQUASH_TITLES[True]
            repo["use_squash_pr_title_as_default"] = by_title
        if self._beta(request):
            repo["master_branch"] = repo["default_branch"]
        return repo

    def _issue(self, request: Request, issue: dict[str, Any]) -> dict[str, Any]:
        repo = f"{request.base}/repos/alice/hello"
        assignees = [{"login": login} for login in issue["assignees"]]
        shown = {**issue, "url": f"{repo}/issues/{issue['number']}", "repository_url": repo}
        shown["assignees"] = assignees
        if self.older(request):
            shown["assignee"] = assignees[0] if assignees else None
        return shown

    def _new_issue(self, number: int, title: str) -> dict[str, Any]:
        issue = {"id": 100 + number, "number": number, "title": title, "state": "open"}
        return {**issue, "body": None, "assignees": [], "created_at": "2026-01-02T03:04:05Z"}

    def _file(self, request: Request, path: str) -> dict[str, Any]:
        url = f"{request.base}/repos/alice/hello/contents/{path}?ref=main"
        sha = hashlib.sha256(self.files[path]).hexdigest()[:40]
        return {"type": "file", "name": path, "path": path, "url": url, "sha": sha}

    def _submodule(self, request: Request, kind: str) -> dict[str, Any]:
        url = f"{request.base}/repos/alice/hello/contents/lib?ref=main"
        return {"type": kind, "name": "lib", "path": "lib", "url": url, "sha": "a" * 40}

    def _accept(self, request: Request) -> str:
        return request.headers.get("accept", "")


class GitHubByMediaType(GitHub):
    """Reads the version from the Accept header: v3 is the older version, v4 the newer one."""

    def version(self, request: Request) -> str:
        named = re.search(r"application/vnd\.github\.v([0-9]+)\b", self._accept(request))
        return {"3": OLDER, "4": NEWER}.get(named[1], named[1]) if named else self.default

    def told(self, version: str) -> dict[str, str]:
        return {"X-GitHub-Media-Type": f"github.v{3 if version == OLDER else 4}; format=json"}


def _error(status: int, message: str, **more: object) -> Response:
    body = {"message": message, **more, "documentation_url": DOCUMENTATION, "status": str(status)}
    return Response(status, body)
