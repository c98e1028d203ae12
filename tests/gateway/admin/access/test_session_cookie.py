"""A session is believed until its end, and with its signature alone."""

import pytest

from gateway.access.admin_rules import AdminToken, Right, token_digest
from gateway.admin.access.session_cookie import SECONDS, new_session, session_holder

ANN = AdminToken("ann.b", token_digest("a" * 16), Right.OPERATE)
BEN = AdminToken("ben", token_digest("b" * 16), Right.READ)
NOW = 1_800_000_000.5


def test_a_session_lasts() -> None:
    cookie = new_session(ANN, NOW)
    assert session_holder(cookie, [BEN, ANN], NOW) is ANN
    assert session_holder(cookie, [BEN, ANN], NOW + SECONDS - 1) is ANN
    assert session_holder(cookie, [BEN, ANN], NOW + SECONDS) is None
    assert session_holder(cookie, [BEN], NOW) is None
    assert session_holder(cookie, [ANN._replace(digest=BEN.digest)], NOW) is None


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "...",
        "ann.b",
        new_session(ANN, NOW).replace("ann.b", "ben"),
        new_session(ANN, NOW).replace("18000", "19000"),
        new_session(ANN, NOW)[:-1],
        new_session(ANN, NOW) + "\xe9",
    ],
)
def test_a_forged_one(forged: str) -> None:
    assert session_holder(forged, [ANN, BEN], NOW) is None
