"""`errors` of a version: the template of its errors, and their media type."""

import re

import pytest

from gateway.base.errors import BEFORE_VERSION, Fault, FaultCode, operation_missing
from gateway.routing.errors import PLACEHOLDERS, ErrorTemplate, placeholders
from gateway.rules.load import check
from gateway.versions.version import Version
from tests.gateway.kit import ROOT
from tests.gateway.rules.rules import edited, loaded

GONE = Fault(
    FaultCode.VERSION_RETIRED,
    'Version 1 was "retired".',
    supported=("2", "3"),
    successor={"version": "2"},
).problem("/v1/person")
UNFIT = Fault(FaultCode.UNCONVERTIBLE_REQUEST, "No: /a/b: bad.").problem("/x")
MISFIT = {"field": "a.b", "pointer": "/a/b", "reason": "bad"}
MISSING = Fault(FaultCode.NOT_FOUND, "No.").problem("/x")


@pytest.mark.parametrize(
    ("template", "gone", "missing"),
    [
        ("{code}", "version_retired", "not_found"),
        ("{status}", 410, 404),
        ("{status} {title}", "410 Version retired", "404 No such resource"),
        ({"a": ["{supportedVersions}", 1]}, {"a": [["2", "3"], 1]}, {"a": [1]}),
        (
            {"a": [{"b": "{successor}"}], "c": []},
            {"a": [{"b": {"version": "2"}}], "c": []},
            {"c": []},
        ),
        ({"a": {"b": "{successor}"}}, {"a": {"b": {"version": "2"}}}, {}),
        ("use {supportedVersions}", "use 2, 3", "use "),
        ("{request_id}", "id", "id"),
        ({"error": "{phrase}", "is": "{title}"}, {"error": "Gone", "is": "Version retired"}, None),
        ("{{code}} {{}} {", "{code} {} {", "{code} {} {"),
        ("{{status}}", "{status}", "{status}"),
        ("", "", ""),
        ({"a": {"b": ["{status}", 1, None, True]}}, {"a": {"b": [410, 1, None, True]}}, None),
        ({"a": "{supportedVersions}", "b": 1.5}, {"a": ["2", "3"], "b": 1.5}, {"b": 1.5}),
        ({"a": "{detail}"}, {"a": 'Version 1 was "retired".'}, {"a": "No."}),
        (
            {"a": [{"b": "of {supportedVersions}", "c": 1}, {"c": 2}]},
            {"a": [{"b": "of 2, 3", "c": 1}, {"c": 2}]},
            {"a": [{"c": 2}]},
        ),
        ({"a": {"b": "{successor}", "c": 1}}, None, {"a": {"c": 1}}),
        ({"{code}!": "{status}", "{{x}}": 1}, {"version_retired!": 410, "{x}": 1}, None),
        ({"a": {"{successor}": "bad"}, "{supportedVersions}": 1, "b": 2}, None, {"b": 2}),
    ],
)
def test_a_template_omits_placeholders_without_a_value(
    template: object, gone: object, missing: object
) -> None:
    error = ErrorTemplate("application/json", template)
    if gone is not None:
        assert error.render(GONE, "id") == gone
    if missing is not None:
        assert error.render(MISSING, "id") == missing


@pytest.mark.parametrize(
    ("status", "expected"),
    [(404, "Not Found"), (422, "Unprocessable Content"), (413, "Content Too Large"), (499, "")],
)
def test_the_reason_phrase_of_the_status_is_rendered(status: int, expected: str) -> None:
    """A status without a reason phrase in HTTP is treated like any placeholder without a value."""
    fault = Fault(FaultCode.OPERATION_MISSING, "No.", status_override=status).problem("/x")
    found = ErrorTemplate("application/json", {"s": "{status}", "p": "{phrase}"}).render(fault, "i")
    assert found == ({"s": status, "p": expected} if expected else {"s": status})


def test_header_fields_of_the_version_replace_the_gateways() -> None:
    own: dict[str, str | None] = {"cache-control": None, "RETRY-AFTER": "9", "X-A": "b"}
    fields = [(b"Cache-Control", b"no-store"), (b"Retry-After", b"5"), (b"Allow", b"GET")]
    dressed = [(b"Allow", b"GET"), (b"RETRY-AFTER", b"9"), (b"X-A", b"b")]
    template = ErrorTemplate("application/json", headers={"method_not_allowed": own})
    assert template.dress(FaultCode.METHOD_NOT_ALLOWED, fields) == dressed
    assert template.dress(FaultCode.INTERNAL, fields) == fields
    assert ErrorTemplate("application/json").dress(FaultCode.INTERNAL, fields) == fields


