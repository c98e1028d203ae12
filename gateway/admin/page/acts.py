"""Acts: what an operator does on the page, each by a form with a reason.

A form sends back what was true when it was shown. If that has changed, nothing is done: the answer
is a 409 with what is true now.
"""

from collections.abc import Awaitable, Callable
from math import isfinite

from aiohttp import web

from gateway.admin.access.problems import AdminProblemError
from gateway.admin.access.rights import order
from gateway.base.overrides import VersionKey
from gateway.findings.action_items import name_of
from gateway.findings.operator import Operator
from gateway.rollout.decisions import ChangedMeanwhileError, ChangeRequest

PageAct = Callable[[Operator, VersionKey, web.Request], Awaitable[None]]


async def act_on_cutover(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Set, pause, roll back or clear a cutover, as the field `act` has it.

    Raises:
        AdminProblemError: there is no reason, or a field is wrong.
        ChangedMeanwhileError: it stands otherwise than the form had it.
    """
    if key not in operator.rules.cutovers:
        raise ChangedMeanwhileError(f"The rules have no cutover of {name_of(key)} any more.")
    fields, why = await request.post(), await _order(request)
    match fields.get("act"):
        case "set":
            await operator.state.set_percent(key, _percent(fields.get("percent")), why)
        case "pause":
            await operator.state.set_percent(key, None, why)
        case "roll_back":
            await operator.state.set_percent(key, 0.0, why)
        case "clear":
            await operator.state.clear_percent(key, why)
        case _:
            raise _unknown()


async def act_on_brownouts(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Pause the brownouts of a version or let them go on, as the field `act` has it.

    Raises:
        AdminProblemError: there is no reason, or a field is wrong.
        ChangedMeanwhileError: they are paused, or not, otherwise than the form had it.
    """
    fields, why = await request.post(), await _order(request)
    match fields.get("act"):
        case "pause":
            await operator.state.pause(key, why)
        case "resume":
            await operator.state.resume(key, why)
        case _:
            raise _unknown()


async def act_on_shadow(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Forget what the shadow of a version has found.

    Raises:
        AdminProblemError: there is no reason.
    """
    await operator.state.reset_shadow(key, await order(request))


ACTS: dict[str, PageAct] = {
    "cutover": act_on_cutover,
    "brownouts": act_on_brownouts,
    "shadow": act_on_shadow,
}
"""By the part of the view of a version where its form stands."""


async def _order(request: web.Request) -> ChangeRequest:
    """Return who wants a change, and what the form was shown for; a form without that is stale."""
    seen = (await request.post()).get("seen")
    return (await order(request))._replace(seen=str(seen or "nothing"))


def _percent(text: object) -> float:
    try:
        percent = float(str(text))
    except ValueError:
        percent = -1.0
    if not (isfinite(percent) and 0 <= percent <= 100):
        raise AdminProblemError(400, "bad_request", "a percentage is a number from 0 to 100")
    return percent


def _unknown() -> AdminProblemError:
    return AdminProblemError(400, "bad_request", "the form names no act; load the page again")
