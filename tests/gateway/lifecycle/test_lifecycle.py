"""Lifecycles: what is said of a version before it ends, when it has, and to whom."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.context import RequestContext
from gateway.base.errors import FaultCode
from gateway.base.path_templates import parse_template
from gateway.lifecycle.lifecycle import PORT, Successor, Terms, lifecycle
from gateway.versions.reader import VersionAddress
from gateway.versions.version import Version
from tests.gateway.world import LAW, V1, V2, head

V3 = Version(3)
JANUARY, JUNE, DECEMBER = 1_767_225_600.0, 1_780_272_000.0, 1_798_675_200.0
STATIC, MOVING = parse_template("/v{version}/person"), parse_template("/v{version}/users/{id}")
PAGE = "https://example.com/v1"


def told(terms: Terms, *successors: Successor, client: str = "", **captures: str) -> list[str]:
    """Return the header fields that a client gets, as it sees them."""
    fields = lifecycle(terms, successors).fields_for(client, captures)
    return [f"{name.decode()}: {value.decode()}" for name, value in fields]


class TestFields:
    """RFC 9745, RFC 8594, RFC 5829: written out beforehand."""

    def test_nothing_to_say(self) -> None:
        assert told(Terms(V1, link=PAGE)) == []

    def test_deprecated(self) -> None:
        assert told(Terms(V1, JANUARY)) == ["Deprecation: @1767225600"]

    def test_ends(self) -> None:
        assert told(Terms(V1, sunset=DECEMBER)) == ["Sunset: Thu, 31 Dec 2026 00:00:00 GMT"]

    def test_days_have_two_digits(self) -> None:
        assert told(Terms(V1, sunset=JUNE)) == ["Sunset: Mon, 01 Jun 2026 00:00:00 GMT"]

    def test_a_page_about_both(self) -> None:
        assert told(Terms(V1, JANUARY, DECEMBER, PAGE))[2:] == [
            f'Link: <{PAGE}>; rel="deprecation", <{PAGE}>; rel="sunset"'
        ]

    def test_an_exempt_client_is_told_its_own_date(self) -> None:
        terms = Terms(V1, sunset=JANUARY, exempt={"acme": DECEMBER})
        assert told(terms, client="acme") == ["Sunset: Thu, 31 Dec 2026 00:00:00 GMT"]
        assert told(terms, client="other") == ["Sunset: Thu, 01 Jan 2026 00:00:00 GMT"]


class TestSuccessor:
    """How the version to use instead is asked for."""

    @pytest.mark.parametrize(
        ("successor", "link", "members"),
        [
            (
                Successor(V2, None, STATIC),
                ['Link: </v2/person>; rel="successor-version"'],
                {"path": "/v2/person"},
            ),
            (
                Successor(V2, None, parse_template("/person"), VersionAddress(query="v=2")),
                ['Link: </person?v=2>; rel="successor-version"'],
                {"path": "/person?v=2"},
            ),
            (
                Successor(V2, None, parse_template("/person"), VersionAddress(header="X-V: 2")),
                ['Link: </person>; rel="successor-version"; title="X-V: 2"'],
                {"path": "/person", "header": "X-V: 2"},
            ),
            (
                Successor(
                    V2,
                    None,
                    parse_template("/person"),
                    VersionAddress(header="Accept: a/b-v2+json", media_type="a/b-v2+json"),
                ),
                ['Link: </person>; rel="successor-version"; type="a/b-v2+json"'],
                {"path": "/person", "header": "Accept: a/b-v2+json"},
            ),
        ],
        ids=["path", "query", "header", "accept"],
    )
    def test_by_each_mechanism(
        self, successor: Successor, link: list[str], members: dict[str, object]
    ) -> None:
        assert told(Terms(V1), successor) == link
        assert successor.members({}) == {"version": "2", **members}

    def test_a_path_that_moves_is_filled_for_each_request(self) -> None:
        successor = Successor(V2, None, MOVING)
        for name in ("5", "6"):
            assert told(Terms(V1), successor, version="1", id=name) == [
                f'Link: </v2/users/{name}>; rel="successor-version"'
            ]

    def test_a_path_that_moves_by_the_other_mechanisms(self) -> None:
        path = parse_template("/users/{id}/{rest*}")
        where = {"id": "5", "rest": "a/b"}
        assert told(Terms(V1), Successor(V2, None, path, VersionAddress(query="v=2")), **where) == [
            'Link: </users/5/a/b?v=2>; rel="successor-version"'
        ]
        assert told(
            Terms(V1), Successor(V2, None, path, VersionAddress(header="X-V: 2")), **where
        ) == ['Link: </users/5/a/b>; rel="successor-version"; title="X-V: 2"']

    @pytest.mark.parametrize(
        ("authority", "port"),
        [("", ""), ("v1.api.test", ""), ("v1.api.test:8080", ":8080"), ("[::1]", ""), ("h:", "")],
    )
    def test_another_host_is_asked_at_the_same_port(self, authority: str, port: str) -> None:
        successor = Successor(V2, None, MOVING, VersionAddress(host="v2.api.test"))
        asked = head("/")._replace(authority=authority)
        where = lifecycle(Terms(V1), (successor,)).places({"id": "5"}, asked)
        assert told(Terms(V1), successor, **where) == [
            f'Link: <//v2.api.test{port}/v2/users/5>; rel="successor-version"'
        ]
        assert successor.members(where) == {
            "version": "2",
            "path": "/v2/users/5",
            "host": f"v2.api.test{port}",
        }
        assert where[PORT] == port

    @pytest.mark.parametrize(
        ("raw", "sent"),
        [("%C3%A9", "%C3%A9"), ('a>"<', "a%3E%22%3C"), ("é", "%C3%A9"), ("\udce9", "%E9")],
    )
    def test_whatever_the_client_sent_fits_in_a_field(self, raw: str, sent: str) -> None:
        (link,) = told(Terms(V1), Successor(V2, None, MOVING), id=raw)
        assert link == f'Link: </v2/users/{sent}>; rel="successor-version"'
        assert Successor(V2, None, MOVING).members({"id": raw})["path"] == f"/v2/users/{sent}"

    @LAW
    @given(st.text())
    def test_nothing_breaks_out_of_the_link(self, raw: str) -> None:
        (link,) = told(Terms(V1), Successor(V2, None, MOVING), id=raw)
        target = link.removeprefix("Link: </v2/users/").removesuffix('>; rel="successor-version"')
        assert target.isascii()
        assert not set('<>"\r\n\0 ') & set(target)


class TestEnding:
    """At the second of the sunset, for each client its own."""

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
    def test_when(self, client: str, now: float, ended: bool) -> None:
        terms = Terms(V1, sunset=JUNE, exempt={"acme": DECEMBER})
        assert terms.ended(RequestContext(client, now)) is ended

    def test_never(self) -> None:
        assert not Terms(V1, JANUARY).ended(RequestContext("", 1e12))

    def test_the_fault_names_the_successor(self) -> None:
        ending = lifecycle(Terms(V1, sunset=JUNE), (Successor(V2, None, STATIC),))
        fault = ending.retired(RequestContext("", JUNE), {"version": "1"}, ("2", "3"))
        assert (fault.status, fault.code) == (410, FaultCode.VERSION_RETIRED)
        assert fault.detail == "Version 1 was retired on 01 Jun 2026; use version 2."
        assert fault.problem("/v1/person") == {
            "type": "urn:problem:version_retired",
            "title": "Version retired",
            "status": 410,
            "detail": fault.detail,
            "instance": "/v1/person",
            "code": "version_retired",
            "supportedVersions": ["2", "3"],
            "successor": {"version": "2", "path": "/v2/person"},
        }

    @pytest.mark.parametrize(
        ("until", "heir"), [(DECEMBER, "version 2"), (JUNE, "version 3"), (inf, "version 2")]
    )
    def test_the_first_successor_that_is_left(self, until: float, heir: str) -> None:
        following = (
            Successor(V2, Terms(V2, sunset=until), STATIC),
            Successor(V3, None, STATIC),
        )
        ending = lifecycle(Terms(V1, sunset=JANUARY), following)
        fault = ending.retired(RequestContext("", JUNE), {}, ("3",))
        assert fault.detail.endswith(f"use {heir}.")

    @pytest.mark.parametrize(
        ("offered", "advice"),
        [(("2", "3"), "use 2 or 3."), ((), "no version is left.")],
    )
    def test_without_a_successor(self, offered: tuple[str, ...], advice: str) -> None:
        following = Successor(V2, Terms(V2, sunset=JUNE), STATIC)
        for successors in ((), (following,)):
            ending = lifecycle(Terms(V1, sunset=JANUARY), successors)
            fault = ending.retired(RequestContext("", JUNE), {}, offered)
            assert fault.successor is None
            assert fault.detail == f"Version 1 was retired on 01 Jan 2026; {advice}"
