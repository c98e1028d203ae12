"""The plan: what will be done with one request, decided before anything is done.

`plan` is pure: the live path, the `explain` command and the tests call this one function.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.core.asker import ANYONE, Asker
from gateway.core.errors import Code, Fault
from gateway.core.head import Head
from gateway.core.readers import AcceptReader
from gateway.core.selection import Rule, Selected
from gateway.core.snapshot import Endpoint, FieldLines, Leg, Snapshot
from gateway.core.version import Version


class Plan(NamedTuple):
    """Ask the service of a leg.

    Attributes:
        endpoint: where the request came in.
        leg: how the version is served.
        mechanism: what named the version: a mechanism, `pin`, `default` or `newest`; None where
            the API has no versions.
        target: the path and query to ask the service for, raw.
        fields: header fields that every answer carries, whoever gives it.
    """

    endpoint: Endpoint
    leg: Leg
    mechanism: str | None
    target: str
    fields: FieldLines = ()

    @property
    def version(self) -> Version | None:
        """The version that the client gets; None where the API has no versions."""
        return self.leg.version


class Options(NamedTuple):
    """Answer an OPTIONS request here and now (RFC 9110, section 9.3.7).

    `version` and `fields` are as those of a Refusal.
    """

    endpoint: Endpoint
    allow: str
    version: Version | None = None
    fields: FieldLines = ()


class Refusal(NamedTuple):
    """Answer with a fault.

    Attributes:
        endpoint: where the request came in; None where the path names no endpoint.
        fault: what the client is told.
        version: the version that was asked for; None where none was chosen.
        fields: header fields that every answer of that version carries.
    """

    endpoint: Endpoint | None
    fault: Fault
    version: Version | None = None
    fields: FieldLines = ()


Outcome = Plan | Options | Refusal


def plan(snapshot: Snapshot, head: Head, asker: Asker = ANYONE) -> Outcome:
    """Return what to do with a request: routing, then the method, then the version.

    Where the path carries the version, one that is not on offer is a path that does not exist, so
    it is refused before the method is looked at.
    """
    found = snapshot.router.find(head.path)
    if found is None:
        return Refusal(None, Fault(Code.NOT_FOUND, "No endpoint has this path."))
    endpoint, captures = found
    chosen = _choose(endpoint, head, captures, asker.client)
    if isinstance(chosen, Fault) and chosen.status == 404:
        return Refusal(endpoint, chosen)
    if endpoint.methods is not None and head.method not in endpoint.methods:
        leg = None if isinstance(chosen, Fault) else chosen[0]
        return _other_method(endpoint, endpoint.methods, head.method, leg)
    if isinstance(chosen, Fault):
        return Refusal(endpoint, chosen)
    leg, mechanism = chosen
    template = leg.upstream_path
    if template is None:
        path = head.path
    elif template.captures:
        path = template.fill({**captures, "version": str(leg.served)})
    else:
        path = template.text
    target = path if head.query is None else f"{path}?{head.query}"
    return Plan(endpoint, leg, mechanism, target, leg.fields)


def _other_method(
    endpoint: Endpoint, methods: tuple[str, ...], method: str, leg: Leg | None
) -> Options | Refusal:
    said = (None, ()) if leg is None else (leg.version, leg.fields)
    allow = ", ".join(dict.fromkeys((*methods, "OPTIONS")))
    if method == "OPTIONS":
        return Options(endpoint, allow, *said)
    fields = ((b"Allow", allow.encode()),)
    fault = Fault(Code.METHOD_NOT_ALLOWED, f"This endpoint answers {allow}.", fields=fields)
    return Refusal(endpoint, fault, *said)


def _choose(
    endpoint: Endpoint, head: Head, captures: Mapping[str, str], client: str
) -> tuple[Leg, str | None] | Fault:
    selector = endpoint.selector
    if selector is None:
        return endpoint.legs[None], None
    selected = selector.select(
        [(reader, reader.read(head, captures)) for reader in selector.readers], client
    )
    if (
        isinstance(selected, Selected)
        and selected.rule is not Rule.NAMED
        and any(
            isinstance(reader, AcceptReader) and reader.refuses(head, selected.version)
            for reader in selector.readers
        )
    ):
        # What the request does not name is for who says nothing, not for who says no.
        selected = selector.missing()
    if isinstance(selected, Selected):
        by = selected.rule if selected.reader is None else selected.reader.mechanism
        return endpoint.legs[selected.version], by
    if head.method == "OPTIONS" and selected.code is Code.VERSION_MISSING:
        # A CORS preflight cannot carry the header that it asks leave for (Fetch, section 4.8), and
        # what a resource allows is not a representation: the newest version answers.
        return endpoint.legs[max(selector.supported.values())], "newest"
    return selected
