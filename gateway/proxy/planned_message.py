"""The message that a body belongs to, for a request with a plan and for its answer."""

from collections.abc import Callable, Mapping

from gateway.core.conversion.message.message import Message
from gateway.core.conversion.message.query_walk import QueryHop, QueryWalk
from gateway.core.conversion.parameter_change import QUERY, parse_fields, parse_query
from gateway.core.headers import HeaderFields
from gateway.core.plan import Plan


def planned_message(
    plan: Plan,
    method: str,
    path: str,
    query: str | None,
    captures: Mapping[str, str],
    fields: HeaderFields,
    status: int | None,
    link: Callable[[str], str] = str,
) -> Message:
    """Return the message of a request or of its answer, which is converted with its body.

    Args:
        plan: The plan for the request.
        method: The method of the client's request.
        path: The path of the client's request.
        query: The query of the client's request.
        captures: The raw captures of the path.
        fields: The header fields of the message.
        status: The status of the answer; None for the request.
        link: Returns a URL for the receiver of the message.
    """
    lines = parse_query(query)
    operation, hops, spelling = plan.endpoint.template.text, _hops(plan, method), QUERY
    if any(hop.rewrites for hop in hops):  # they are shown the message as the client has sent it
        sent = Message(method, path, operation, captures, "/", status, query=lines)
        spelling = QUERY.of(sent)
    way = QueryWalk(lines, hops, spelling)
    back = () if status is None or plan.response is None else plan.response.query_hops("GET")
    return Message(
        method,
        path,
        operation,
        captures,
        plan.target.partition("?")[0],
        status,
        parse_fields(fields),
        [*way.lines],
        link,
        way,
        back,
    )


def _hops(plan: Plan, method: str) -> tuple[QueryHop, ...]:
    if plan.passage is not None:
        return plan.passage.query_hops
    return () if plan.request is None else plan.request.query_hops(method)
