// Call the API of GitHub with Octokit: `node octokit.mjs BASE_URL (header|accept) VERSION PACKAGE`.
const [base, mechanism, version, packageName] = process.argv.slice(2);
const { Octokit } = await import(packageName);
const quiet = () => {};
const octokit = new Octokit({
  baseUrl: base,
  log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
});
const byHeader = mechanism === "header";
// Octokit accepts application/vnd.github.v3+json by itself.
octokit.hook.before("request", (options) => {
  if (byHeader) options.headers["x-github-api-version"] = version;
  else options.headers.accept = options.headers.accept.replace(".v3", `.v${version}`);
});

const repo = { owner: "alice", repo: "hello" };
const names = ["content-type", "link", "location", "x-github-media-type", "x-github-api-version-selected"];
const { repos, issues, checks, rateLimit, teams } = octokit.rest;

const whole = async (call) => {
  const { status, url, headers, data } = await call;
  const kept = Object.fromEntries(names.filter((name) => name in headers).map((name) => [name, headers[name]]));
  return { status, url, ...kept, data: data instanceof ArrayBuffer ? "an ArrayBuffer" : data };
};
const contents = (path, more) => repos.getContent({ ...repo, path, ...more });
const notModified = async () => {
  const { headers } = await repos.get(repo);
  return whole(repos.get({ ...repo, headers: { "if-none-match": headers.etag } }));
};
const older = version === "3" || version === "2022-11-28";
const vendor = byHeader ? "application/vnd.github" : `application/vnd.github.v${version}`;

const beta = "application/vnd.github.beta+json";
const link = "secret_scanning_push_protection_custom_link";
const form = (inOlder, inNewer) => (older ? inOlder : inNewer);
const assigned = (login) => form({ assignee: login }, { assignees: login ? [login] : [] });

const calls = {
  "get": () => whole(repos.get(repo)),
  "head": () => whole(octokit.request("HEAD /repos/{owner}/{repo}", repo)),
  "get a renamed one": () => whole(repos.get({ owner: "alice", repo: "old" })),
  "list": () => whole(repos.listForOrg({ org: "acme" })),
  "list in pages": () => octokit.paginate(issues.listForRepo, { ...repo, per_page: 2 }),
  "list, whole page": () => whole(issues.listForRepo({ ...repo, per_page: 2, page: 2 })),
  "create": () => whole(issues.create({ ...repo, title: "New", body: "zwölf\n", assignees: ["erin"] })),
  "create, invalid": () => whole(issues.create({ ...repo, title: "" })),
  "update": () => whole(issues.update({ ...repo, issue_number: 1, title: "Edited", assignees: ["dave"] })),
  "update a repository": () => whole(repos.update({ ...repo, description: null })),
  "lock": () => whole(issues.lock({ ...repo, issue_number: 1 })),
  "missing": () => whole(issues.get({ ...repo, issue_number: 99 })),
  "missing path": () => whole(octokit.request("GET /nothing/here")),
  "not modified": notModified,
  "contents": () => whole(contents("README.md")),
  "folder": () => whole(contents("")),
  "submodule": () => whole(contents("lib")),
  "raw": () => whole(contents("README.md", { headers: { accept: `${vendor}.raw+json` } })),
  "raw JSON": () => whole(contents("package.json", { headers: { accept: `${vendor}.raw+json` } })),
  "raw, short type": () => whole(contents("README.md", { mediaType: { format: "raw" } })),
  "create a file": () =>
    whole(repos.createOrUpdateFileContents({ ...repo, path: "new.txt", message: "Add", content: "dGV4dA==" })),
  "check suite": () => whole(checks.getSuite({ ...repo, check_suite_id: 9 })),
  "rate limit": () => whole(rateLimit.get()),
  "create a team": () => whole(teams.create({ org: "acme", name: "T", ...(older ? { permission: "push" } : {}) })),
  "assign": () => whole(issues.update({ ...repo, issue_number: 2, ...assigned("bob") })),
  "unassign": () => whole(issues.update({ ...repo, issue_number: 2, ...assigned(null) })),
  "assign a new one": () => whole(issues.create({ ...repo, title: "Newest", ...assigned("bob") })),
  "squash": () =>
    whole(
      repos.update({
        ...repo,
        ...form(
          { use_squash_pr_title_as_default: false, has_downloads: true },
          { squash_merge_commit_title: "COMMIT_OR_PR_TITLE" },
        ),
      }),
    ),
  "events": () => whole(octokit.request("GET /events")),
  "search": () => whole(octokit.request("GET /search/issues?q=two")),
  "pulls": () => whole(octokit.rest.pulls.list(repo)),
  "pull": () => whole(octokit.rest.pulls.get({ ...repo, pull_number: 1 })),
  "dispatch": () =>
    whole(octokit.rest.actions.createWorkflowDispatch({ ...repo, workflow_id: "ci", ref: "main" })),
  "analysis": () =>
    whole(
      octokit.rest.codeScanning.getAnalysis({
        ...repo,
        analysis_id: 4,
        headers: { accept: "application/sarif+json" },
      }),
    ),
  "attestations": () =>
    whole(octokit.request("GET /repos/{owner}/{repo}/attestations/sha256:1", repo)),
  "organization": () => whole(octokit.rest.orgs.get({ org: "acme" })),
  "update an organization": () =>
    whole(
      octokit.rest.orgs.update({ org: "acme", [link]: null, ...form({ [`${link}_enabled`]: false }, {}) }),
    ),
  "delete an organization": () => whole(octokit.rest.orgs.delete({ org: "acme" })),
  "remove a member": () => whole(octokit.rest.orgs.removeMember({ org: "acme", username: "bob" })),
  "create a repository": () => whole(repos.createInOrg({ org: "acme", name: "new" })),
  "secret": () =>
    whole(
      octokit.request("PUT /orgs/{org}/dependabot/secrets/KEY", {
        org: "acme",
        selected_repository_ids: form(["1", 2], [1, 2]),
      }),
    ),
  "delete an installation": () =>
    whole(octokit.rest.apps.deleteInstallation({ installation_id: 5 })),
  "advisories": () => whole(octokit.request("GET /advisories")),
  "root": () => whole(octokit.rest.meta.root()),
  "beta": () => whole(repos.get({ ...repo, headers: { accept: beta } })),
  "beta, emails": () => whole(octokit.request("GET /user/emails", { headers: { accept: beta } })),
  "hub": () => whole(octokit.request("POST /hub")),
  "delete": () => whole(repos.delete(repo)),
};

const results = {};
for (const [name, call] of Object.entries(calls)) {
  try {
    results[name] = await call();
  } catch (error) {
    const data = error.response?.data;
    const shown = data instanceof ArrayBuffer ? "an ArrayBuffer" : data;
    results[name] = { raised: error.name, status: error.status, message: error.message, data: shown };
  }
}
process.stdout.write(JSON.stringify(results));
