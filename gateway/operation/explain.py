"""Explain: what would happen to a request and why, from the plan that the live path uses."""

from collections.abc import Sequence

from multidict import CIMultiDict

from gateway.core.head import Head
from gateway.core.plan import Options, Outcome, Plan, Refusal, plan
from gateway.core.snapshot import Endpoint, Leg, Snapshot


def parse_request(line: str, fields: Sequence[str]) -> Head:
    """Return the head that `GET /path?query` and `Name: value` lines spell.

    Raises:
        ValueError: with a sentence that says what would be right.
    """
    method, _, target = line.strip().partition(" ")
    if not target.startswith("/"):
        raise ValueError(f"'{line}' is not a request; write it like 'GET /person/param?version=1'")
    path, mark, query = target.partition("?")
    headers: CIMultiDict[str] = CIMultiDict()
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon or not name.strip():
            raise ValueError(f"'{field}' is not a header; write it like 'X-API-VERSION: 1'")
        headers.add(name.strip(), value.strip(" \t"))
    return Head(method.upper(), path, query if mark else None, headers)


def explain(snapshot: Snapshot, head: Head) -> str:
    """Return what would happen, a fact a line."""
    outcome = plan(snapshot, head)
    facts = _endpoint(outcome.endpoint) | _readings(outcome.endpoint, head, snapshot)
    facts |= _outcome(outcome, head)
    if outcome.endpoint is not None and outcome.endpoint.vary:
        facts["vary"] = ", ".join(outcome.endpoint.vary)
    target = head.path if head.query is None else f"{head.path}?{head.query}"
    lines = [f"{head.method} {target}"]
    lines += [f"  {name:<9} {fact}" for name, fact in facts.items()]
    return "\n".join(lines)


def _endpoint(endpoint: Endpoint | None) -> dict[str, str]:
    if endpoint is None:
        return {}
    return {"api": endpoint.api, "endpoint": endpoint.template.text}


def _readings(endpoint: Endpoint | None, head: Head, snapshot: Snapshot) -> dict[str, str]:
    found = snapshot.router.find(head.path)
    if endpoint is None or endpoint.selector is None or found is None:
        return {}
    readings = [
        f"{reader.place}: {', '.join(reader.read(head, found[1])) or 'nothing'}"
        for reader in endpoint.selector.readers
    ]
    return {"read": "; ".join(readings)}


def _outcome(outcome: Outcome, head: Head) -> dict[str, str]:
    match outcome:
        case Refusal(fault=fault):
            return {"answer": f"{fault.status} {fault.code}: {fault.detail}"}
        case Options(allow=allow):
            return {"answer": f"204, Allow: {allow}"}
        case Plan(leg=leg, mechanism=mechanism, target=target):
            return _leg(leg, mechanism) | {"asks": f"{head.method} {target}"} | _bodies(leg)


def _leg(leg: Leg, mechanism: str | None) -> dict[str, str]:
    addresses = ", ".join(target.authority for target in leg.service.targets)
    speaks = "" if leg.served == leg.version else f", which speaks version {leg.served}"
    chosen = {} if leg.version is None else {"version": f"{leg.version}, by {mechanism}"}
    return chosen | {"service": f"{leg.service.name} at {addresses}{speaks}"}


def _bodies(leg: Leg) -> dict[str, str]:
    if leg.request is None or leg.response is None:
        return {"bodies": "streamed as they are"}
    named = sorted(status for link in leg.response.links for status in link.statuses)
    errors = f"; error bodies too where the status is {', '.join(map(str, named))}" if named else ""
    return {
        "request": f"body converted from version {leg.version} to {leg.served}",
        "response": f"body converted from version {leg.served} to {leg.version}{errors}",
    }
