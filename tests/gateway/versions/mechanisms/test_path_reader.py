"""The path is read as it came."""

import pytest

from tests.gateway.world import PATH, head


@pytest.mark.parametrize("raw", ["1", "01", "1.0", "%31", "\u0660", "1%2F2", "a b"])
def test_the_path_is_read_raw(raw: str) -> None:
    assert PATH.read(head("/"), {"version": raw}) == (raw,)
