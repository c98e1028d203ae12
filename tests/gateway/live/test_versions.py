"""Version selection over sockets: the four mechanisms on the real stack."""

import pytest

from tests.gateway.kit import Stack
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, answer, ask, get

V1 = {"name": "Bob Charlie"}
V2 = {"name": {"firstName": "Bob", "lastName": "Charlie"}}
VENDOR = "application/vnd.comp.app-v{}+json"
BODY = {"1": V1, "2": V2}


def refused(got: Answer, status: int, code: str) -> None:
    problem = got.problem
    assert (got.status, problem["code"]) == (status, code)
    assert problem["supportedVersions"] == ["1", "2"]


# The target and the fields of a request, and the media type and Vary of its response.
SPECIFIED = {
    "path": ("/v{}/person", [], "application/json", []),
    "query": ("/person/param?version={}", [], "application/json", []),
    "header": ("/person/header", ["X-API-VERSION: {}"], "application/json", ["x-api-version"]),
    "media type": ("/person/accept", [f"Accept: {VENDOR}"], VENDOR, ["accept"]),
}


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(("target", "lines", "kind", "vary"), SPECIFIED.values(), ids=SPECIFIED)
def test_each_specified_mechanism_selects_the_version(
    stack: Stack, version: str, target: str, lines: list[str], kind: str, vary: list[str]
) -> None:
    got = get(stack.gateway, target.format(version), *(line.format(version) for line in lines))
    assert (got.status, got.json) == (200, BODY[version])
    assert got.one("Content-Type").partition(b";")[0] == kind.format(version).encode()
    assert got.members("Vary") == vary


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("01", "version_malformed"),
        ("latest", "version_malformed"),
        ("1" * 5000, "version_malformed"),
        ("3", "version_unknown"),
    ],
    ids=["zero in front", "word", "very long", "unknown"],
)
def test_each_mechanism_refuses_a_version_with_its_status(
    stack: Stack, raw: str, code: str
) -> None:
    refused(get(stack.gateway, f"/v{raw}/person"), 404, code)
    refused(get(stack.gateway, f"/person/param?version={raw}"), 400, code)
    refused(get(stack.gateway, "/person/header", f"X-API-VERSION: {raw}"), 400, code)
    refused(get(stack.gateway, "/person/accept", f"Accept: {VENDOR.format(raw)}"), 406, code)


PATHS = {
    "capital person": ("/v1/Person", "not_found"),
    "slash at the end": ("/v1/person/", "not_found"),
    "slash between": ("/v1//person", "not_found"),
    "dots": ("/v2/../v1/person", "not_found"),
    "encoded dots": ("/v2/%2e%2E/v1/person", "not_found"),
    "encoded slash": ("/v1%2Fperson", "not_found"),
    "encoded letter": ("/v1/%70erson", "not_found"),
    "backslash": ("/v1\\person", "not_found"),
    "path parameter": ("/v1/person;a=b", "not_found"),
    "encoded digit": ("/v%31/person", "version_malformed"),
    "encoded null": ("/v1%00/person", "version_malformed"),
    "path parameter of the version": ("/v1;a=b/person", "version_malformed"),
    "plus": ("/v../person", "not_found"),
    "dots as version": ("/v../person", "not_found"),
    "param, encoded": ("/person/para%6D?version=1", "not_found"),
}


@pytest.mark.parametrize(("path", "code"), PATHS.values(), ids=PATHS)
def test_paths_match_exactly(stack: Stack, path: str, code: str) -> None:
    got = get(stack.gateway, path, "X-API-VERSION: 1", f"Accept: {VENDOR.format(1)}")
    assert got.refusal() == (404, code)
    assert ("supportedVersions" in got.problem) == code.startswith("version")


@pytest.mark.parametrize(
    "target",
    [
        "/v\N{ARABIC-INDIC DIGIT ONE}/person",
        b"/v\xd9/person",
        "/person/param?version=\N{ARABIC-INDIC DIGIT ONE}",
        b"/person/param?version=1&a=\xff",
    ],
    ids=["path", "path, no UTF-8", "query", "query, no UTF-8"],
)
def test_a_target_with_non_ascii_characters_is_a_bad_request(
    stack: Stack, target: str | bytes
) -> None:
    assert get(stack.gateway, target).refusal() == (400, "bad_request")


