"""Readers: each reads all raw values of its own mechanism and names its location."""

import pytest

from gateway.versions.reader import Reader, VersionAddress
from tests.gateway.world import ACCEPT, HEADER, PATH, QUERY, V2, VENDOR, head


@pytest.mark.parametrize(
    ("reader", "mechanism", "place"),
    [
        (PATH, "path", "the path"),
        (QUERY, "query", "the query parameter 'version'"),
        (HEADER, "header", "the header X-API-VERSION"),
        (ACCEPT, "accept", "the header Accept, as application/vnd.comp.app-v<version>+json"),
    ],
    ids=["path", "query", "header", "accept"],
)
def test_a_reader_names_its_mechanism_and_location(
    reader: Reader, mechanism: str, place: str
) -> None:
    assert reader.mechanism is mechanism
    assert reader.place == place


EVERYWHERE = head(
    "/v1/person?version=2", ("X-API-VERSION", "3"), ("Accept", VENDOR.format(4)), method="POST"
)


@pytest.mark.parametrize(
    ("reader", "value"),
    [(PATH, "1"), (QUERY, "2"), (HEADER, "3"), (ACCEPT, "4")],
    ids=["path", "query", "header", "accept"],
)
def test_a_reader_reads_its_own_mechanism_only(reader: Reader, value: str) -> None:
    assert reader.read(EVERYWHERE, {"version": "1", "id": "7"}) == (value,)


@pytest.mark.parametrize("reader", [QUERY, HEADER, ACCEPT], ids=["query", "header", "accept"])
def test_a_request_without_a_version_has_no_values(reader: Reader) -> None:
    assert reader.read(head("/v1/person"), {"version": "1"}) == ()


def test_addresses_that_a_uri_can_express_rank_first() -> None:
    host = VersionAddress(host="v2.api.test")
    addresses = [reader.address(V2) for reader in (PATH, QUERY, ACCEPT, HEADER)]
    assert sorted([*reversed(addresses), host], key=lambda one: one.rank) == [host, *addresses]
