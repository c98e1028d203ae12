"""Fixed answers: those that the plan gives whatever else a request holds."""

import json

import pytest

from gateway.export.fixed_answer import OTHER_METHOD, FixedAnswer, fixed_answers
from tests.gateway.config.rules import loaded
from tests.gateway.export.rules import RULES

LIFECYCLE = '      "4": { service: one, lifecycle: { deprecated: 2025-01-01 } }\n'
PLAIN = LIFECYCLE.replace(", lifecycle: { deprecated: 2025-01-01 }", "")


def at(path: str, *edits: tuple[str, str]) -> dict[tuple[str, str], FixedAnswer]:
    """Return the fixed answers of an endpoint, of rules without a lifecycle and a header."""
    text = RULES.replace(LIFECYCLE, PLAIN).replace("    version_header: X-Served\n", "")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    snapshot = loaded(text)
    endpoint = next(each for each in snapshot.router if each.template.text == path)
    found = fixed_answers(snapshot, endpoint)
    return {(answer.path, answer.method): answer for answer in found}


def test_methods_and_missing_versions() -> None:
    found = at("/header")
    assert list(found) == [("/header", "OPTIONS"), ("/header", OTHER_METHOD), ("/header", "")]
    options, other, missing = found.values()
    allow, vary = (b"Allow", b"GET, HEAD, OPTIONS"), (b"Vary", b"X-API-VERSION")
    assert options[2:] == (204, (allow, vary), b"")
    assert other.status == 405
    assert other.fields == (
        (b"Content-Type", b"application/problem+json"),
        (b"Cache-Control", b"no-store"),
        allow,
        vary,
    )
    problem = json.loads(missing.body)
    assert (missing.status, problem["code"], problem["instance"]) == (
        400,
        "version_missing",
        "/header",
    )


def test_an_endpoint_of_one_version() -> None:
    found = at("/header", ("version: { in: header, name: X-API-VERSION }", 'versions: ["1"]'))
    assert list(found) == [("/header", "OPTIONS"), ("/header", OTHER_METHOD)]


def test_paths_with_versions() -> None:
    found = at("/v{version}/person")
    assert {path for path, _ in found} == {f"/v{label}/person" for label in "1234"}
    assert {method for _, method in found} == {"OPTIONS", OTHER_METHOD}


def test_without_versions() -> None:
    assert {method for _, method in at("/users")} == {"OPTIONS", OTHER_METHOD}


@pytest.mark.parametrize(
    ("path", "edits"),
    [
        ("/accept", ()),  # without methods, the service decides
        ("/host", ()),
        ("/two", (("/two\n", "/two\n        methods: [GET]\n"),)),
        ("/users/{id}", ()),
        ("/header", ((PLAIN, LIFECYCLE),)),
        ("/header", (("apis:\n", 'cors: { origins: ["*"] }\napis:\n'),)),
        ("/header", ((PLAIN, PLAIN.replace("one", 'one, errors: { body: { a: "{code}" } }')),)),
        ("/accept", (('+json" } }', '+json" }, methods: [GET] }'),)),
    ],
)
def test_nothing_is_fixed(path: str, edits: tuple[tuple[str, str], ...]) -> None:
    fixed = {method for _, method in at(path, *edits)}
    assert fixed <= ({""} if path == "/accept" else set())


def test_a_header_that_names_the_version_is_not_fixed() -> None:
    header = ("apis:\n", "version_header: X-Served\napis:\n")
    assert set(at("/header", header)) == {("/header", "")}


def test_neither_is_a_parameter_whose_name_has_to_be_encoded() -> None:
    header = ("apis:\n", "version_header: X-Served\napis:\n")
    named = ("in: query, name: version", 'in: query, name: "%a b"')
    assert set(at("/query", header, named)) == {("/query", "")}


def test_a_default_serves_what_names_no_version() -> None:
    default = ("apis:\n", 'default_version: "2"\napis:\n')
    assert ("/header", "") not in at("/header", default)


def test_options_that_the_service_answers() -> None:
    own = ("X-API-VERSION }, methods: [GET]", "X-API-VERSION }, methods: [GET, OPTIONS]")
    assert set(at("/header", own)) == {("/header", OTHER_METHOD)}