QUERIES: dict[str, tuple[str, str]] = {
    "encoded digit": ("?version=%31", "1"),
    "encoded name": ("?%76ersion=1", "1"),
    "twice the same, once encoded": ("?version=2&version=%32", "2"),
    "odd encodings elsewhere": ("?a=%zz%&%ff=%&version=1", "1"),
    "absent": ("", "version_missing"),
    "other case beside it": ("?Version=2&version=1", "version_malformed"),
    "behind a semicolon": ("?a=b;version=2&version=1", "version_malformed"),
    "no value": ("?version", "version_malformed"),
    "plus before": ("?version=+1", "version_malformed"),
    "null": ("?version=1%00", "version_malformed"),
    "encoded arabic-indic digit": ("?version=%D9%A1", "version_malformed"),
    "broken encoding": ("?version=%3", "version_malformed"),
    "differ in spelling": ("?version=1&version=01", "version_conflict"),
}


@pytest.mark.parametrize(("query", "expected"), QUERIES.values(), ids=QUERIES)
def test_one_valid_query_parameter_selects_the_version(
    stack: Stack, query: str, expected: str
) -> None:
    got = get(stack.gateway, f"/person/param{query}")
    if expected in BODY:
        assert (got.status, got.json) == (200, BODY[expected])
    else:
        refused(got, 400, expected)


HEADERS: dict[str, tuple[list[str | bytes], str]] = {
    "mixed case": (["X-Api-vERSION: 2"], "2"),
    "tabs": (["X-API-VERSION:\t \t1\t "], "1"),
    "twice the same": (["X-API-VERSION: 1", "x-api-version:1 "], "1"),
    "absent": ([], "version_missing"),
    "other name": (["X-API-VERSIONS: 1", "XAPIVERSION: 1", "X_API_VERSION: 1"], "version_missing"),
    "empty": (["X-API-VERSION:"], "version_malformed"),
    "no-break space": ([b"X-API-VERSION: \xa01"], "version_malformed"),
    "no-break space in UTF-8": (["X-API-VERSION: 1\xa0"], "version_malformed"),
    "encoded": (["X-API-VERSION: %31"], "version_malformed"),
    "differ, one a list": (["X-API-VERSION: 1", "X-API-VERSION: 1,1"], "version_conflict"),
}


@pytest.mark.parametrize(("lines", "expected"), HEADERS.values(), ids=HEADERS)
def test_one_valid_header_line_selects_the_version(
    stack: Stack, lines: list[str | bytes], expected: str
) -> None:
    got = get(stack.gateway, "/person/header", *lines)
    assert got.members("Vary") == ["x-api-version"]
    if expected in BODY:
        assert (got.status, got.json) == (200, BODY[expected])
    else:
        refused(got, 400, expected)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([b"X-API-VERSION : 1"], id="white space before the colon"),
        pytest.param([b"X-API-VERSION: 1\x00"], id="null"),
        pytest.param([b"X-API-VERSION:\r\n 1"], id="folded"),
        pytest.param([b"X-API-VERSION: 1\r2"], id="bare carriage return"),
        pytest.param([b"X-API-VERSION: 1", b"\x0bX-API-VERSION: 2"], id="vertical tab"),
    ],
)
def test_malformed_header_lines_are_a_bad_request(stack: Stack, lines: list[bytes]) -> None:
    assert get(stack.gateway, "/person/header", *lines).refusal() == (400, "bad_request")


@pytest.mark.parametrize(
    ("target", "lines", "status"),
    [
        ("/person/param", ["X-API-VERSION: 1", f"Accept: {VENDOR.format(1)}"], 400),
        ("/person/header?version=1", [f"Accept: {VENDOR.format(1)}"], 400),
        ("/person/accept?version=1", ["X-API-VERSION: 1"], 406),
    ],
)
def test_a_version_in_another_mechanism_does_not_replace_a_missing_one(
    stack: Stack, target: str, lines: list[str], status: int
) -> None:
    refused(get(stack.gateway, target, *lines), status, "version_missing")


