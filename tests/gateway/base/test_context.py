"""The context: nobody in particular unless it is said."""

from gateway.base.overrides import NO_OVERRIDES
from gateway.base.request import ANONYMOUS_CONTEXT, RequestContext


def test_anyone_is_nobody_in_particular() -> None:
    assert RequestContext() == ANONYMOUS_CONTEXT
    assert (ANONYMOUS_CONTEXT.client, ANONYMOUS_CONTEXT.now, ANONYMOUS_CONTEXT.overrides) == (
        "",
        0.0,
        NO_OVERRIDES,
    )


def test_nothing_happens_to_anyone_by_chance() -> None:
    """A brownout or a cutover of a share spares the default; a shadow shows what it would ask."""
    assert not ANONYMOUS_CONTEXT.brownout_draw < 1.0
    assert not ANONYMOUS_CONTEXT.cutover_draw < 1.0
    assert ANONYMOUS_CONTEXT.shadow_draw < 0.0001
