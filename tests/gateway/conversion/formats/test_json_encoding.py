"""Large JSON is written in steps, as it is written at once."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gateway.conversion.formats import large_json

at_once = msgspec.json.Encoder(decimal_format="number").encode
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=4)
    | st.just(Decimal("1.50"))
    | st.just(Raw(b'{"a" : [ 1.0 ] }')),
    lambda inner: (
        st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=3), inner, max_size=7)
    ),
    max_leaves=30,
)


@pytest.mark.parametrize("together", [1, 2, 3])
def test_the_same_as_at_once(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "_TOGETHER", together)
    monkeypatch.setattr(large_json, "_STEP", together)

    @given(DOCUMENTS)
    def check(document: Any) -> None:
        assert large_json.encode(document) == at_once(document)

    check()


def test_no_step_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 64 elements or members are written in one call of the encoder."""
    written: list[int] = []

    def encoded(document: Any) -> bytes:
        text = at_once(document)
        written.append(len(text))
        return text

    monkeypatch.setattr(large_json, "_encoded", encoded)
    element = Raw(b'"' + b"x" * 98 + b'"')
    several = [element] * 1000
    large_json.encode({"a": several, "b": {str(key): element for key in range(1000)}, "c": 1})
    assert max(written) < 64 * 110
    assert sum(written) > 200_000
