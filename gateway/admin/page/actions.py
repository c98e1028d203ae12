"""Operator actions on the page. Each action is a form with a reason.

A form also sends the state that it displayed. If the state has changed since then, the action is
not executed, and the response is a 409 with the current state.
"""

from collections.abc import Awaitable, Callable
from math import isfinite

from aiohttp import web

from gateway.admin.access.rights import AdminProblemError, asked_client, order
from gateway.base.dates import parse_date
from gateway.base.overrides import VersionKey
from gateway.findings.action_items import name_of
from gateway.findings.operator import Operator
from gateway.rollout.decisions import ChangedMeanwhileError, ChangeRequest

PageAction = Callable[[Operator, VersionKey, web.Request], Awaitable[None]]


async def act_on_cutover(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Act as the form field `act` says; raises AdminProblemError or ChangedMeanwhileError."""
    if key not in operator.rules.cutovers:
        raise ChangedMeanwhileError(f"The configuration no longer has a cutover of {name_of(key)}.")
    fields, why = await request.post(), await _order(request)
    match fields.get("act"):
        case "set":
            await operator.state.set_percent(key, _percent(fields.get("percent")), why)
        case "pause":
            await operator.state.set_percent(key, None, why)
        case "roll_back":
            await operator.state.set_percent(key, 0.0, why)
        case "promote":
            await operator.state.promote(key, why)
        case "clear":
            await operator.state.clear_percent(key, why)
        case _:
            raise _unknown()


async def act_on_brownouts(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Act as the form field `act` says; raises AdminProblemError or ChangedMeanwhileError."""
    fields, why = await request.post(), await _order(request)
    match fields.get("act"):
        case "pause":
            await operator.state.pause(key, why)
        case "resume":
            await operator.state.resume(key, why)
        case _:
            raise _unknown()


async def act_on_shadow(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Reset the shadow report of a version; raises AdminProblemError without a reason."""
    await operator.state.reset_shadow(key, await order(request))


async def act_on_callers(operator: Operator, key: VersionKey, request: web.Request) -> None:
    """Set a client aside or include it; raises AdminProblemError."""
    fields, change = await request.post(), await order(request)
    client = asked_client(str(fields.get("client", "")))
    try:
        match fields.get("act"):
            case "set_aside":
                until = parse_date(str(fields.get("until", "")))
                await operator.state.set_aside(client, until, change)
            case "include":
                await operator.state.set_aside(client, None, change)
            case _:
                raise _unknown()
    except ValueError as error:
        raise AdminProblemError(400, "bad_request", str(error)) from None


ACTIONS: dict[str, PageAction] = {
    "callers": act_on_callers,
    "cutover": act_on_cutover,
    "brownouts": act_on_brownouts,
    "shadow": act_on_shadow,
}


async def _order(request: web.Request) -> ChangeRequest:
    """Return the requested change, together with the state that the form displayed.

    A form that does not send a state is treated as outdated.
    """
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
    return AdminProblemError(400, "bad_request", "the form has no action; load the page again")
