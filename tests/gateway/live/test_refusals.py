"""Refusals over sockets: their status and format, without side effects."""

import pytest

from tests.gateway.kit import Stack
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

ENDPOINTS = {
    "path": ("/v1/person", "GET, HEAD, OPTIONS", []),
    "query": ("/person/param", "GET, HEAD, OPTIONS", []),
    "header": ("/person/header", "GET, HEAD, OPTIONS", ["x-api-version"]),
    "accept": ("/person/accept", "GET, HEAD, OPTIONS", ["accept"]),
    "users": ("/users", "POST, OPTIONS", []),
    "user": ("/users/1", "GET, HEAD, OPTIONS", []),
}
endpoints = pytest.mark.parametrize(
    ("path", "allow", "vary"), ENDPOINTS.values(), ids=list(ENDPOINTS)
)


class TestMethods:
    @endpoints
    @pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "PURGE", "BREW", "get"])
    def test_a_method_that_no_endpoint_has_is_405_with_allow(
        self, stack: Stack, path: str, allow: str, vary: list[str], method: str
    ) -> None:
        got = ask(stack.gateway, method, path)
        assert got.refusal() == (405, "method_not_allowed")
        assert got.one("Allow") == allow.encode()
        assert got.members("Vary") == vary
        assert allow in got.problem["detail"]

    @endpoints
    def test_options_is_answered_with_the_allowed_methods(
        self, stack: Stack, path: str, allow: str, vary: list[str]
    ) -> None:
        got = ask(stack.gateway, "OPTIONS", path)
        assert (got.status, got.body) == (204, b"")
        assert got.one("Allow") == allow.encode()
        assert got.members("Vary") == vary
        assert got.all("Content-Length") == got.all("Transfer-Encoding") == []

    def test_post_and_get_are_405_if_the_endpoint_has_only_the_other(self, stack: Stack) -> None:
        assert ask(stack.gateway, "POST", "/v1/person", body=b"{}").status == 405
        assert get(stack.gateway, "/users").one("Allow") == b"POST, OPTIONS"
        assert ask(stack.gateway, "HEAD", "/users").status == 405

    def test_unknown_paths_are_404_without_allow(self, stack: Stack) -> None:
        for method in ("GET", "POST", "OPTIONS", "DELETE"):
            got = ask(stack.gateway, method, "/nowhere")
            assert got.refusal() == (404, "not_found")
            assert got.all("Allow") == []

    def test_head_is_refused_without_a_body(self, stack: Stack) -> None:
        for target, status in (("/nowhere", 404), ("/v3/person", 404), ("/person/param", 400)):
            got = ask(stack.gateway, "HEAD", target)
            assert got.status == status
            assert got.one("Content-Type") == b"application/problem+json"
            assert int(got.one("Content-Length")) == len(get(stack.gateway, target).body)


PROBLEMS = {
    "unknown path": ("/nowhere?a=b", [], 404, "not_found", "/nowhere"),
    "odd path": ('/a"b<c>\\{d}', [], 404, "not_found", "/a%22b%3Cc%3E%5C%7Bd%7D"),
    "encoded path": ("/%7e%zz", [], 404, "not_found", "/%7e%zz"),
    "path": ("/v3/person", [], 404, "version_unknown", "/v3/person"),
    "query": ("/person/param?secret=1", [], 400, "version_missing", "/person/param"),
    "header": ("/person/header", ["X-API-VERSION: x"], 400, "version_malformed", "/person/header"),
    "accept": ("/person/accept", ["Accept: text/html"], 406, "version_missing", "/person/accept"),
    "absolute target": ("http://a:1/nowhere?b", [], 404, "not_found", "/nowhere"),
    "absolute, no path": ("http://a", [], 404, "not_found", "/"),
}


