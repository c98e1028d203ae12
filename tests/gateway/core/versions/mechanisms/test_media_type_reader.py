"""Any pattern of a media type is read."""

import pytest

from gateway.core.versions.mechanisms.accept_reader import AcceptReader
from tests.gateway.core.world import head


@pytest.mark.parametrize(
    ("reader", "accept", "values"),
    [
        (AcceptReader("application/vnd.x-v", ""), "application/vnd.x-v1", ("1",)),
        (AcceptReader("application/vnd.x-v", ""), "application/vnd.x-v1+json", ("1+json",)),
        (AcceptReader("application/", ".x+json"), "application/2.x+json", ("2",)),
        (AcceptReader("a/x1", "1x"), "a/x1x", ()),
        (AcceptReader("a/x1", "1x"), "a/x11x", ("",)),
        (AcceptReader("a/x1", "1x"), "a/x111x", ("1",)),
    ],
)
def test_any_pattern_of_a_media_type_is_read(
    reader: AcceptReader, accept: str, values: tuple[str, ...]
) -> None:
    assert reader.read(head("/", ("Accept", accept)), {}) == values
