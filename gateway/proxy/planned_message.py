"""The message that a body belongs to, for a request with a plan and for its answer.

Most conversions need none. Those that do get it from what surrounds the body: a request that the
gateway serves, or one that a command is given.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from gateway.base.headers import HeaderFields
from gateway.conversion.chain import BodyConversion
from gateway.conversion.link_mapper import LinkMapper
from gateway.conversion.message.message import Message
from gateway.conversion.message.query_walk import QueryStep, QueryWalk
from gateway.conversion.parameter_change import QUERY, parse_fields, parse_query
from gateway.proxy import answer_links
from gateway.proxy.exchange import Exchange
from gateway.routing.plan import Plan


class Surroundings(Protocol):
    """What surrounds the bodies of a request and of its answer, as far as conversions need it."""

    @property
    def method(self) -> str:
        """The method of the client's request."""
        ...

    @property
    def asked(self) -> str:
        """The method that the service is asked by."""
        ...

    @property
    def length(self) -> int | None:
        """The declared length of the body of the request."""
        ...

    @property
    def media_types(self) -> Mapping[str, str]:
        """How media types are read; see `Endpoint.media_types`."""
        ...

    def message(
        self, conversion: BodyConversion, fields: HeaderFields, status: int | None
    ) -> Message | None:
        """Return the message of a body, or None if the conversion needs none.

        Args:
            conversion: the conversion of the body.
            fields: the header fields of the message.
            status: the status of the answer; None for the request.
        """
        ...

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        """Return the message that changes of the query and of header fields are shown."""
        ...


class LiveSurroundings(NamedTuple):
    """The surroundings of a request that the gateway serves; see `Surroundings`."""

    method: str
    exchange: Exchange
    plan: Plan

    @property
    def asked(self) -> str:
        """The method that the service is asked by."""
        return self.plan.method(self.method)

    @property
    def length(self) -> int | None:
        """The declared length of the body of the request."""
        return self.exchange.length

    @property
    def media_types(self) -> Mapping[str, str]:
        """How media types are read; see `Endpoint.media_types`."""
        return self.plan.endpoint.media_types

    def message(
        self, conversion: BodyConversion, fields: HeaderFields, status: int | None
    ) -> Message | None:
        """Return the message of a body, or None if the conversion needs none."""
        needs = conversion.needs_message
        if not (conversion.maps_links or needs):
            return None
        exchange = self.exchange
        mapper = answer_links.link_mapper(exchange, self.plan)
        links = answer_links.request_links if status is None else answer_links.answer_links
        link = links(exchange, mapper)
        return self._planned(mapper, fields, status, link) if needs else Message(link=link)

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        """Return the message that changes of the query and of header fields are shown."""
        mapper = answer_links.link_mapper(self.exchange, self.plan)
        return self._planned(mapper, fields, status)

    def _planned(
        self,
        mapper: LinkMapper,
        fields: HeaderFields,
        status: int | None,
        link: Callable[[str], str] = str,
    ) -> Message:
        query = self.exchange.message.path.partition("?")[2]
        return planned_message(
            self.plan, self.method, mapper.path, query, mapper.captures, fields, status, link
        )


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
    operation, version_steps, spelling = plan.endpoint.template.text, _hops(plan, method), QUERY
    if any(
        version_step.rewrites for version_step in version_steps
    ):  # they are shown the message as the client has sent it
        sent = Message(method, path, operation, captures, "/", status, query=lines)
        spelling = QUERY.of(sent)
    way = QueryWalk(lines, version_steps, spelling)
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


def _hops(plan: Plan, method: str) -> tuple[QueryStep, ...]:
    if plan.operation_path is not None:
        return plan.operation_path.query_hops
    return () if plan.request is None else plan.request.query_hops(method)
