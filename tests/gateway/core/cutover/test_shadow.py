"""Which requests a shadow falls on."""

import pytest

from gateway.core.context import RequestContext
from gateway.core.cutover.shadow import Shadow


@pytest.mark.parametrize(
    ("method", "percent", "draw", "expected"),
    [
        ("GET", 100.0, 0.999, True),
        ("HEAD", 100.0, 0.0, True),
        ("POST", 100.0, 0.0, False),
        ("GET", 0.0, 0.0, False),
        ("GET", 25.0, 0.2499, True),
        ("GET", 25.0, 0.25, False),
    ],
)
def test_the_method_and_the_draw_decide(
    method: str, percent: float, draw: float, expected: bool
) -> None:
    context = RequestContext(shadow_draw=draw)
    assert Shadow(("person", "1"), percent).falls_on(method, context) is expected
