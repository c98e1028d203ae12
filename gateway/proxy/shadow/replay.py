"""Replay: sends a captured request again in the background, by any plan.

The request and its answer pass through `gateway.proxy.transit`, as those of a client do, so that
the comparison is between answers that a client would receive.
"""

import msgspec

from gateway.core.cutover.differences import ComparedAnswer
from gateway.core.cutover.shadow import Shadow
from gateway.core.errors import FaultError
from gateway.core.headers import HeaderFields
from gateway.core.plan import Plan
from gateway.proxy.body import body_conversion, content_coding, json_body
from gateway.proxy.client.exchange import Exchange
from gateway.proxy.transit import bodiless, outgoing, returning
from gateway.proxy.upstream.upstream import NoRoomError, Upstream, UpstreamHead

# A replayed answer may have at most this many times the bytes that a captured body may have.
_GROWTH = 4
# Marks a request as sent in the background, so that services can recognize it.
_MARK = (b"X-Shadow", b"1")


class ShedError(Exception):
    """A comparison is not made; the message is the reason, a label of the `shed` counter."""


class CapturedAnswer(msgspec.Struct):
    """A complete answer, either from a service or as converted for a client."""

    status: int
    fields: HeaderFields
    body: bytes
    target: str = ""

    @property
    def complete(self) -> bool:
        """Whether all of the body has arrived; always true."""
        return True

    async def read(self) -> bytes:
        """Return the body."""
        return self.body

    def compared(self, rule: Shadow, method: str) -> ComparedAnswer:
        """Return the part of the answer that the shadow's rule compares."""
        chosen: dict[str, tuple[str, ...]] = {}
        for name, value in self.fields if rule.headers else ():
            key = name.decode("latin-1").lower()
            if key in rule.headers:
                chosen[key] = (*chosen.get(key, ()), value.decode("latin-1"))
        if bodiless(method, self.status):
            return ComparedAnswer(self.status, chosen, b"")
        try:
            named = [value for name, value in self.fields if name.lower() == b"content-encoding"]
            body = content_coding.decode(
                self.body, content_coding.codings(named), rule.body * _GROWTH
            )
        except content_coding.DecodedTooLargeError:
            raise ShedError("large") from None
        except content_coding.ContentCodingError:
            return ComparedAnswer(self.status, chosen, self.body)
        is_json = body_conversion.is_json(self.fields)
        return ComparedAnswer(self.status, chosen, json_body.parse(body) if is_json else body)


async def replay(
    upstream: Upstream, exchange: Exchange, plan: Plan, body: bytes | None, rule: Shadow
) -> CapturedAnswer:
    """Return the answer that a client would receive by a plan; a fault yields its status.

    Args:
        upstream: the interface to the services.
        exchange: the client's request.
        plan: the plan for the request.
        body: the complete request body as the client sent it; None for no body.
        rule: the rule of the shadow, which bounds the size of bodies.

    Raises:
        ShedError: the service has no spare capacity, or the answer is too large to keep.
    """
    limit = rule.body * _GROWTH
    try:
        request = await outgoing(exchange, plan, body, limit)
        request = msgspec.structs.replace(
            request, fields=[*request.fields, _MARK], informational=None
        )
        response = await upstream.send(plan.route.service, request, background=True)
        try:
            pieces: list[bytes] = []
            size = 0
            while piece := await response.read():
                size += len(piece)
                if size > limit:
                    raise ShedError("large")
                pieces.append(piece)
        finally:
            response.abandon()
    except NoRoomError:
        raise ShedError("capacity") from None
    except FaultError as error:
        return CapturedAnswer(error.fault.status, [], b"")
    captured = CapturedAnswer(response.status, response.fields, b"".join(pieces), response.target)
    return await for_client(exchange, plan, captured, rule)


async def for_client(
    exchange: Exchange, plan: Plan, captured: UpstreamHead, rule: Shadow
) -> CapturedAnswer:
    """Return a service's answer converted for the client by a plan; a fault yields its status."""
    try:
        fields, converted = await returning(exchange, plan, captured, rule.body * _GROWTH)
    except FaultError as error:
        return CapturedAnswer(error.fault.status, [], b"")
    body = await captured.read() if converted is None else converted
    if bodiless(exchange.method, captured.status):
        body = b""
    return CapturedAnswer(captured.status, fields, body)