class TestDefaults:
    @pytest.mark.parametrize(
        ("target", "lines", "expected"),
        [
            ("param", [], 2),
            ("param?version=1", [], 1),
            ("param?version=", [], (400, "version_malformed")),
            ("header?version=1", [], 2),
            ("header", ["X-API-VERSION: 3"], (400, "version_unknown")),
            ("accept", ["Accept: */*"], 2),
            ("accept", ["Accept: application/vnd.t-v1+json;q=0.1, */*"], 1),
            ("accept", ["Accept: application/vnd.t-v01+json"], (406, "version_malformed")),
        ],
    )
    def test_the_default_serves_requests_without_a_version(
        self, house: House, target: str, lines: list[str], expected: int | tuple[int, str]
    ) -> None:
        got = get(house.gateway, f"/native/default/{target}", *lines)
        if isinstance(expected, int):
            assert got.status == 200
            asked = house.service.last.line.split(b" ")[1].partition(b"?")[0]
            assert asked == b"/native/%d" % expected
        else:
            assert got.refusal() == expected
            assert house.service.asked == []


class TestSeveral:
    @pytest.mark.parametrize(
        ("query", "lines", "version"),
        [
            ("?version=1", [], 1),
            ("", ["X-API-VERSION: 2"], 2),
            ("", ["Accept: application/vnd.t-v1+json"], 1),
            ("?version=2", ["X-API-VERSION: 2", "Accept: application/vnd.t-v2+json"], 2),
            ("?version=1", ["Accept: */*"], 1),
        ],
    )
    def test_mechanisms_that_agree_select_the_version(
        self, house: House, query: str, lines: list[str], version: int
    ) -> None:
        got = get(house.gateway, f"/native/any{query}", *lines)
        assert got.status == 200
        assert house.service.last.line.startswith(b"GET /native/%d" % version)
        assert got.members("Vary") == ["x-api-version", "accept"]

    @pytest.mark.parametrize(
        ("query", "lines"),
        [
            ("?version=1", ["X-API-VERSION: 2"]),
            ("?version=2", ["Accept: application/vnd.t-v1+json"]),
            ("", ["X-API-VERSION: 1", "Accept: application/vnd.t-v2+json"]),
            ("?version=1", ["X-API-VERSION: 1", "Accept: application/vnd.t-v2+json"]),
        ],
    )
    def test_mechanisms_that_differ_are_a_conflict(
        self, house: House, query: str, lines: list[str]
    ) -> None:
        got = get(house.gateway, f"/native/any{query}", *lines)
        refused(got, 400, "version_conflict")
        assert got.members("Vary") == ["x-api-version", "accept"]
        assert house.service.asked == []

    def test_path_and_header_must_agree(self, house: House) -> None:
        assert get(house.gateway, "/native/both/v1", "X-API-VERSION: 1").status == 200
        assert get(house.gateway, "/native/both/v2").status == 200
        refused(get(house.gateway, "/native/both/v2", "X-API-VERSION: 1"), 400, "version_conflict")
        refused(get(house.gateway, "/native/both/v3"), 404, "version_unknown")


def test_head_returns_the_response_to_get_without_its_body(stack: Stack) -> None:
    for target, lines in (
        ("/v1/person", []),
        ("/person/param?version=2", []),
        ("/person/header", ["X-API-VERSION: 1"]),
        ("/person/accept", [f"Accept: {VENDOR.format(2)}"]),
    ):
        whole = get(stack.gateway, target, *lines)
        head = ask(stack.gateway, "HEAD", target, *lines)
        assert head.status == 200
        varying = {b"date", b"x-request-id"}
        assert [line for line in head.fields if line[0].lower() not in varying] == [
            line for line in whole.fields if line[0].lower() not in varying
        ]


def test_a_response_names_the_version_of_the_client(house: House) -> None:
    house.service.answer = answer(b"{}", "X-API-VERSION: 2")
    for version in ("1", "2"):
        got = get(house.gateway, "/down/header", f"X-API-VERSION: {version}")
        assert got.one("X-API-VERSION") == version.encode()
