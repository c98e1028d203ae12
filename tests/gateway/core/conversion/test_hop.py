"""Hops: which links between two versions a request takes."""

from gateway.core.conversion.hop import Hop
from gateway.core.conversion.operations.operation import MappedOperation, parse_operation
from gateway.core.conversion.version_link import VersionLink
from gateway.core.versions.version import Version

V1, V2 = Version(1), Version(2)
PAY = MappedOperation(parse_operation("PATCH /payments"), parse_operation("PUT /pay"), {202: 200})


def hop(*links: VersionLink) -> Hop:
    """Return the hop up by some links."""
    return Hop(V1, V2, links, None)


def test_methods_of_either_version() -> None:
    patch, get = (VersionLink(V1, V2, (), methods=frozenset({each})) for each in ("PATCH", "GET"))
    both = hop(patch, get)
    assert both.choice(PAY, "PUT", "PATCH") == (PAY, frozenset({"PATCH"}))
    assert both.choice(None, "HEAD") == (None, frozenset({"GET"}))
    assert hop(get, VersionLink(V1, V2, (), methods=frozenset({"HEAD"}))).choice(None, "HEAD") == (
        None,
        frozenset({"HEAD"}),
    )
    first, second = both.chosen(both.choice(PAY, "PUT", "PATCH"))
    assert (first.status, first.changes) == ({202: 200}, ())
    assert (second.methods, second.operations) == (None, None)
    assert [*both.chosen(both.choice(None, "PUT"))] == []


def test_a_status_both_ways() -> None:
    links = (
        VersionLink(V1, V2, (), methods=frozenset({"GET"}), status={404: 410}),
        VersionLink(V1, V2, (), status={201: 200}),
    )
    assert hop(*links).status("PUT", 200) == 201
    assert Hop(V2, V1, links, None).status("PUT", 201) == 200
    assert Hop(V2, V1, links, None).status("PUT", 404) == 404
    assert Hop(V2, V1, links, None).status("GET", 404) == 410