CODES: dict[str, str | int] = {"version_retired": 4100, "internal": "E1"}


@pytest.mark.parametrize(
    ("template", "default", "gone", "missing"),
    [
        ("{code}", None, 4100, "not_found"),
        ("{code}", 5000, 4100, 5000),
        ("E-{code}", 0, "E-4100", "E-0"),
        (
            {"errors": [{"code": "{code}", "message": "{detail}"}]},
            "",
            {"errors": [{"code": 4100, "message": 'Version 1 was "retired".'}]},
            {"errors": [{"code": "", "message": "No."}]},
        ),
        (None, 5000, {**GONE, "code": 4100}, {**MISSING, "code": 5000}),
    ],
)
def test_codes_of_the_version_replace_the_gateways(
    template: object, default: str | int | None, gone: object, missing: object
) -> None:
    error = ErrorTemplate("application/json", template, CODES, default)
    assert error.render(GONE, "id") == gone
    assert error.render(MISSING, "id") == missing
    assert GONE["code"] == "version_retired"


def test_members_for_a_single_refusal_override_codes_and_details() -> None:
    details = {"operation_missing": "No."}
    error = ErrorTemplate("a/json", None, {"operation_missing": "NONE"}, None, details)
    for fault, code, detail in (
        (operation_missing(404, "Usual."), "NONE", "No."),
        (operation_missing(404, "Usual.", "", "GONE"), "GONE", "No."),
        (operation_missing(404, "Usual.", "Write."), "NONE", "Write."),
        (operation_missing(404, "Usual.", "Write.", 7), 7, "Write."),
    ):
        given = fault.problem("/x")
        shown = {**given, "code": code, "detail": detail}
        assert error.render(given, "id", None, fault.own) == shown


def test_the_body_is_a_problem_detail_without_a_template() -> None:
    assert ErrorTemplate("application/json").render(GONE, "id") == GONE


def test_every_member_of_a_problem_detail_is_a_placeholder() -> None:
    assert {*GONE, "request_id", "phrase", "serviceStatus", *MISFIT} == {*PLACEHOLDERS}


LIST = {
    "message": "{detail}",
    "fields": [{"name": "{field}", "at": "{pointer}", "why": "{reason}"}],
}


def test_the_misfit_of_a_request_is_rendered() -> None:
    error = ErrorTemplate("application/json", LIST)
    assert error.render(UNFIT, "id", MISFIT) == {
        "message": "No: /a/b: bad.",
        "fields": [{"name": "a.b", "at": "/a/b", "why": "bad"}],
    }
    assert error.render(UNFIT, "id", {"field": "page", "reason": "bad"}) == {
        "message": "No: /a/b: bad.",
        "fields": [{"name": "page", "why": "bad"}],
    }
    assert error.render(UNFIT, "id") == {"message": "No: /a/b: bad."}


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        (None, {**UNFIT, "code": 7, "detail": "7: 'a.b' bad {x}"}),
        ({"m": "{detail}"}, {"m": "7: 'a.b' bad {x}"}),
    ],
)
def test_details_of_the_version_replace_the_gateways(template: object, rendered: object) -> None:
    details = {"unconvertible_request": "{code}: '{field}' {reason} {{x}}", "internal": "Oh."}
    error = ErrorTemplate("application/json", template, {}, 7, details)
    assert error.render(UNFIT, "id", MISFIT) == rendered
    kept = error.render(UNFIT, "id")
    assert isinstance(kept, dict)
    assert "No: /a/b: bad." in kept.values()
    assert ErrorTemplate("a/json", {"m": "{detail}"}, {}, None, details).render(GONE, "id") == {
        "m": 'Version 1 was "retired".'
    }


def test_the_placeholders_in_all_parts_of_a_template_are_found() -> None:
    template = {"{x}": ["{a} {b}{{c}}", {"d": "{e}", "f": 1}], "g": None}
    assert list(placeholders(template)) == ["x", "a", "b", "e"]
    assert list(placeholders(None)) == []


