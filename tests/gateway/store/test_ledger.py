"""Orders: who wants a change, and what they saw before."""

import pytest

from gateway.store.ledger import ChangedMeanwhileError, Order

ANN = Order("ann", "192.0.2.7", "a test")


@pytest.mark.parametrize("seen", ["", "paused"])
def test_what_was_seen_is_still_so(seen: str) -> None:
    ANN._replace(seen=seen).check_seen("paused", "They are paused now.")


@pytest.mark.parametrize("seen", ["running", "nothing"])
def test_what_was_seen_has_changed(seen: str) -> None:
    with pytest.raises(ChangedMeanwhileError, match="They are paused now"):
        ANN._replace(seen=seen).check_seen("paused", "They are paused now.")
