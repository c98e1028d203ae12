"""Asking again: what a client would get by another way, got in the background."""

import msgspec

from gateway.core import headers
from gateway.core.differences import Answer
from gateway.core.errors import Failed
from gateway.core.headers import Fields
from gateway.core.plan import Plan
from gateway.core.service import CLIENT_HOST, TARGET_HOST
from gateway.core.shadow import SAFE, Shadow
from gateway.core.snapshot import Leg
from gateway.wire import background, bodies, codec, coding
from gateway.wire.background import Shed
from gateway.wire.pool import Pool
from gateway.wire.upstream import Request, Response

# A body may be larger than the one that it is compared with, but not by so much.
_GROWTH = 4


async def ask_again(pool: Pool, todo: Plan, request: Request, rule: Shadow) -> "Got":
    """Return what a client would get by a plan; a failure is an answer too.

    Args:
        pool: sends requests.
        todo: the plan.
        request: as the version's own service is asked.
        rule: bounds the bodies.

    Raises:
        Shed: it is too much to ask, or to keep.
    """
    leg, limit = todo.leg, rule.body * _GROWTH
    try:
        host = _host(leg.service.host, request)
        fields = request.fields if leg.asked_for is None else leg.asked_for.fields(request.fields)
        request = msgspec.structs.replace(request, target=todo.target, host=host, fields=fields)
        if leg.request is not None:
            request = await _converted(request, leg, limit)
        response = await background.ask(pool, leg.service, request)
        try:
            return await _read(response, request.method, leg, limit)
        finally:
            response.abandon()
    except Failed as error:
        return Got(error.fault.status, [], b"")


def _host(policy: str, request: Request) -> bytes | None:
    if policy == TARGET_HOST:
        return None
    if policy != CLIENT_HOST:
        return policy.encode()
    said = (value for name, value in request.fields if name.lower() == b"x-forwarded-host")
    return next(said, request.host)


class Got(msgspec.Struct):
    """An answer before it is looked into."""

    status: int
    fields: Fields
    body: bytes

    def answer(self, rule: Shadow, called: str | None, method: str) -> Answer:
        """Return what is compared of it; `called` is what JSON is called there."""
        fields = self.fields
        if called is not None and 200 <= self.status <= 299:
            fields = headers.retyped(fields, called.encode())
        chosen: dict[str, tuple[str, ...]] = {}
        for name, value in fields if rule.headers else ():
            key = name.decode("latin-1").lower()
            if key in rule.headers:
                chosen[key] = (*chosen.get(key, ()), value.decode("latin-1"))
        if bodiless(method, self.status):
            return Answer(self.status, chosen, b"")
        try:
            named = [value for name, value in fields if name.lower() == b"content-encoding"]
            body = coding.decode(self.body, coding.codings(named), rule.body * _GROWTH)
        except coding.TooLarge:
            raise Shed("large") from None
        except coding.Undecodable:
            return Answer(self.status, chosen, self.body)
        return Answer(self.status, chosen, codec.parse(body) if bodies.is_json(fields) else body)


async def _converted(request: Request, leg: Leg, limit: int) -> Request:
    assert leg.request is not None
    asks = headers.ASKS if request.method in SAFE else headers.ASKS_WRITING
    fields = [line for line in request.fields if line[0].lower() not in asks]
    fields = bodies.convert_request_fields(fields, leg.request, request.method)
    conversion, body = leg.request.for_request(request.method), request.body
    if conversion is not None and isinstance(body, bytes) and body:
        body = await bodies.convert_request(body, fields, conversion, limit)
        fields = headers.end_to_end(fields, headers.ABOUT_BYTES)
    fields.append((b"Accept-Encoding", b"identity"))
    return msgspec.structs.replace(request, fields=fields, body=body)


async def _read(response: Response, method: str, leg: Leg, limit: int) -> Got:
    status = response.status
    pieces: list[bytes] = []
    size = 0
    while piece := await response.read():
        size += len(piece)
        if size > limit:
            raise Shed("large")
        pieces.append(piece)
    body, fields = b"".join(pieces), response.fields
    conversion = leg.response.for_response(method, status) if leg.response is not None else None
    if leg.answered_as is not None:
        fields = leg.answered_as.fields(fields)
    if leg.response is not None:
        fields = bodies.convert_response_fields(fields, leg.response, method, response)
    if conversion is not None and not bodiless(method, status):
        body = await bodies.convert_whole(response, body, conversion, limit)
        fields = headers.end_to_end(fields, headers.ABOUT_BYTES)
    return Got(status, fields, body)


def bodiless(method: str, status: int) -> bool:
    """Whether a response has no body, whatever its fields say (RFC 9110, section 6.4.1)."""
    return method == "HEAD" or status in (204, 304)
