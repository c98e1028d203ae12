"""Asking again: what a client would get by another way, got in the background."""

import msgspec

from gateway.core import headers
from gateway.core.cutover.differences import ComparedAnswer
from gateway.core.cutover.shadow import SAFE, Shadow
from gateway.core.errors import FaultError
from gateway.core.headers import HeaderFields
from gateway.core.plan import Plan
from gateway.core.service import CLIENT_HOST, TARGET_HOST
from gateway.core.snapshot import Route
from gateway.proxy.body import body_conversion, content_coding, json_body
from gateway.proxy.shadow import background
from gateway.proxy.shadow.background import ShedError
from gateway.proxy.upstream.pool import Pool
from gateway.proxy.upstream.upstream import UpstreamRequest, UpstreamResponse

# A body may be larger than the one that it is compared with, but not by so much.
_GROWTH = 4


async def replay(
    pool: Pool, todo: Plan, request: UpstreamRequest, rule: Shadow
) -> "CapturedAnswer":
    """Return what a client would get by a plan; a failure is an answer too.

    Args:
        pool: sends requests.
        todo: the plan.
        request: as the version's own service is asked.
        rule: bounds the bodies.

    Raises:
        ShedError: it is too much to ask, or to keep.
    """
    route, limit = todo.route, rule.body * _GROWTH
    try:
        host = _host(route, request)
        fields = (
            request.fields
            if route.request_rewrite is None
            else route.request_rewrite.fields(request.fields)
        )
        request = msgspec.structs.replace(request, target=todo.target, host=host, fields=fields)
        if route.request is not None:
            request = await _converted(request, route, limit)
        response = await background.ask(pool, route.service, request)
        try:
            return await _read(response, request.method, route, limit)
        finally:
            response.abandon()
    except FaultError as error:
        return CapturedAnswer(error.fault.status, [], b"")


def _host(route: Route, request: UpstreamRequest) -> bytes | None:
    policy = route.service.host
    if policy == TARGET_HOST:
        return None
    if policy != CLIENT_HOST:
        return policy.encode()
    said = (value for name, value in request.fields if name.lower() == b"x-forwarded-host")
    host = next(said, request.host)
    if host is None or route.request_rewrite is None:
        return host
    text = host.decode("utf-8", "surrogateescape")
    return route.request_rewrite.authority(text).encode("utf-8", "surrogateescape")


class CapturedAnswer(msgspec.Struct):
    """An answer before it is looked into."""

    status: int
    fields: HeaderFields
    body: bytes

    def answer(self, rule: Shadow, called: str | None, method: str) -> ComparedAnswer:
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
            return ComparedAnswer(self.status, chosen, b"")
        try:
            named = [value for name, value in fields if name.lower() == b"content-encoding"]
            body = content_coding.decode(
                self.body, content_coding.codings(named), rule.body * _GROWTH
            )
        except content_coding.DecodedTooLargeError:
            raise ShedError("large") from None
        except content_coding.ContentCodingError:
            return ComparedAnswer(self.status, chosen, self.body)
        return ComparedAnswer(
            self.status, chosen, json_body.parse(body) if body_conversion.is_json(fields) else body
        )


async def _converted(request: UpstreamRequest, route: Route, limit: int) -> UpstreamRequest:
    assert route.request is not None
    asks = headers.ASKS if request.method in SAFE else headers.ASKS_WRITING
    fields = [line for line in request.fields if line[0].lower() not in asks]
    fields = body_conversion.convert_request_fields(fields, route.request, request.method)
    conversion, body = route.request.for_request(request.method), request.body
    if conversion is not None and isinstance(body, bytes) and body:
        body = await body_conversion.convert_request(body, fields, conversion, limit)
        fields = headers.end_to_end(fields, headers.ABOUT_BYTES)
    fields.append((b"Accept-Encoding", b"identity"))
    return msgspec.structs.replace(request, fields=fields, body=body)


async def _read(
    response: UpstreamResponse, method: str, route: Route, limit: int
) -> CapturedAnswer:
    status = response.status
    pieces: list[bytes] = []
    size = 0
    while piece := await response.read():
        size += len(piece)
        if size > limit:
            raise ShedError("large")
        pieces.append(piece)
    body, fields = b"".join(pieces), response.fields
    conversion = route.response.for_response(method, status) if route.response is not None else None
    if route.response_rewrite is not None:
        fields = route.response_rewrite.fields(fields)
    if route.response is not None:
        fields = body_conversion.convert_response_fields(fields, route.response, method, response)
    if conversion is not None and not bodiless(method, status):
        body = await body_conversion.convert_whole(response, body, conversion, limit)
        fields = headers.end_to_end(fields, headers.ABOUT_BYTES)
    return CapturedAnswer(status, fields, body)


def bodiless(method: str, status: int) -> bool:
    """Whether a response has no body, whatever its fields say (RFC 9110, section 6.4.1)."""
    return method == "HEAD" or status in (204, 304)
