"""Trial requests: converts a captured request for another version, and validates it unsent."""

from typing import Protocol

import msgspec

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import HeaderFields
from gateway.proxy.body.conversion_room import ConversionRoom
from gateway.proxy.exchange import Exchange
from gateway.proxy.shadow.replay import GROWTH, ShedError
from gateway.proxy.transit import outgoing
from gateway.rollout.differences import RefusedField, refused_fields
from gateway.rollout.shadow import VersionShadow
from gateway.routing.plan import Plan
from gateway.routing.snapshot import Endpoint
from gateway.versions.version import Version


class TrialRequest(msgspec.Struct, frozen=True):
    """A request as the service of another version would get it.

    Attributes:
        document: the location of the OpenAPI document of that version.
        endpoint: the endpoint that the client asked.
        version: the version that the service speaks.
        method: the method.
        target: the path and query for the service.
        fields: the header fields.
        body: the whole body; None for no body.
    """

    document: str
    endpoint: Endpoint
    version: Version | None
    method: str
    target: str
    fields: HeaderFields
    body: bytes | None


class RequestValidator(Protocol):
    """Validates requests by OpenAPI documents; see `gateway.verify.live.contracts`."""

    async def validate(self, request: TrialRequest) -> list[RefusedField] | None:
        """Return what the service would refuse; None if the document cannot be had."""
        ...


async def trial(
    validator: RequestValidator,
    exchange: Exchange,
    plan: Plan,
    body: bytes | None,
    rule: VersionShadow,
) -> tuple[RefusedField, ...]:
    """Return the fields of a request that another version would refuse, without sending it.

    Args:
        validator: has the documents.
        exchange: the client's request.
        plan: the plan for the request to the other version's service.
        body: the complete request body as the client sent it; None for no body.
        rule: the rule of the shadow.

    Raises:
        ShedError: the document cannot be had, or the body is too large.
    """
    assert rule.document is not None
    room = ConversionRoom(rule.body * GROWTH, exchange.snapshot.limits.elements)
    try:
        request = await outgoing(exchange, plan, body, room)
    except FaultError as error:
        if error.fault.code is FaultCode.BODY_TOO_LARGE:  # for a shadow, whose bounds are narrower
            raise ShedError("large") from None
        return (unconverted(error.fault),)
    finally:
        if room.held:
            room.release()
    converted = request.body
    assert converted is None or isinstance(converted, bytes)
    found = await validator.validate(
        TrialRequest(
            rule.document,
            plan.endpoint,
            plan.route.service_version,
            request.method,
            request.target,
            request.all_fields,
            converted,
        )
    )
    if found is None:
        raise ShedError("document")
    return refused_fields(found, rule.ignored)


def unconverted(fault: Fault) -> RefusedField:
    """Return the refusal of a request that cannot be converted, whose detail quotes no value."""
    return RefusedField("conversion", fault.code, fault.detail)
