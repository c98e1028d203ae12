"""Lifecycles: header fields before a version ends, refusals after its end, links to successors."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.dates import parse_date
from gateway.base.errors import FaultCode
from gateway.base.path_templates import parse_template
from gateway.base.request import RequestContext
from gateway.lifecycle.lifecycle import PORT, Successor, VersionLifecycle
from gateway.versions.reader import IN_PATH, VersionAddress
from gateway.versions.version import Version
from tests.gateway.lifecycle.served import NAMED, first_version
from tests.gateway.rules.rules import RULES, edited, loaded
from tests.gateway.world import LAW, V1, V2, head

V3 = Version(3, "3")
JANUARY, JUNE, DECEMBER = 1_767_225_600.0, 1_780_272_000.0, 1_798_675_200.0
BY_PATH = Successor(V2, None, parse_template("/v{version}/person"))
CAPTURING = Successor(V2, None, parse_template("/v{version}/users/{id}"))
PAGE = "https://example.com/v1"


def announced(
    lifecycle: VersionLifecycle, *successors: Successor, client: str = "", **captures: str
) -> list[str]:
    fields = lifecycle.at_endpoint(successors).fields_for(client, captures)
    return [f"{name.decode()}: {value.decode()}" for name, value in fields]


class TestModel:
    """Compiling `lifecycle` of gateway.yaml; its mistakes are in mistakes.txt."""

    def test_dates_exemptions_and_successors_are_compiled(self) -> None:
        text = edited(
            '"1": { service: old }',
            '"1": { service: old, lifecycle: { deprecated: 2035-01-01, sunset: 2036-01-01,'
            f' link: "{PAGE}", successor: "2", exempt: [{{ client: a, until: 2037-01-01 }}] }} }}',
            NAMED + RULES,
        )
        found = loaded(text).router.find("/param")
        assert found is not None
        assert found[0].selector is not None
        assert found[0].selector.terms == {
            "1": VersionLifecycle(
                V1,
                parse_date("2035-01-01"),
                parse_date("2036-01-01"),
                PAGE,
                {"a": parse_date("2037-01-01")},
                (V2,),
            )
        }

    def test_a_route_has_no_lifecycle_without_the_key(self) -> None:
        assert first_version("schema: live").lifecycle is None

    def test_a_version_that_has_ended_needs_no_service(self) -> None:
        text = edited('"1": { service: old }', '"1": { lifecycle: { sunset: 2020-01-01 } }')
        found = loaded(text).router.find("/param")
        assert found is not None
        assert list(found[0].routes) == [V2]
        assert list(found[0].retired) == [V1]


@pytest.mark.parametrize(
    ("lifecycle", "fields"),
    [
        (VersionLifecycle(V1, link=PAGE), []),
        (VersionLifecycle(V1, JANUARY), ["Deprecation: @1767225600"]),
        (VersionLifecycle(V1, sunset=DECEMBER), ["Sunset: Thu, 31 Dec 2026 00:00:00 GMT"]),
        (VersionLifecycle(V1, sunset=JUNE), ["Sunset: Mon, 01 Jun 2026 00:00:00 GMT"]),
        (
            VersionLifecycle(V1, JANUARY, DECEMBER, PAGE),
            [
                "Deprecation: @1767225600",
                "Sunset: Thu, 31 Dec 2026 00:00:00 GMT",
                f'Link: <{PAGE}>; rel="deprecation", <{PAGE}>; rel="sunset"',
            ],
        ),
    ],
    ids=["no date", "deprecated", "sunset", "a day of one digit", "all"],
)
def test_deprecation_and_sunset_fields_follow_rfc_9745_and_rfc_8594(
    lifecycle: VersionLifecycle, fields: list[str]
) -> None:
    assert announced(lifecycle) == fields


def test_an_exempt_client_gets_its_own_sunset() -> None:
    lifecycle = VersionLifecycle(V1, sunset=JANUARY, exempt={"acme": DECEMBER})
    assert announced(lifecycle, client="acme") == ["Sunset: Thu, 31 Dec 2026 00:00:00 GMT"]
    assert announced(lifecycle, client="other") == ["Sunset: Thu, 01 Jan 2026 00:00:00 GMT"]


class TestSuccessor:
    """Links to the successor (RFC 5829), and the successor in problem details."""

    @pytest.mark.parametrize(
        ("template", "address", "target", "parameter", "members"),
        [
            ("/v{version}/person", IN_PATH, "/v2/person", "", {}),
            ("/person", VersionAddress(query="v=2"), "/person?v=2", "", {}),
            (
                *("/person", VersionAddress(header="X-V: 2")),
                *("/person", '; title="X-V: 2"', {"header": "X-V: 2"}),
            ),
            (
                *(
                    "/person",
                    VersionAddress(header="Accept: a/b-v2+json", media_type="a/b-v2+json"),
                ),
                *("/person", '; type="a/b-v2+json"', {"header": "Accept: a/b-v2+json"}),
            ),
            ("/users/{id}", VersionAddress(query="v=2"), "/users/5?v=2", "", {}),
            (
                *("/users/{id}/{rest*}", VersionAddress(header="X-V: 2")),
                *("/users/5/a/b", '; title="X-V: 2"', {"header": "X-V: 2"}),
            ),
        ],
    )
    def test_the_successor_link_names_the_version_by_each_mechanism(
        self,
        template: str,
        address: VersionAddress,
        target: str,
        parameter: str,
        members: dict[str, object],
    ) -> None:
        successor = Successor(V2, None, parse_template(template), address)
        captures = {"version": "1", "id": "5", "rest": "a/b"}
        (link,) = announced(VersionLifecycle(V1), successor, **captures)
        assert link == f'Link: <{target}>; rel="successor-version"{parameter}'
        found = successor.problem_members(captures)
        assert found == {"version": "2", "path": target, **members}

    @pytest.mark.parametrize(
        ("authority", "port"),
        [("", ""), ("v1.api.test", ""), ("v1.api.test:8080", ":8080"), ("[::1]", ""), ("h:", "")],
    )
    def test_a_link_to_another_host_has_the_port_of_the_client(
        self, authority: str, port: str
    ) -> None:
        successor = replace(CAPTURING, address=VersionAddress(host="v2.api.test"))
        endpoint = VersionLifecycle(V1).at_endpoint((successor,))
        values = endpoint.link_values({"id": "5"}, head("/")._replace(authority=authority))
        assert announced(VersionLifecycle(V1), successor, **values) == [
            f'Link: <//v2.api.test{port}/v2/users/5>; rel="successor-version"'
        ]
        assert successor.problem_members(values) == {
            "version": "2",
            "path": "/v2/users/5",
            "host": f"v2.api.test{port}",
        }
        assert values[PORT] == port

    @pytest.mark.parametrize(
        ("raw", "sent"),
        [
            ("5", "5"),
            ("%C3%A9", "%C3%A9"),
            ('a>"<', "a%3E%22%3C"),
            ("é", "%C3%A9"),
            ("\udce9", "%E9"),
        ],
    )
    def test_captures_in_links_are_percent_encoded(self, raw: str, sent: str) -> None:
        (link,) = announced(VersionLifecycle(V1), CAPTURING, id=raw)
        assert link == f'Link: </v2/users/{sent}>; rel="successor-version"'
        assert CAPTURING.problem_members({"id": raw})["path"] == f"/v2/users/{sent}"

    @LAW
    @given(st.text())
    def test_captures_cannot_end_the_link(self, raw: str) -> None:
        (link,) = announced(VersionLifecycle(V1), CAPTURING, id=raw)
        target = link.removeprefix("Link: </v2/users/").removesuffix('>; rel="successor-version"')
        assert target.isascii()
        assert not set('<>"\r\n\0 ') & set(target)


class TestEnd:
    @pytest.mark.parametrize(
        ("client", "now", "ended"),
        [
            ("", JUNE - 0.001, False),
            ("", JUNE, True),
            ("acme", JUNE, False),
            ("acme", DECEMBER - 1, False),
            ("acme", DECEMBER, True),
        ],
    )
    def test_a_version_ends_at_its_sunset_or_when_the_exemption_of_the_client_ends(
        self, client: str, now: float, ended: bool
    ) -> None:
        lifecycle = VersionLifecycle(V1, sunset=JUNE, exempt={"acme": DECEMBER})
        assert lifecycle.ended(RequestContext(client, now)) is ended

    def test_a_version_without_sunset_never_ends(self) -> None:
        assert not VersionLifecycle(V1, JANUARY).ended(RequestContext("", 1e12))

    def test_the_refusal_names_the_successor(self) -> None:
        endpoint = VersionLifecycle(V1, sunset=JUNE).at_endpoint((BY_PATH,))
        fault = endpoint.refusal(RequestContext("", JUNE), {"version": "1"}, ("2", "3"))
        assert (fault.status, fault.code) == (410, FaultCode.VERSION_RETIRED)
        assert fault.detail == "Version 1 was retired on 01 Jun 2026; use version 2."
        assert fault.supported == ("2", "3")
        assert fault.successor == {"version": "2", "path": "/v2/person"}

    @pytest.mark.parametrize(
        ("sunsets", "offered", "advice"),
        [
            ([DECEMBER, None], ("3",), "use version 2"),
            ([JUNE, None], ("3",), "use version 3"),
            ([None], ("3",), "use version 2"),
            ([inf], (), "use version 2"),
            ([JUNE], ("2", "3"), "use 2 or 3"),
            ([JUNE], (), "no version is left"),
            ([], ("2", "3"), "use 2 or 3"),
            ([], (), "no version is left"),
        ],
    )
    def test_the_refusal_names_the_first_successor_that_has_not_ended(
        self, sunsets: list[float | None], offered: tuple[str, ...], advice: str
    ) -> None:
        successors = [
            Successor(
                version,
                None if sunset is None else VersionLifecycle(version, sunset=sunset),
                BY_PATH.path,
            )
            for version, sunset in zip((V2, V3), sunsets, strict=False)
        ]
        endpoint = VersionLifecycle(V1, sunset=JANUARY).at_endpoint(tuple(successors))
        fault = endpoint.refusal(RequestContext("", JUNE), {}, offered)
        assert fault.detail == f"Version 1 was retired on 01 Jan 2026; {advice}."
        assert (fault.successor is not None) == advice.startswith("use version")
