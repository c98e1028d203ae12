"""QueryWalk: a query as each version on the way has it."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.rename import Renamed
from gateway.conversion.conversion_error import Beside
from gateway.conversion.message import QueryStep, QueryWalk
from gateway.conversion.parameter_change import in_direction, parse_query, write_query
from gateway.versions.version import Version
from tests.gateway.world import LAW

V1, V2, V3 = VERSIONS = tuple(map(Version, (1, 2, 3)))
HOPS = (
    QueryStep(V1, V2, in_direction([Renamed("b", "a")], upwards=True), frozenset({"id"}), ()),
    QueryStep(
        V2,
        V3,
        in_direction([Renamed("c", "b")], upwards=True),
        frozenset(),
        tuple(parse_query("do=x")),
    ),
)
WALK = QueryWalk(parse_query("a=1&id=7"), HOPS)


def test_at_each_version() -> None:
    assert [write_query(WALK.at(version)) for version in VERSIONS] == [
        "a=1&id=7",
        "b=1",
        "do=x&c=1",
    ]
    assert WALK.service == WALK.at(V3)


def test_onward_from_each_version() -> None:
    found = [write_query(WALK.onward(version, parse_query("a=2&b=3"))) for version in VERSIONS[1:]]
    assert found == ["do=x&a=2&c=3", "a=2&b=3"]
    down = QueryWalk(
        [], (QueryStep(V3, V2, in_direction([Renamed("c", "b")], upwards=False)), QueryStep(V2, V1))
    )
    assert write_query(down.onward(V3, parse_query("c=1"))) == "b=1"
    assert write_query(down.onward(V2, parse_query("c=1"))) == "c=1"
    assert QueryWalk([], ()).onward(V1, parse_query("a")) == parse_query("a")


def test_a_hop() -> None:
    assert WALK.version_step(V1, V2) is HOPS[0]
    assert WALK.version_step(V2, V1) == QueryStep(V2, V1)


@LAW
@given(st.lists(st.sampled_from(["a=1", "b=2", "x=3"]), unique=True, max_size=1))
def test_the_whole_way_is_its_steps(pairs: list[str]) -> None:
    walk = QueryWalk(parse_query("&".join(pairs)), HOPS)
    assert all(walk.onward(version, walk.at(version)) == walk.service for version in VERSIONS)


def test_where_a_parameter_was() -> None:
    first, second = HOPS
    assert second.origin(Beside("query parameter", ("c",))) == Beside("query parameter", ("b",))
    assert second.origin(Beside("query parameter", ("do",))) == Beside("path")
    assert second.origin(Beside("query parameter", ("c", "do"))) == Beside(
        "query parameter", ("b",)
    )
    moved = first._replace(added=parse_query("no=1"))
    assert moved.origin(Beside("query parameter", ("no",))) == Beside("query parameter", ("id",))
    assert moved.origin(Beside("header field", ("no",))) == Beside("header field", ("no",))
    assert moved.origin(("no",)) == ("no",)
