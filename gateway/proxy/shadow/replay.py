"""Replay: a captured request is sent again in the background, by any plan.

It goes the same way as a client's request (`gateway.proxy.transit`), out and back, so that what is
compared is what a client would get.
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

# A body may be larger than the one that it is compared with, but not by so much.
_GROWTH = 4
# What distinguishes a request in the background from one that a client waits for.
_MARK = (b"X-Shadow", b"1")


class ShedError(Exception):
    """A comparison is not made; the text is the reason, as it is counted."""


class CapturedAnswer(msgspec.Struct):
    """A whole answer: as a service gave it, or as a client gets it."""

    status: int
    fields: HeaderFields
    body: bytes
    target: str = ""

    @property
    def complete(self) -> bool:
        """Whether all of the body is here: always."""
        return True

    async def read(self) -> bytes:
        """Return the body."""
        return self.body

    def compared(self, rule: Shadow, method: str) -> ComparedAnswer:
        """Return what is compared of it."""
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
    """Return what a client would get by a plan; a failure is an answer too.

    Args:
        upstream: sends requests.
        exchange: the request.
        plan: the plan.
        body: the whole body of the request, as the client sent it; None for none.
        rule: bounds the bodies.

    Raises:
        ShedError: the service has no spare room, or the answer is too large to keep.
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
    """Return the answer of a service as a client gets it by a plan; a failure is an answer too."""
    try:
        fields, converted = await returning(exchange, plan, captured, rule.body * _GROWTH)
    except FaultError as error:
        return CapturedAnswer(error.fault.status, [], b"")
    body = await captured.read() if converted is None else converted
    if bodiless(exchange.method, captured.status):
        body = b""
    return CapturedAnswer(captured.status, fields, body)