@pytest.mark.parametrize(
    ("target", "lines", "status", "code", "instance"), PROBLEMS.values(), ids=PROBLEMS
)
def test_a_refusal_is_a_problem_detail_that_is_not_stored(
    stack: Stack, target: str, lines: list[str], status: int, code: str, instance: str
) -> None:
    got = get(stack.gateway, target, *lines, "X-Request-Id: mine")
    problem = got.problem
    assert (got.status, problem["code"]) == (status, code)
    assert problem["instance"] == instance
    assert problem.get("supportedVersions") == (["1", "2"] if "version" in code else None)
    assert got.one("Cache-Control") == b"no-store"
    assert got.one("X-Request-Id") == b"mine"


VARYING = {
    "path": ("v{}", [], []),
    "query": ("param?version={}", [], []),
    "header": ("header", ["X-API-VERSION: {}"], ["x-api-version"]),
    "accept": ("accept", ["Accept: application/vnd.t-v{}+json"], ["accept"]),
}


# A request, the bytes of the service, and the refusal.
REFUSALS: dict[str, tuple[str, str, list[str], bytes | None, bytes, tuple[int, str]]] = {
    "unreachable": ("GET", "gone", [], None, b"", (502, "upstream_unreachable")),
    "no HTTP": (
        *("GET", "native", [], None, b"SSH-2.0-OpenSSH\r\nConnection: close\r\n\r\n"),
        (502, "upstream_protocol"),
    ),
    "unconvertible": ("GET", "down", [], None, answer(b"{oops"), (502, "conversion_failed")),
    "media type": ("POST", "down", [], b"<a/>", answer(b"{}"), (415, "unsupported_media_type")),
    "expectation": (
        *("GET", "down", ["Expect: the-unexpected"], None, answer(b"{}")),
        (417, "expectation_failed"),
    ),
}


@pytest.mark.parametrize(("endpoint", "lines", "vary"), VARYING.values(), ids=VARYING)
class TestVary:
    def test_vary_names_the_mechanisms_when_the_version_is_refused(
        self, house: House, endpoint: str, lines: list[str], vary: list[str]
    ) -> None:
        for raw in ("3", "x"):
            got = get(house.gateway, f"/down/{endpoint}".format(raw), *_filled(lines, raw))
            assert got.status in (400, 404, 406)
            assert got.members("Vary") == vary

    @pytest.mark.parametrize("status", ["301 Moved", "404 No", "422 Wrong", "500 Oh", "503 Busy"])
    def test_vary_names_the_mechanisms_for_errors_of_the_service(
        self, house: House, endpoint: str, lines: list[str], vary: list[str], status: str
    ) -> None:
        house.service.answer = answer(b"{}", status=status)
        got = get(house.gateway, f"/down/{endpoint}".format(1), *_filled(lines, "1"))
        assert got.line == f"HTTP/1.1 {status}".encode()
        # The configuration lists 422, so its body is converted and may be compressed.
        converted = ["accept-encoding"] if status.startswith("422") else []
        assert got.members("Vary") == vary + converted

    @pytest.mark.parametrize("refusal", REFUSALS)
    def test_vary_names_the_mechanisms_of_a_refusal(
        self, house: House, endpoint: str, lines: list[str], vary: list[str], refusal: str
    ) -> None:
        method, api, more, body, served, expected = REFUSALS[refusal]
        house.service.answer = served
        target = f"/{api}/{endpoint}".format(1)
        got = ask(house.gateway, method, target, *_filled(lines, "1"), *more, body=body)
        assert got.refusal() == expected
        assert got.members("Vary") == vary


def _filled(lines: list[str], version: str) -> list[str]:
    return [line.format(version) for line in lines]


def test_a_request_head_at_the_limit_is_accepted(house: House) -> None:
    target = f"/plain?{'a' * 8000}"
    lines = [f"X-Large: {'a' * 16_000}", *["X-Many: a"] * 100]
    assert get(house.gateway, target, *lines).status == 200
    assert house.service.last.line == f"GET {target} HTTP/1.1".encode()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("expectation", ["200-ok", "100-continue, 200-ok", "x", '100-continue="1"'])
def test_unsupported_expectations_are_417(house: House, method: str, expectation: str) -> None:
    got = ask(house.gateway, method, "/plain", f"Expect: {expectation}", body=b"abc")
    assert got.refusal() == (417, "expectation_failed")
    assert house.service.asked == []
