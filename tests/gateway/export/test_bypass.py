"""What goes straight to its service, and what does not and why."""

import pytest

from gateway.export.bypass import bypass
from tests.gateway.export.rules import rules

CLIENTS = "bypass: true\nclients: "


def test_what_goes_where() -> None:
    assert bypass(rules()).lines == [
        "person version 2 at /v{version}/person: straight to two",
        "person version 3 at /v{version}/person: straight to one",
        "person version 2 at /query: straight to two",
        "person version 3 at /query: straight to one",
        "person version 2 at /header: straight to two",
        "person version 3 at /header: straight to one",
        "person version 2 at /host: straight to two",
        "person version 3 at /host: straight to one",
        "users at /users: straight to one",
        "users at /users/{id}: straight to one",
        "users at /users/me: straight to one",
        *(
            f"person version {version} at {path}: to the gateway, because {reason}"
            for path, other in {
                "/v{version}/person": None,
                "/query": None,
                "/header": None,
                "/accept": "Accept has weights, and answers bear the version's media type",
                "/host": None,
                "/two": "several places may name the version, and must agree",
            }.items()
            for version, reason in {
                "1": "it is converted from version 2",
                "2": other,
                "3": other,
                "4": "it has a lifecycle with dates",
            }.items()
            if reason is not None
        ),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("bypass: true", "", "'bypass' is not set in the rules"),
        ("bypass: true", "bypass: true\nlimits: { body: 9 }", "the size of request bodies is"),
        ("methods: [GET, POST]", "max_body: 9", "the size of request bodies is limited"),
        (
            '"3": { service: one }',
            '"3": { service: one, errors: { body: { a: "{detail}" } } }',
            "its errors have a shape of their own",
        ),
        (
            "{ service: two }",
            (
                "{ service: two, lifecycle: { sunset: 2098-01-01 }, brownout: { windows:"
                " [{ from: 2097-01-01, to: 2097-01-02 }] } }"
            ),
            "it has brownouts",
        ),
        (
            "{ service: two }",
            '{ service: two, cutover: { via: "3", percent: 1, sticky_by: request } }',
            "a cutover moves it",
        ),
        (
            "{ service: two }",
            '{ service: two, shadow: { via: "3", percent: 1 } }',
            "its requests are repeated for a shadow",
        ),
        ("timeouts: { whole: 90.5 }", "host: target", "by the address of one of several targets"),
        ("bypass: true", CLIENTS + "{ by: [{ api_key: { header: K } }] }", "a log must not hold"),
        ("bypass: true", CLIENTS + "{ by: [{ jwt: { claim: sub } }] }", "a log must not hold"),
        ("bypass: true", CLIENTS + "{ by: [{ header: A }], hash: abcdefgh }", "must not hold"),
    ],
)
def test_reasons(old: str, new: str, reason: str) -> None:
    lines = bypass(rules(old, new)).lines
    assert [line for line in lines if "to the gateway" in line and reason in line]


def test_an_api_that_is_kept() -> None:
    found = bypass(rules(), ["users"])
    assert [one for one in found.straight if one.endpoint.api == "users"] == []
    assert "users at /users: to the gateway, because its API is kept there" in found.lines
    with pytest.raises(ValueError, match="no API is called 'user'; known: person, users"):
        bypass(rules(), ["user"])


@pytest.mark.parametrize(
    ("by", "logged"),
    [
        ("[{ header: X-Client }]", ("X-Client",)),
        ("[{ header: X-Client }, { address: true }]", ("X-Client",)),
    ],
)
def test_what_a_log_needs_to_name_clients(by: str, logged: tuple[str, ...]) -> None:
    found = bypass(rules("bypass: true", f"{CLIENTS}{{ by: {by} }}"))
    assert found.logged == logged
    assert found.straight


def test_paths() -> None:
    paths = {(one.path.text, one.service_path.text) for one in bypass(rules()).straight}
    assert {("/v2/person", "/person"), ("/users/{id}", "/users/{id}")} <= paths
