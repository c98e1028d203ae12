"""Hops: which links between two versions a request takes."""

from gateway.conversion.carry import Carry, QueryPlace
from gateway.conversion.changes.default import Default
from gateway.conversion.operation import MappedOperation, parse_operation
from gateway.conversion.version_step import (
    Direction,
    MessageKind,
    VersionLink,
    VersionStep,
    making,
    status_kinds,
    version_steps_of,
)
from gateway.versions.version import Version

V1, V2, V3, V4 = map(Version, (1, 2, 3, 4))
PAY = MappedOperation(parse_operation("PATCH /payments"), parse_operation("PUT /pay"), {202: 200})


def version_step(*links: VersionLink) -> VersionStep:
    """Return the version step up by some links."""
    return VersionStep(V1, V2, links, None)


def test_methods_of_either_version() -> None:
    patch, get = (VersionLink(V1, V2, (), methods=frozenset({each})) for each in ("PATCH", "GET"))
    both = version_step(patch, get)
    assert both.choice(PAY, "PUT", "PATCH") == (PAY, frozenset({"PATCH"}))
    assert both.choice(None, "HEAD") == (None, frozenset({"GET"}))
    assert version_step(get, VersionLink(V1, V2, (), methods=frozenset({"HEAD"}))).choice(
        None, "HEAD"
    ) == (
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
    assert version_step(*links).status("PUT", 200) == 201
    assert VersionStep(V2, V1, links, None).status("PUT", 201) == 200
    assert VersionStep(V2, V1, links, None).status("PUT", 404) == 404
    assert VersionStep(V2, V1, links, None).status("GET", 404) == 410


def test_statuses_to_which_the_same_links_apply_are_of_one_kind() -> None:
    links = (
        VersionLink(V1, V2, (), statuses=frozenset({*range(400, 500), 201})),
        VersionLink(V1, V2, (), statuses=frozenset({404, 422}), status={410: 404}),
    )
    kinds = status_kinds(links, (None, 200, 0))
    alike: dict[object, list[int | None]] = {}
    for status, kind in kinds.items():
        alike.setdefault(kind, []).append(status)
    assert sorted(map(len, alike.values())) == [1, 1, 1, 1, 1, 1, 1, 97]
    assert [kinds[404], kinds[410], kinds[None]] == [404, 410, None]
    assert kinds[422] not in (kinds[400], kinds[200], kinds[0])


def test_a_body_in_one_version_alone() -> None:
    """The operation shows it by a link of its own, as it does its statuses."""
    closed = MappedOperation(
        parse_operation("POST /closings"), parse_operation("POST /close"), body_in_newer=True
    )
    first, second = version_step(VersionLink(V1, V2, ())).chosen(
        version_step().choice(closed, "POST")
    )
    assert (first.body_in_newer, second.body_in_newer) == (True, None)


def test_hops_of_links() -> None:
    links = (
        VersionLink(V1, V2, (), operations=(PAY,)),
        VersionLink(V1, V2, ()),
        VersionLink(V2, V3, ()),
    )
    first, second = version_steps_of(links, Direction.UP)
    assert (first.source, first.target, first.links) == (V1, V2, links[:2])
    assert (second.source, second.target, second.table) == (V2, V3, None)
    assert first.table is not None
    back, again = version_steps_of(links[::-1], Direction.DOWN)
    assert (back.source, again.source, again.target) == (V3, V2, V1)


def test_what_makes_a_body() -> None:
    flag = Default((), ("flag",), 1)
    moved = Carry(("dry",), QueryPlace("dry"))
    links = (
        VersionLink(V1, V2, (flag, moved)),
        VersionLink(V2, V3, (), body_in_newer=True),
        VersionLink(V2, V3, (flag,)),
        VersionLink(V2, V3, (flag,), on=frozenset({MessageKind.RESPONSE})),
        VersionLink(V3, V4, (flag,)),
    )
    version_steps = list(version_steps_of(links, Direction.UP))
    for patch, last in ((False, flag), (True, flag.for_patch())):
        made = [link.changes for link in making(version_steps, newer=True, patch=patch)]
        assert made == [(moved,), (), (flag,), (last,)]
    # Nothing makes one on the way back.
    back = list(version_steps_of(links[::-1], Direction.DOWN))
    assert [link.changes for link in making(back, newer=False, patch=False)] == [
        (),
        (),
        (),
        (moved,),
    ]