BODY = {"error": {"code": "{code}"}}
MAPPED = tuple(code.value for code in FaultCode if code not in BEFORE_VERSION)
# A cache must not keep the refusals of a brownout after its end.
DRESSED = tuple(code for code in MAPPED if code != "version_brownout")


@pytest.mark.parametrize(
    ("written", "template"),
    [
        ('{ body: { error: { code: "{code}" } } }', ErrorTemplate("application/json", BODY)),
        ("{ content_type: application/json }", ErrorTemplate("application/json")),
        (
            "{ content_type: application/json; charset=utf-8 }",
            ErrorTemplate("application/json; charset=utf-8"),
        ),
        (
            "{ content_type: application/json;charset=UTF-8 }",
            ErrorTemplate("application/json;charset=UTF-8"),
        ),
        (
            "{ codes: { version_retired: 4100, internal: E1, default: 5000 } }",
            ErrorTemplate(
                "application/problem+json", None, {"version_retired": 4100, "internal": "E1"}, 5000
            ),
        ),
        (
            '{ details: { internal: "{code}?" } }',
            ErrorTemplate("application/problem+json", details={"internal": "{code}?"}),
        ),
        (
            "{ statuses: { unconvertible_request: 422, internal: 200 } }",
            ErrorTemplate(
                "application/problem+json", statuses={"unconvertible_request": 422, "internal": 200}
            ),
        ),
        (
            "{ headers: { Cache-Control: null, X-Power: Perl 5 } }",
            ErrorTemplate(
                "application/problem+json",
                headers={code: {"Cache-Control": None, "X-Power": "Perl 5"} for code in DRESSED},
            ),
        ),
        (
            "{ headers: { A: { internal: x, overloaded: null }, B: {internal: null, default: y}}}",
            ErrorTemplate(
                "application/problem+json",
                headers={
                    **{code: {"B": "y"} for code in DRESSED},
                    "internal": {"A": "x", "B": None},
                    "overloaded": {"A": None, "B": "y"},
                },
            ),
        ),
        (
            '{ body: { error: { code: "{code}" } }, content_type: application/vnd.a.b+json }',
            ErrorTemplate("application/vnd.a.b+json", BODY),
        ),
    ],
)
def test_the_errors_of_a_version_compile_to_a_template(
    written: str, template: ErrorTemplate
) -> None:
    old = '"1": { service: old }'
    found = loaded(edited(old, f'"1": {{ via: "2", errors: {written} }}')).router.find("/param")
    assert found is not None
    endpoint = found[0]
    assert endpoint.errors == {Version(1, "1"): template}
    assert endpoint.routes[Version(1, "1")].error_type == template.content_type
    assert endpoint.routes[Version(2, "2")].error_type is None
    found = loaded(edited(old, f'"1": {{ service: old, errors: {written} }}')).router.find("/param")
    assert found is not None
    assert found[0].routes[Version(1, "1")].error_type is None


@pytest.mark.parametrize(
    ("mapped", "lacking"),
    [
        (MAPPED, []),
        (("default",), []),
        ((), []),
        (MAPPED[1:], [MAPPED[0]]),
        (MAPPED[:-2], [", ".join(MAPPED[-2:])]),
    ],
)
def test_a_warning_lists_the_codes_that_the_version_lacks(
    mapped: tuple[str, ...], lacking: list[str]
) -> None:
    codes = ", ".join(f"{code}: {number}" for number, code in enumerate(mapped))
    shape = f'{{ body: {{ code: "{{code}}" }}, codes: {{ {codes} }} }}'
    text = edited('"1": { service: old }', f'"1": {{ service: old, errors: {shape} }}')
    _, warnings = check(text.encode(), "gateway.yaml", {})
    text = "warning: clients get the gateway's own codes of"
    assert [issue.text for issue in warnings if issue.place.endswith("errors.codes")] == [
        f"{text} {named}; add them, or default" for named in lacking
    ]


def test_the_example_in_the_documentation_renders_as_described() -> None:
    page = (ROOT / "docs" / "error-shapes.md").read_text()
    example, _ = (
        part for part in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "codes:" in part
    )
    found = loaded(edited('"1": { service: old }', example.strip())).router.find("/param")
    assert found is not None
    problem = Fault(FaultCode.VERSION_RETIRED, "Gone.").problem("/param")
    assert found[0].errors[Version(1, "1")].render(problem, "7f") == {
        "errors": [{"code": 4100, "message": "Gone.", "http": 410}],
        "request": "7f",
    }
