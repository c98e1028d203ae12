"""Places for connections: those who have taken all of them give way."""

from gateway.admin.access.connection_places import ConnectionPlaces
from gateway.base.descriptors import most_admin


def filled(*addresses: str) -> ConnectionPlaces[int]:
    """Return places that are all taken: by one connection of each address, then of the last."""
    places = ConnectionPlaces[int]()
    for number in range(most_admin()):
        assert places.take(number, addresses[min(number, len(addresses) - 1)]) is None
    return places


def test_the_oldest_of_the_address_that_has_most_gives_way() -> None:
    places = filled("operator", "probe", "stranger")
    assert [places.take(1000 + number, "probe") for number in range(3)] == [2, 3, 4]
    assert {0, 1, 1000} <= set(places)
    assert 2 not in places
    assert len(set(places)) == most_admin()


def test_of_addresses_that_have_one_each_the_oldest_gives_way() -> None:
    places = filled(*map(str, range(most_admin())))
    assert places.take(1000, "probe") == 0


def test_a_place_that_is_left_is_free() -> None:
    places = filled("stranger")
    places.leave(7)
    places.leave(7)
    assert places.take(1000, "stranger") is None
    assert places.take(1001, "stranger") == 0
