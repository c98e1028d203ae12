"""`errors` of a version: the template, and the media type that it goes with."""

import pytest

from gateway.core.answers.error_template import ErrorTemplate
from gateway.core.versions.version import Version
from tests.gateway.config.rules import edited, loaded

BODY = {"error": {"code": "{code}"}}


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
