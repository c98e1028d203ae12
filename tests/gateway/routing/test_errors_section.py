"""`errors` of a version: the template, and the media type that it goes with."""

import re

import pytest

from gateway.base.errors import BEFORE_VERSION, Fault, FaultCode
from gateway.routing.errors import ErrorTemplate
from gateway.rules.load import check
from gateway.versions.version import Version
from tests.gateway.kit import ROOT
from tests.gateway.rules.rules import edited, loaded

BODY = {"error": {"code": "{code}"}}
MAPPED = tuple(code.value for code in FaultCode if code not in BEFORE_VERSION)
# No cache may have the refusals of a brownout when it is over.
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
                "application/problem+json",
                statuses={"unconvertible_request": 422, "internal": 200},
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
def test_errors(written: str, template: ErrorTemplate) -> None:
    old = '"1": { service: old }'
    found = loaded(edited(old, f'"1": {{ via: "2", errors: {written} }}')).router.find("/param")
    assert found is not None
    endpoint = found[0]
    assert endpoint.errors == {Version(1): template}
    assert endpoint.routes[Version(1)].error_type == template.content_type
    assert endpoint.routes[Version(2)].error_type is None
    found = loaded(edited(old, f'"1": {{ service: old, errors: {written} }}')).router.find("/param")
    assert found is not None
    assert found[0].routes[Version(1)].error_type is None


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
def test_codes_that_the_version_lacks(mapped: tuple[str, ...], lacking: list[str]) -> None:
    codes = ", ".join(f"{code}: {number}" for number, code in enumerate(mapped))
    shape = f'{{ body: {{ code: "{{code}}" }}, codes: {{ {codes} }} }}'
    text = edited('"1": { service: old }', f'"1": {{ service: old, errors: {shape} }}')
    _, warnings = check(text.encode(), "gateway.yaml", {})
    text = "warning: clients of the version get the gateway's own codes of"
    assert [issue.text for issue in warnings if issue.place.endswith("errors.codes")] == [
        f"{text} {named}; add them, or default" for named in lacking
    ]


def test_the_example_in_the_docs() -> None:
    page = (ROOT / "docs" / "error-shapes.md").read_text()
    (example,) = (
        part for part in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "codes:" in part
    )
    found = loaded(edited('"1": { service: old }', example.strip())).router.find("/param")
    assert found is not None
    problem = Fault(FaultCode.VERSION_RETIRED, "Gone.").problem("/param")
    assert found[0].errors[Version(1)].render(problem, "7f") == {
        "errors": [{"code": 4100, "message": "Gone.", "http": 410}],
        "request": "7f",
    }
