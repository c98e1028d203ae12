"""The plan: the decision about a request, for every way to select a version."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base import headers
from gateway.base.errors import FaultCode
from gateway.base.path_templates import parse_template
from gateway.base.request import RequestContext, RequestHead
from gateway.conversion.chain import Conversion
from gateway.conversion.changes.default import add_parameter
from gateway.conversion.changes.rename import rename_parameter
from gateway.conversion.version_step import Direction, VersionLink
from gateway.lifecycle.brownout import CompiledWindow, VersionBrownout
from gateway.lifecycle.lifecycle import EndpointLifecycle, Successor, VersionLifecycle
from gateway.routing.plan import Decision, Options, Plan, Refusal, plan
from gateway.routing.snapshot import Endpoint, Route, Snapshot
from gateway.versions.matching import Matching
from gateway.versions.reader import VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version
from tests.gateway.world import (
    ACCEPT,
    HEADER,
    LAW,
    PATH,
    PERSON_V1,
    PERSON_V2,
    QUERY,
    SUPPORTED,
    USERS,
    V1,
    V2,
    VENDOR,
    head,
    person,
    snapshot,
    users,
)

BY_PATH = person("/v{version}/person", PATH)
BY_QUERY = person("/person/param", QUERY)
BY_HEADER = person("/person/header", HEADER, vary=("X-API-VERSION",))
BY_ACCEPT = person("/person/accept", ACCEPT, vary=("Accept",))
ANY_OF = person("/any", QUERY, HEADER, ACCEPT, vary=("X-API-VERSION", "Accept"))
ANY_PATH = person("/any/v{version}", PATH, QUERY, HEADER, ACCEPT, vary=("X-API-VERSION", "Accept"))
ACCEPT_OR_1 = person("/default/accept", ACCEPT, default=V1, vary=("Accept",))
HEADER_OR_1 = person(
    "/default/header", HEADER, ACCEPT, default=V1, vary=("X-API-VERSION", "Accept")
)
BY_DEFAULT = person("/default", QUERY, HEADER, default=V1, vary=("X-API-VERSION",))
OPEN = person("/open", HEADER, methods=None, vary=("X-API-VERSION",))
OWN_OPTIONS = person("/own", QUERY, methods=("GET", "OPTIONS"))
USERS_POST = users("/users", ("POST",))
USERS_GET = users("/users/{id}", ("GET", "HEAD"))
FILES = users("/files/{rest*}")
WORLD = snapshot(
    [
        *(BY_PATH, BY_QUERY, BY_HEADER, BY_ACCEPT, ANY_OF, ANY_PATH, BY_DEFAULT, OPEN, OWN_OPTIONS),
        *(ACCEPT_OR_1, HEADER_OR_1, USERS_POST, USERS_GET, FILES),
    ]
)
FOUR = {"path": BY_PATH, "query": BY_QUERY, "header": BY_HEADER, "accept": BY_ACCEPT}
MECHANISMS = pytest.mark.parametrize("mechanism", FOUR)


def ask(mechanism: str, *values: str, method: str = "GET") -> RequestHead:
    match mechanism:
        case "path":
            return head(f"/v{values[0]}/person", method=method)
        case "query":
            query = "&".join(f"version={value}" for value in values)
            return head(f"/person/param?{query}", method=method)
        case "header":
            fields = (("x-api-version", value) for value in values)
            return head("/person/header", *fields, method=method)
        case _:
            fields = (("Accept", VENDOR.format(value)) for value in values)
            return head("/person/accept", *fields, method=method)


def served(outcome: Decision) -> tuple[str, str | None, str]:
    assert isinstance(outcome, Plan), outcome
    return str(outcome.route.version), outcome.chosen_by, outcome.target


def refused(outcome: Decision) -> tuple[int, FaultCode]:
    assert isinstance(outcome, Refusal), outcome
    assert outcome.fault.supported == ("1", "2")
    return outcome.fault.status, outcome.fault.code


class TestChoosing:
    """Selection in plans. All refusals are in test_selection.py, also over sockets in live/."""

    @MECHANISMS
    @pytest.mark.parametrize(("version", "service"), [("1", PERSON_V1), ("2", PERSON_V2)])
    def test_a_named_version_is_served_by_its_service(
        self, mechanism: str, version: str, service: object
    ) -> None:
        outcome = plan(WORLD, ask(mechanism, version))
        query = f"?version={version}" if mechanism == "query" else ""
        assert served(outcome) == (version, mechanism, f"/person{query}")
        assert isinstance(outcome, Plan)
        assert outcome.endpoint is FOUR[mechanism]
        assert outcome.route.service is service

    @pytest.mark.parametrize("path", ["/person", "/v/person", "/person/", "/v1"])
    def test_a_path_without_its_version_is_not_found(self, path: str) -> None:
        outcome = plan(WORLD, head(path))
        assert isinstance(outcome, Refusal)
        assert (outcome.endpoint, outcome.fault.status) == (None, 404)
        assert outcome.fault.code is FaultCode.NOT_FOUND

    @pytest.mark.parametrize(
        ("target", "others", "expected"),
        [
            ("/v1/person?version=2", (2, 2), ("1", "path")),
            ("/v1/person?version=x", ("x", "x"), ("1", "path")),
            ("/person/param?version=1", (2, 2), ("1", "query")),
            ("/person/param?version=1", ("x", "x"), ("1", "query")),
            ("/person/header?version=2", (1, 2), ("1", "header")),
            ("/person/header?version=x", (1, "x"), ("1", "header")),
            ("/person/accept?version=2", (2, 1), ("1", "accept")),
            ("/person/accept?version=x", ("x", 1), ("1", "accept")),
        ],
    )
    def test_versions_in_mechanisms_of_other_endpoints_are_ignored(
        self, target: str, others: tuple[object, object], expected: tuple[str, str]
    ) -> None:
        fields = ("X-API-VERSION", str(others[0])), ("Accept", VENDOR.format(others[1]))
        assert served(plan(WORLD, head(target, *fields)))[:2] == expected


class TestDefault:
    @pytest.mark.parametrize(
        ("accept", "version"),
        [
            ("*/*", "1"),
            ("application/json", "1"),
            ("*/*;q=0", "1"),
            (f"{VENDOR.format(2)};q=0", "1"),
            (f"{VENDOR.format('01')};q=0, */*", "1"),
            (f"{VENDOR.format(1)};q=0.001", "1"),
        ],
    )
    @pytest.mark.parametrize("path", ["/default/accept", "/default/header"])
    def test_the_default_serves_a_request_that_names_no_version(
        self, path: str, accept: str, version: str
    ) -> None:
        chosen = served(plan(WORLD, head(path, ("Accept", accept))))
        assert chosen[0] == version
        assert chosen[1] == ("accept" if "q=0.001" in accept else "default")

    @pytest.mark.parametrize("accept", [VENDOR.format(1) + ";q=0", VENDOR.format(1) + ";q=0, */*"])
    def test_the_default_does_not_serve_a_request_that_excludes_it(self, accept: str) -> None:
        outcome = plan(WORLD, head("/default/accept", ("Accept", accept)))
        assert refused(outcome) == (406, FaultCode.VERSION_MISSING)
        outcome = plan(WORLD, head("/default/header", ("Accept", accept)))
        assert refused(outcome) == (400, FaultCode.VERSION_MISSING)

    @pytest.mark.parametrize(
        ("accept", "called"), [("*/*", None), (VENDOR.format(1), VENDOR.format(1))]
    )
    def test_a_response_has_the_media_type_of_the_version_only_if_the_request_accepts_it(
        self, accept: str, called: str | None
    ) -> None:
        endpoint = person("/typed", ACCEPT, QUERY, default=V1)
        routes = {
            version: replace(route, content_type=VENDOR.format(version))
            for version, route in endpoint.routes.items()
        }
        world = snapshot([replace(endpoint, routes=routes)])
        todo = plan(world, head("/typed", ("Accept", accept)))
        assert isinstance(todo, Plan)
        assert todo.content_type == called
        todo = plan(world, head("/typed?version=1", ("Accept", "application/json")))
        assert isinstance(todo, Plan)
        assert todo.content_type is None
        todo = plan(world, head("/typed?version=1"))
        assert isinstance(todo, Plan)
        assert todo.content_type == VENDOR.format(1)

    def test_a_response_has_the_media_type_of_the_only_pattern(self) -> None:
        endpoint = person("/typed", ACCEPT)
        routes = {
            version: replace(route, content_type=VENDOR.format(version))
            for version, route in endpoint.routes.items()
        }
        world = snapshot([replace(endpoint, routes=routes)])
        todo = plan(world, head("/typed", ("Accept", VENDOR.format(2))))
        assert isinstance(todo, Plan)
        assert todo.content_type == VENDOR.format(2)

    def test_a_version_named_in_a_header_is_served_even_if_accept_excludes_it(self) -> None:
        fields = ("X-API-VERSION", "1"), ("Accept", f"{VENDOR.format(1)};q=0")
        assert served(plan(WORLD, head("/default/header", *fields)))[:2] == ("1", "header")

    def test_another_version_is_served_if_accept_excludes_the_default(self) -> None:
        accept = f"{VENDOR.format(1)};q=0, {VENDOR.format(2)}"
        assert served(plan(WORLD, head("/default/accept", ("Accept", accept))))[0] == "2"


class TestMethods:
    @MECHANISMS
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_get_and_head_are_planned_alike(self, mechanism: str, method: str) -> None:
        outcome = plan(WORLD, ask(mechanism, "2", method=method))
        assert outcome == plan(WORLD, ask(mechanism, "2"))
        assert served(outcome)[0] == "2"

    @pytest.mark.parametrize("version", ["1", "2", "3", "x"])
    @pytest.mark.parametrize("mechanism", ["query", "header", "accept"])
    def test_options_needs_no_supported_version(self, mechanism: str, version: str) -> None:
        outcome = plan(WORLD, ask(mechanism, version, method="OPTIONS"))
        assert outcome == Options(FOUR[mechanism], "GET, HEAD, OPTIONS", SUPPORTED.get(version))

    @pytest.mark.parametrize("version", ["1", "2"])
    def test_options_for_a_version_in_the_path_returns_the_version(self, version: str) -> None:
        outcome = plan(WORLD, ask("path", version, method="OPTIONS"))
        assert outcome == Options(BY_PATH, "GET, HEAD, OPTIONS", SUPPORTED[version])

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE"])
    @pytest.mark.parametrize(
        ("version", "code"), [("3", FaultCode.VERSION_UNKNOWN), ("x", FaultCode.VERSION_MALFORMED)]
    )
    def test_the_path_of_an_unsupported_version_is_not_found_for_any_method(
        self, version: str, code: FaultCode, method: str
    ) -> None:
        assert refused(plan(WORLD, ask("path", version, method=method))) == (404, code)

    @MECHANISMS
    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "X", ""])
    def test_a_method_that_the_endpoint_lacks_is_refused_with_405(
        self, mechanism: str, method: str
    ) -> None:
        outcome = plan(WORLD, ask(mechanism, "1", method=method))
        assert isinstance(outcome, Refusal)
        assert outcome.endpoint is FOUR[mechanism]
        assert (outcome.fault.status, outcome.fault.code) == (405, FaultCode.METHOD_NOT_ALLOWED)
        assert outcome.fault.fields == ((b"Allow", b"GET, HEAD, OPTIONS"),)
        assert outcome.fault.detail == "This endpoint answers GET, HEAD, OPTIONS."
        assert outcome.fault.supported is None

    @pytest.mark.parametrize(
        ("path", "method", "allow"),
        [
            ("/users", "OPTIONS", "POST, OPTIONS"),
            ("/users", "GET", "POST, OPTIONS"),
            ("/users", "HEAD", "POST, OPTIONS"),
            ("/users/7", "OPTIONS", "GET, HEAD, OPTIONS"),
            ("/users/7", "DELETE", "GET, HEAD, OPTIONS"),
            ("/own", "POST", "GET, OPTIONS"),
        ],
    )
    def test_allow_lists_the_methods_of_the_endpoint(
        self, path: str, method: str, allow: str
    ) -> None:
        outcome = plan(WORLD, head(path, method=method))
        if method == "OPTIONS":
            assert isinstance(outcome, Options)
            assert outcome.allow == allow
        else:
            assert isinstance(outcome, Refusal)
            assert outcome.fault.fields == ((b"Allow", allow.encode()),)

    @pytest.mark.parametrize(
        ("path", "method", "allow"),
        [
            ("/own?version=1", "OPTIONS", "GET, OPTIONS"),
            ("/files/a", "OPTIONS", ""),
            ("/files/a", "TRACE", "OPTIONS"),
            ("/users", "TRACE", "POST, OPTIONS"),
            ("/traced", "OPTIONS", "TRACE, OPTIONS"),
            ("/traced", "TRACE", "OPTIONS"),
        ],
    )
    def test_a_request_with_max_forwards_zero_is_not_forwarded(
        self, path: str, method: str, allow: str
    ) -> None:
        """RFC 9110, section 7.6.2: only OPTIONS and TRACE are limited."""
        world = snapshot([OWN_OPTIONS, FILES, USERS_POST, users("/traced", ("TRACE",))])
        last = "Max-Forwards", "0"
        outcome = plan(world, head(path, last, method=method))
        if method == "OPTIONS":
            assert isinstance(outcome, Options)
            assert outcome.allow == allow
        else:
            assert isinstance(outcome, Refusal)
            assert outcome.fault.status == 405
            assert outcome.fault.fields == ((b"Allow", allow.encode()),)
        assert plan(world, head("/own?version=1", last)) == plan(world, head("/own?version=1"))
        assert isinstance(plan(world, head("/files/a", ("Max-Forwards", "1"), method=method)), Plan)

    @pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PROPFIND"])
    def test_any_method_is_forwarded_without_configured_methods(self, method: str) -> None:
        outcome = plan(WORLD, head("/files/a/b?", method=method))
        assert isinstance(outcome, Plan)
        assert (outcome.chosen_by, outcome.target) == (None, "/files/a/b?")

    @pytest.mark.parametrize("path", ["/open", "/own"])
    def test_options_without_a_version_is_forwarded_to_the_newest_version(self, path: str) -> None:
        assert served(plan(WORLD, head(path, method="OPTIONS"))) == ("2", "newest", "/person")

    @pytest.mark.parametrize(
        ("target", "fields", "version"),
        [("/open", (("X-API-VERSION", "1"),), "1"), ("/own?version=1", (), "1")],
    )
    def test_options_that_names_a_version_is_forwarded_to_this_version(
        self, target: str, fields: tuple[tuple[str, str], ...], version: str
    ) -> None:
        assert served(plan(WORLD, head(target, *fields, method="OPTIONS")))[0] == version

    @pytest.mark.parametrize(
        ("target", "code"),
        [
            ("/own?version=3", FaultCode.VERSION_UNKNOWN),
            ("/own?version=x", FaultCode.VERSION_MALFORMED),
        ],
    )
    def test_options_with_an_invalid_version_is_refused(self, target: str, code: FaultCode) -> None:
        assert refused(plan(WORLD, head(target, method="OPTIONS"))) == (400, code)

    def test_any_method_other_than_options_needs_a_version(self) -> None:
        assert refused(plan(WORLD, head("/open", method="POST"))) == (
            400,
            FaultCode.VERSION_MISSING,
        )


class TestVary:
    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE"])
    @pytest.mark.parametrize("version", ["1", "3", "01"])
    @pytest.mark.parametrize(
        ("mechanism", "vary"),
        [("path", None), ("query", None), ("header", b"X-API-VERSION"), ("accept", b"Accept")],
    )
    def test_every_decision_has_the_vary_of_its_endpoint(
        self, mechanism: str, vary: bytes | None, version: str, method: str
    ) -> None:
        outcome = plan(WORLD, ask(mechanism, version, method=method))
        assert outcome.endpoint is not None
        expected = [] if vary is None else [(b"Vary", vary)]
        assert headers.with_vary([], outcome.endpoint.vary_of(outcome.version)) == expected


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            *("", "/", "*", "/v1/person/", "/v1//person", "//v1/person", "/v1/./person"),
            *("/x/../v1/person", "/v1/person/..", "/v1/%70erson", "/v1/Person", "/V1/person"),
            *("/person/param/", "/person//param", "/person/./param", "/person/header/x", "/person"),
            *("/users/", "/users//", "/users/7/", "/users/..", "/users/%2e%2E", "/healthz"),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "OPTIONS", "DELETE"])
    def test_a_path_without_an_endpoint_is_not_found_for_any_method(
        self, path: str, method: str
    ) -> None:
        outcome = plan(WORLD, head(f"{path}?version=1", method=method))
        assert isinstance(outcome, Refusal)
        assert outcome.endpoint is None
        assert (outcome.fault.status, outcome.fault.code) == (404, FaultCode.NOT_FOUND)
        assert outcome.fault.detail == "No endpoint has this path."
        assert outcome.fault.supported is None


class TestTargets:
    @pytest.mark.parametrize(
        ("target", "asked"),
        [
            ("/users/7", "/users/7"),
            ("/users/7?", "/users/7?"),
            ("/users/7?a=1&a=2#", "/users/7?a=1&a=2#"),
            ("/users/7?a=%2f&b=+&c", "/users/7?a=%2f&b=+&c"),
            ("/users/7?a?b", "/users/7?a?b"),
            ("/users/a%2Fb%7e", "/users/a%2Fb%7e"),
            ("/files/a/b%20c/é", "/files/a/b%20c/é"),
            ("/v1/person?x=%31", "/person?x=%31"),
            ("/v1/person?", "/person?"),
        ],
    )
    def test_path_and_query_are_forwarded_byte_for_byte(self, target: str, asked: str) -> None:
        outcome = plan(WORLD, head(target))
        assert isinstance(outcome, Plan)
        assert outcome.target == asked

    @pytest.mark.parametrize(
        ("upstream", "target", "asked"),
        [
            ("/person", "/v1/x/a%2F?q", "/person?q"),
            ("/v{version}/{kind}", "/v1/x/a%2F?q", "/v2/x?q"),
            ("/{id}-/{kind}/{version}", "/v1/x/a%2F", "/a%2F-/x/2"),
            (None, "/v1/x/a%2F?q", "/v1/x/a%2F?q"),
        ],
    )
    def test_the_path_to_the_service_names_the_service_version(
        self, upstream: str | None, target: str, asked: str
    ) -> None:
        link = VersionLink(V1, V2, ())
        route = Route(
            *(V1, V2, PERSON_V2, None if upstream is None else parse_template(upstream)),
            request=Conversion((link,), Direction.UP),
            response=Conversion((link,), Direction.DOWN),
        )
        endpoint = replace(person("/v{version}/{kind}/{id}", PATH), routes={V1: route})
        outcome = plan(snapshot([endpoint]), head(target))
        assert outcome == Plan(endpoint, route, "path", asked)

    def test_the_query_to_the_service_names_the_service_version(self) -> None:
        endpoint = person("/person", QUERY)
        route = replace(
            endpoint.routes[V1],
            service_version=V2,
            request=Conversion((VersionLink(V1, V2, ()),), Direction.UP),
            request_rewrite=VersionRewrite.of((QUERY,), "2"),
        )
        outcome = plan(
            snapshot([replace(endpoint, routes={V1: route})]), head("/person?a&version=1")
        )
        assert isinstance(outcome, Plan)
        assert outcome.target == "/person?a&version=2"

    def test_a_request_for_an_api_without_versions_takes_its_only_route(self) -> None:
        outcome = plan(WORLD, head("/users", method="POST"))
        assert outcome == Plan(USERS_POST, Route(None, None, USERS), None, "/users")


paths = st.sampled_from(
    ["/v1/person", "/person/param", "/person/header", "/person/accept", "/any", "/open"]
)
texts = st.text(st.sampled_from('/v12.%{}?&=,;+- "\\é\0')) | st.text()


class TestFields:
    SAID = ((b"Warning", b"1"),)

    def saying(self) -> Snapshot:
        endpoint = person("/person", QUERY, methods=("GET",))
        route = replace(endpoint.routes[V1], fields=self.SAID)
        return snapshot([replace(endpoint, routes={**endpoint.routes, V1: route})])

    @pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT"])
    def test_the_header_fields_of_a_version_are_in_responses_to_all_methods(
        self, method: str
    ) -> None:
        for version, said in (("1", self.SAID), ("2", ())):
            outcome = plan(self.saying(), head(f"/person?version={version}", method=method))
            assert (outcome.version, outcome.fields) == (SUPPORTED[version], said)

    @pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT"])
    def test_a_response_without_a_selected_version_has_no_header_fields_of_a_version(
        self, method: str
    ) -> None:
        outcome = plan(self.saying(), head("/person?version=3", method=method))
        assert (outcome.version, outcome.fields) == (None, ())


class TestEnding:
    TERMS = VersionLifecycle(V1, 50.0, 100.0, exempt={"acme": 200.0})
    NEXT = Successor(V2, None, parse_template("/v{version}/person"))
    SAID = ((b"Deprecation", b"@50"), (b"Sunset", b"Thu, 01 Jan 1970 00:01:40 GMT"))
    LINK = ((b"Link", b'</v2/person>; rel="successor-version"'),)

    def ending(self, *windows: CompiledWindow, served: bool = True) -> Snapshot:
        endpoint = person("/v{version}/person", PATH, methods=("GET", "POST"))
        ending = self.TERMS.at_endpoint((self.NEXT,))
        brownout = VersionBrownout(("person", "1"), windows) if windows else None
        route = replace(endpoint.routes[V1], lifecycle=ending, brownout=brownout)
        routes: dict[Version | None, Route] = {**endpoint.routes, V1: route}
        if not served:
            del routes[V1]
        selector = Selector((PATH,), SUPPORTED, terms={"1": self.TERMS})
        retired: dict[Version | None, EndpointLifecycle] = {} if served else {V1: ending}
        return snapshot([replace(endpoint, routes=routes, selector=selector, retired=retired)])

    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS"])
    @pytest.mark.parametrize("now", [0, 99, 100])
    def test_every_response_announces_the_end_of_its_version(self, now: float, method: str) -> None:
        outcome = plan(self.ending(), head("/v1/person", method=method), RequestContext("", now))
        assert (outcome.version, outcome.fields) == (V1, self.SAID + self.LINK)
        outcome = plan(self.ending(), head("/v2/person", method=method), RequestContext("", now))
        assert (outcome.version, outcome.fields) == (V2, ())

    @pytest.mark.parametrize(
        ("client", "now", "over"),
        [("", 99, False), ("", 100, True), ("acme", 199, False), ("acme", 200, True)],
    )
    def test_a_version_is_refused_after_its_end(self, client: str, now: float, over: bool) -> None:
        outcome = plan(self.ending(), head("/v1/person"), RequestContext(client, now))
        assert isinstance(outcome, Refusal if over else Plan)
        if isinstance(outcome, Refusal):
            assert outcome.fault.code is FaultCode.VERSION_RETIRED
            assert outcome.fault.supported == ("2",)
            assert outcome.fault.successor == {"version": "2", "path": "/v2/person"}
            assert outcome.version == V1

    def test_an_ended_version_without_a_route_is_refused_in_the_same_way(self) -> None:
        world = self.ending(served=False)
        outcome = plan(world, head("/v1/person"), RequestContext("", 100))
        assert isinstance(outcome, Refusal)
        assert outcome[1:] == plan(self.ending(), head("/v1/person"), RequestContext("", 100))[1:]
        allowed = plan(world, head("/v1/person", method="OPTIONS"), RequestContext("", 100))
        assert isinstance(allowed, Options)

    def test_a_request_in_a_brownout_is_refused(self) -> None:
        world = self.ending(CompiledWindow(10, 20))
        for now in (9, 20):
            assert isinstance(plan(world, head("/v1/person"), RequestContext("", now)), Plan)
        outcome = plan(world, head("/v1/person"), RequestContext("", 10))
        assert isinstance(outcome, Refusal)
        assert (outcome.fault.status, outcome.fault.code) == (503, FaultCode.VERSION_BROWNOUT)
        assert outcome.fault.fields == ((b"Retry-After", b"10"),)
        assert outcome.fault.successor == {"version": "2", "path": "/v2/person"}
        assert (outcome.version, outcome.fields) == (V1, self.SAID + self.LINK)

    def test_the_end_of_a_version_takes_precedence_over_a_brownout(self) -> None:
        outcome = plan(
            self.ending(CompiledWindow(10, 200)), head("/v1/person"), RequestContext("", 150)
        )
        assert isinstance(outcome, Refusal)
        assert outcome.fault.code is FaultCode.VERSION_RETIRED

    def test_a_version_without_a_lifecycle_may_have_a_brownout(self) -> None:
        endpoint = person("/person", QUERY)
        route = replace(
            endpoint.routes[V1], brownout=VersionBrownout(("person", "1"), (CompiledWindow(0, 10),))
        )
        world = snapshot([replace(endpoint, routes={**endpoint.routes, V1: route})])
        outcome = plan(world, head("/person?version=1"))
        assert isinstance(outcome, Refusal)
        assert outcome.fault.successor is None

    def test_options_without_a_version_gets_the_newest_version_that_has_not_ended(self) -> None:
        endpoint = person("/person", QUERY, methods=None)
        for over, version in ((("2",), V1), (("1",), V2), (("1", "2"), V2), ((), V2)):
            terms = {label: VersionLifecycle(SUPPORTED[label], sunset=100) for label in over}
            selector = Selector((QUERY,), SUPPORTED, terms=terms)
            world = snapshot([replace(endpoint, selector=selector)])
            outcome = plan(world, head("/person", method="OPTIONS"), RequestContext("", 100))
            assert outcome.version == version


@LAW
@given(
    st.sampled_from(["GET", "HEAD", "OPTIONS", "POST"]) | texts,
    paths | texts,
    st.none() | texts | st.just("version=1"),
    st.lists(
        st.tuples(st.sampled_from(["X-API-VERSION", "Accept"]), st.just("1") | texts), max_size=3
    ),
)
def test_every_request_head_gets_a_decision(
    method: str, path: str, query: str | None, fields: list[tuple[str, str]]
) -> None:
    request = head("/", *fields)._replace(method=method, path=path, query=query)
    outcome = plan(WORLD, request)
    assert outcome == plan(WORLD, request)
    if isinstance(outcome, Refusal):
        assert 400 <= outcome.fault.status < 500
    elif isinstance(outcome, Plan):
        assert outcome.route in outcome.endpoint.routes.values()
        assert outcome.target.partition("?")[2] == (query or "")


def pinned() -> Snapshot:
    endpoints = []
    for endpoint in (BY_QUERY, BY_ACCEPT):
        assert endpoint.selector is not None
        selector = replace(endpoint.selector, default=V2, pins={"acme": V1})
        endpoints.append(replace(endpoint, selector=selector))
    return snapshot(endpoints)


class TestPins:
    def test_a_pin_does_not_serve_a_request_that_excludes_its_version(self) -> None:
        no = head("/person/accept", ("Accept", f"{VENDOR.format(1)};q=0"))
        assert refused(plan(pinned(), no, RequestContext("acme"))) == (
            406,
            FaultCode.VERSION_MISSING,
        )
        assert isinstance(plan(pinned(), no, RequestContext("other")), Plan)

    def test_options_from_a_pinned_client_gets_the_pinned_version(self) -> None:
        chosen = plan(pinned(), head("/person/param", method="OPTIONS"), RequestContext("acme"))
        assert isinstance(chosen, Options)
        assert chosen.version == V1


class TestMatched:
    def nearest(self, endpoint: Endpoint, **aliases: Version) -> Snapshot:
        assert endpoint.selector is not None
        matching = Matching((V1, V2), nearest_lower=True, aliases=aliases)
        template = endpoint.template if "version" in endpoint.template.captures else None
        routes = {
            key: replace(route, upstream_path=template) for key, route in endpoint.routes.items()
        }
        selector = replace(endpoint.selector, matching=matching)
        return snapshot([replace(endpoint, selector=selector, routes=routes)])

    def test_the_path_to_the_service_names_the_matched_version(self) -> None:
        chosen = plan(self.nearest(BY_PATH), head("/v9/person"))
        assert isinstance(chosen, Plan)
        assert (chosen.version, chosen.chosen_by, chosen.target) == (V2, "path", "/v2/person")

    @pytest.mark.parametrize(
        ("wants", "called"),
        [
            (VENDOR.format(9), 2),
            (VENDOR.format("latest"), "latest"),
            (f"{VENDOR.format(2)};q=0.1, {VENDOR.format('latest')};q=0.2", "latest"),
            (f"{VENDOR.format('latest')};q=0.1, {VENDOR.format(2)}", 2),
            (f"{VENDOR.format('foo')}, {VENDOR.format('latest')};q=0.5", "latest"),
        ],
    )
    def test_the_media_type_of_a_response_has_the_accepted_name_of_its_version(
        self, wants: str, called: int | str
    ) -> None:
        routes = BY_ACCEPT.routes.items()
        typed = {key: replace(route, content_type=VENDOR.format(2)) for key, route in routes}
        named = self.nearest(replace(BY_ACCEPT, routes=typed), latest=V2)
        chosen = plan(named, head("/person/accept", ("Accept", wants)))
        assert isinstance(chosen, Plan)
        assert (chosen.version, chosen.content_type) == (V2, VENDOR.format(called))

    def test_a_matched_version_does_not_serve_a_request_that_excludes_it(self) -> None:
        wants = f"{VENDOR.format(9)}, {VENDOR.format(2)};q=0"
        outcome = plan(self.nearest(BY_ACCEPT), head("/person/accept", ("Accept", wants)))
        assert refused(outcome) == (406, FaultCode.VERSION_MISSING)


class TestConverted:
    LINK = VersionLink(
        V1, V2, (), query=(rename_parameter("page", "p"), add_parameter("size", "20"))
    )

    def rules(self) -> Snapshot:
        route = replace(BY_PATH.routes[V1], request=Conversion((self.LINK,), Direction.UP))
        return snapshot([replace(BY_PATH, routes={**BY_PATH.routes, V1: route})])

    @pytest.mark.parametrize(
        ("asked", "target"),
        [
            ("/v1/person", "/person?size=20"),
            ("/v1/person?p=1&x=%41", "/person?page=1&x=%41&size=20"),
            ("/v1/person?p&size=", "/person?page&size="),
            ("/v2/person?p=1", "/person?p=1"),
        ],
    )
    def test_a_converted_query_is_part_of_the_target(self, asked: str, target: str) -> None:
        chosen = plan(self.rules(), head(asked))
        assert isinstance(chosen, Plan)
        assert chosen.target == target

    def test_a_query_that_does_not_fit_its_version_is_refused(self) -> None:
        outcome = plan(self.rules(), head("/v1/person?p=1&page=secret"))
        assert isinstance(outcome, Refusal)
        assert (outcome.fault.status, outcome.fault.code) == (400, FaultCode.UNCONVERTIBLE_REQUEST)
        assert outcome.version == V1
        assert outcome.fault.detail == (
            "The request does not fit this version: the query parameter 'page': already exists,"
            " and the query parameter 'p' would become it."
        )
