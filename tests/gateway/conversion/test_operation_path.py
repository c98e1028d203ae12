"""Operation paths: the operations of a request in every version between client and service."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion, compose
from gateway.conversion.changes.default import default
from gateway.conversion.changes.rename import rename, rename_parameter
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN
from gateway.conversion.operation import MappedOperation, Substitute, parse_operation
from gateway.conversion.operation_path import OperationPath, find_link, find_operation_path
from gateway.conversion.parameter_change import rewritten
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.http.upstream.service import Service
from gateway.versions.version import Version
from tests.gateway.world import LAW

V1, V2, V3 = LADDER = tuple(Version(each, str(each)) for each in (1, 2, 3))
STATS = Service("stats", ())


def operation(newer: str | None, older: str | None, *pairs: tuple[int, int]) -> MappedOperation:
    """Return an operation. If one version lacks it, the service STATS is its substitute."""
    new, old = (None if text is None else parse_operation(text) for text in (newer, older))
    return MappedOperation(new, old, dict(pairs), None if new and old else Substitute(STATS))


CREATE = operation("POST /bookings", "POST /create", (201, 200), (422, 400))
FIND = operation("GET /bookings/{id}", "GET /find?id={id}")
CHANGE = operation("PATCH /bookings/{id}", "PUT /booking/{id}")
MOVED = operation("/v{version}/stays/{rest*}", "/bookings/{rest*}")
GONE = operation(None, "GET /bookings/stats")
LINKS = {
    V1: [
        VersionLink(V1, V2, (), operations=(CREATE, FIND, CHANGE)),
        VersionLink(V1, V2, (rename((), ("b",), ("a",)),), operations=(CREATE,)),
        VersionLink(V1, V2, (rename((), ("d",), ("c",)),), methods=frozenset({"PATCH"})),
        VersionLink(
            V1, V2, (), query=(rename_parameter("with", "expand"),), methods=frozenset({"GET"})
        ),
        VersionLink(
            V1, V2, (), query=(rename_parameter("y", "x"),), on=frozenset({MessageKind.RESPONSE})
        ),
    ],
    V2: [
        VersionLink(V2, V3, (rename((), ("e",), ("b",)),), operations=(MOVED,)),
        VersionLink(V2, V3, (), operations=(GONE,)),
        VersionLink(V2, V3, (), status={409: 400}),
    ],
}


def operation_path(source: Version, target: Version, asked: str) -> OperationPath:
    method, _, target_text = asked.partition(" ")
    way, mark, query = target_text.partition("?")
    request = compose(LADDER, LINKS, source, target)
    response = compose(LADDER, LINKS, target, source)
    return find_operation_path(request, response, method, lambda _: way, query if mark else None)


def line(found: OperationPath) -> str:
    return f"{found.method} {found.path}" + ("" if found.query is None else f"?{found.query}")


@pytest.mark.parametrize(
    ("source", "target", "asked", "arrives"),
    [
        (V1, V2, "POST /create", "POST /bookings"),
        (V1, V3, "POST /create", "POST /bookings"),
        (V1, V2, "GET /find?id=7&expand=a", "GET /bookings/7?with=a"),
        (V1, V3, "HEAD /find?expand=a&id=7", "HEAD /v3/stays/7?with=a"),
        (V1, V3, "PUT /booking/7?expand=%41", "PATCH /v3/stays/7?expand=%41"),
        (V1, V3, "GET /other?", "GET /other?"),
        (V3, V1, "GET /v3/stays/7", "GET /find?id=7"),
        (V3, V2, "GET /v3/stays/7/8?x", "GET /bookings/7/8?x"),
        (V3, V1, "PATCH /v3/stays/7", "PUT /booking/7"),
        (V1, V3, "GET /bookings/stats", "GET /bookings/stats"),
        (V1, V3, "OPTIONS /find?id=7&expand=a", "OPTIONS /v3/stays/7?expand=a"),
        (V3, V1, "OPTIONS /v3/stays/7", "OPTIONS /find?id=7"),
        (V1, V3, "OPTIONS /other", "OPTIONS /other"),
    ],
)
def test_the_service_receives_a_request_for_the_operation_in_its_own_version(
    source: Version, target: Version, asked: str, arrives: str
) -> None:
    assert line(operation_path(source, target, asked)) == arrives


@pytest.mark.parametrize(
    ("way", "meant", "arrives", "service"),
    [
        ("/booking/7", "PUT", "OPTIONS /v3/stays/7", "PATCH"),
        ("/booking/7", None, "OPTIONS /v3/stays/7", "PATCH"),
        ("/booking/7", "GET", "OPTIONS /booking/7", None),
        ("/other", "GET", "OPTIONS /other", None),
    ],
)
def test_an_options_request_is_sent_to_the_path_of_the_operation_that_it_asks_about(
    way: str, meant: str | None, arrives: str, service: str | None
) -> None:
    there, back = compose(LADDER, LINKS, V1, V3), compose(LADDER, LINKS, V3, V1)
    found = find_operation_path(there, back, "OPTIONS", lambda _: way, None, meant=meant)
    assert (line(found), found.meant) == (arrives, service)
    assert CHANGE not in found.operations  # the changes of CHANGE do not apply to OPTIONS


@pytest.mark.parametrize(
    ("given", "status", "own"),
    [
        (Substitute(None, 410, "Ask version 2.", "GONE"), 410, ("Ask version 2.", "GONE")),
        (Substitute(STATS), 404, ("", None)),
        (None, 404, ("", None)),
    ],
)
def test_an_operation_that_only_the_next_version_has_is_refused(
    given: Substitute | None, status: int, own: tuple[str, str | None]
) -> None:
    new = MappedOperation(parse_operation("GET /v{version}/new"), None, {}, given)
    links = {V1: [VersionLink(V1, V2, (), operations=(new,))]}
    there, back = compose((V1, V2), links, V1, V2), compose((V1, V2), links, V2, V1)
    found = find_operation_path(there, back, "GET", lambda version: f"/v{version}/new", None)
    usual = "This operation belongs to another version."
    assert found.substitute == Substitute(None, status, *own, usual)
    other = find_operation_path(there, back, "GET", lambda version: f"/v{version}/old", None)
    assert (other.substitute, line(other)) == (None, "GET /v2/old")


OWN = operation("GET /orders", "GET /rest/orders.json")
ONE = operation("/orders/{id}", "/rest/orders/{id}.json")
REFUSED = [
    ("GET", "/rest/orders.json", None),
    ("DELETE", "/rest/orders.json", (405, ("GET", "HEAD"))),
    ("GET", "/rest/reports.json", (404, ())),
    ("OPTIONS", "/rest/orders.json", None),
    ("OPTIONS", "/rest/fax", None),
    ("OPTIONS", "/rest/reports.json", (404, ())),
    ("POST", "/rest/fax", (405, ("GET", "HEAD"))),
    ("PUT", "/rest/fax", (410, ())),
    ("PATCH", "/rest/lone", (405, ())),
    ("POST", "/rest/orders/7.json", None),
    ("POST", "/rest/orders/7:cancel.json", (404, ())),
    ("POST", "/rest/orders/all:close.json", None),
]


@pytest.mark.parametrize(("method", "way", "refused"), REFUSED)
def test_a_refused_path_with_operations_for_other_methods_gives_405(
    method: str, way: str, refused: tuple[int, tuple[str, ...]] | None
) -> None:
    """Cases: everything below a path, a single method, or a path that a capture changes."""
    declared = [
        *(OWN, ONE),
        operation("GET /faxes", "GET /rest/fax"),
        refusal(None, "/rest/{rest*}"),
        refusal(None, "POST /rest/fax", 405),
        refusal(None, "PUT /rest/fax", 410),
        refusal(None, "PATCH /rest/lone", 405),
        refusal("/orders/{id}:cancel", None),
        refusal("/orders/{number}", None),
    ]
    links = {V1: [VersionLink(V1, V2, (), operations=tuple(declared))]}
    there, back = compose((V1, V2), links, V1, V2), compose((V1, V2), links, V2, V1)
    given = find_operation_path(there, back, method, lambda _: way, None).substitute
    assert (given and (given.status, given.methods)) == refused


def test_a_method_that_only_the_newer_version_has_is_refused_with_405() -> None:
    declared = (
        operation("GET /photos/{id}", "GET /photos/{id}"),
        refusal("PUT /photos/{id}", None, 405),
    )
    links = {V1: [VersionLink(V1, V2, (), operations=declared)]}
    there, back = compose((V1, V2), links, V1, V2), compose((V1, V2), links, V2, V1)
    given = find_operation_path(there, back, "PUT", lambda _: "/photos/7", None).substitute
    assert given is not None
    assert (given.status, given.methods) == (405, ("GET", "HEAD"))


@pytest.mark.parametrize(
    ("method", "way", "refused"),
    [
        ("GET", "/items/7", None),
        ("HEAD", "/items/7", None),
        ("PUT", "/items/7", (405, ("GET", "HEAD"))),
        ("HEAD", "/items", (405, ("POST",))),
        ("GET", "/items/7/parts", (410, ())),
        ("GET", "/items/7:close", (404, ())),  # the captured value changes the operation
        ("PUT", "/items/7:close", (405, ("GET", "HEAD"))),
    ],
)
def test_a_path_that_only_the_newer_version_has_is_refused(
    method: str, way: str, refused: tuple[int, tuple[str, ...]] | None
) -> None:
    declared = (
        operation("GET /things/{id}", "GET /items/{id}"),
        operation("POST /things", "POST /items"),
        refusal("/items", None),
        refusal("/items/{rest*}", None, 410),
        refusal("/things/{id}:close", None),
    )
    links = {V1: [VersionLink(V1, V2, (), operations=declared)]}
    there, back = compose((V1, V2), links, V1, V2), compose((V1, V2), links, V2, V1)
    given = find_operation_path(there, back, method, lambda _: way, None).substitute
    assert (given and (given.status, given.methods)) == refused


def refusal(newer: str | None, older: str | None, status: int = 404) -> MappedOperation:
    new, old = (None if text is None else parse_operation(text) for text in (newer, older))
    return MappedOperation(new, old, {}, Substitute(None, status))


def test_a_body_that_only_one_version_has_is_dropped_or_created() -> None:
    closed = MappedOperation(
        parse_operation("PATCH /bookings/{id}/state"),
        parse_operation("POST /close?id={id}"),
        body_in_newer=True,
    )
    links = {
        V1: [
            VersionLink(V1, V2, (), operations=(closed,)),
            VersionLink(V1, V2, (default((), ("state",), "closed"),), operations=(closed,)),
        ],
        V2: [VersionLink(V2, V3, (rename((), ("status",), ("state",)), default((), ("x",), 1)))],
    }
    up, down = compose(LADDER, links, V1, V3), compose(LADDER, links, V3, V1)
    found = find_operation_path(up, down, "POST", lambda _: "/close", "id=7")
    assert line(found) == "PATCH /bookings/7/state"
    assert body(found.request.made("PATCH"), {}) == {"status": "closed"}
    assert body(found.request.made("POST"), {}) == {"status": "closed", "x": 1}
    assert found.request.made("HEAD") is None
    assert (found.request.drops_body, found.response.drops_body) == (False, True)
    assert found.response.made("POST") is None
    other = find_operation_path(up, down, "POST", lambda _: "/other", None).request
    assert (other.made("POST"), other.drops_body) == (None, False)


def body(conversion: BodyConversion | None, document: object) -> object:
    assert conversion is not None
    return conversion.convert(document, PLAIN)


@pytest.mark.parametrize("value", ["..", "%2e%2e", "..%2Fadmin", "."])
def test_a_captured_dot_segment_is_refused(value: str) -> None:
    with pytest.raises(ConversionError, match="'id' is a dot segment"):
        operation_path(V1, V2, f"GET /find?id={value}")


@pytest.mark.parametrize(
    ("written", "moved"),
    [
        ("/v3/stays/7?with=1", "/find?id=7&expand=1"),
        ("/v3/stays/7/rooms", "/bookings/7/rooms"),
        ("/bookings", "/create"),
        ("/other?with=1", "/other?expand=1"),
    ],
)
def test_a_link_of_the_service_is_converted_to_the_path_of_the_client(
    written: str, moved: str
) -> None:
    path, _, query = written.partition("?")
    down, up = compose(LADDER, LINKS, V3, V1), compose(LADDER, LINKS, V1, V3)
    found = find_link(down, up, lambda _: path, query or None)
    assert found is not None
    assert line(found).partition(" ")[2] == moved


def test_a_link_with_a_get_operation_in_every_version_is_looked_up_only_once() -> None:
    down, up = compose(LADDER, LINKS, V3, V1), compose(LADDER, LINKS, V1, V3)
    asked: list[Version] = []

    def path(version: Version) -> str:
        asked.append(version)
        return "/v3/stays/7"

    found = find_link(down, up, path, None)
    assert found is not None
    assert all(found.operations)
    assert asked == [V3]


def test_a_link_to_an_operation_that_the_other_version_lacks_returns_none() -> None:
    down, up = compose(LADDER, LINKS, V3, V1), compose(LADDER, LINKS, V1, V3)
    assert find_link(up, down, lambda _: "/bookings/stats", None) is None


def test_a_downgrade_uses_the_first_of_several_older_operations() -> None:
    pairs = [("GET /a/{id}", "GET /b/{id}"), ("GET /a/{id}", "GET /b/{id}.csv")]
    links = {V1: [VersionLink(V1, V2, (), operations=tuple(operation(*pair) for pair in pairs))]}
    down, up = compose((V1, V2), links, V2, V1), compose((V1, V2), links, V1, V2)
    assert find_operation_path(up, down, "GET", lambda _: "/b/7", None).path == "/a/7"
    assert find_operation_path(up, down, "GET", lambda _: "/b/7.csv", None).path == "/a/7"
    assert find_operation_path(down, up, "GET", lambda _: "/a/7", None).path == "/b/7"


def test_a_link_to_a_post_operation_is_converted() -> None:
    pairs = [("/orders/{id}", "/order/o_{id}"), ("POST /orders/search", "POST /order/find")]
    links = {V1: [VersionLink(V1, V2, (), operations=tuple(operation(*pair) for pair in pairs))]}
    down, up = compose((V1, V2), links, V2, V1), compose((V1, V2), links, V1, V2)
    found = find_link(down, up, lambda _: "/orders/search", None)
    assert found is not None
    assert line(found) == "POST /order/find"


texts = st.text(st.sampled_from("aé/ %.+&="), min_size=1, max_size=3).filter(
    lambda text: "." not in text
)


@LAW
@given(
    texts,
    st.sampled_from(
        [
            "GET /find?id={}",
            "PUT /booking/{}",
            "POST /create?x={}",
            "DELETE /bookings/{}",
            "GET /{}",
        ]
    ),
)
def test_an_operation_path_over_two_steps_equals_both_steps_in_sequence(
    text: str, form: str
) -> None:
    asked = form.format(quote(text, safe=""))
    step = line(operation_path(V1, V2, asked))
    assert line(operation_path(V1, V3, asked)) == line(operation_path(V2, V3, step))


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("/find?id=1&expand=x", "the query parameter 'expand'"),
        ("/all?expand=x", "the query parameter 'expand'"),
        ("/bookings/x", "the path"),
    ],
)
def test_an_error_names_the_parameter_or_path_that_the_client_sent(asked: str, place: str) -> None:
    taken = operation("GET /all?no={id}", "GET /bookings/{id}")
    number = rewritten("with", int, str), rewritten("no", int, str)  # type: ignore[arg-type]
    links = {
        V1: [
            VersionLink(V1, V2, (), operations=(FIND, taken)),
            VersionLink(V1, V2, (), query=(rename_parameter("with", "expand"),)),
        ],
        V2: [VersionLink(V2, V3, (), query=number)],
    }
    way, back = compose(LADDER, links, V1, V3), compose(LADDER, links, V3, V1)
    path, _, query = asked.partition("?")
    with pytest.raises(ConversionError, match=f"^{place}: invalid"):
        find_operation_path(way, back, "GET", lambda _: path, query or None)
