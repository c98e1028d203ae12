"""FleetReport: the replicas of a fleet, and the audit log, as JSON and as tables for people."""

import msgspec

from gateway.findings.formatting import columns, format_time
from gateway.observe.failing_targets import FailingService
from gateway.rollout.decisions import AuditEntry
from gateway.store.state import FleetView


class FailingReport(msgspec.Struct, frozen=True):
    """A service with targets that fail in a replica; see `failing_service.FailingService`."""

    service: str
    targets: int
    failing: int
    since: str
    errors: dict[str, str]


class ReplicaReport(msgspec.Struct, frozen=True):
    """A replica; `lag` is in seconds, see `state_access.ReplicaView`."""

    replica: str
    presence: str
    judges: bool
    version: str
    rules: str
    admin: str
    started: str
    heard: str
    lag: float
    behind: int
    refused: str = ""
    failing: tuple[FailingReport, ...] = ()


class FleetReport(msgspec.Struct, frozen=True):
    """The replicas, and what is wrong with them, a sentence each."""

    replicas: list[ReplicaReport]
    warnings: list[str]


class AuditReport(msgspec.Struct, frozen=True):
    """An entry of the audit log; see `ledger.AuditEntry`."""

    at: str
    who: str
    origin: str
    what: str
    api: str
    version: str
    why: str
    before: str
    after: str


def fleet_report(view: FleetView) -> FleetReport:
    """Return the report of a fleet."""
    return FleetReport(
        [
            ReplicaReport(
                replica=each.replica,
                presence=each.presence,
                judges=each.leads,
                version=each.version,
                rules=each.rules,
                admin=each.admin,
                started=format_time(each.started),
                heard=format_time(each.heard),
                lag=round(each.lag, 1),
                behind=each.behind,
                refused=each.refused,
                failing=(*map(_failing, each.failing),),
            )
            for each in view.replicas
        ],
        view.warnings,
    )


def _failing(found: FailingService) -> FailingReport:
    errors = {each.target: each.error for each in found.listed}
    since = format_time(found.since)
    return FailingReport(found.service, found.targets, found.failing, since, errors)


def audit_report(entries: list[AuditEntry]) -> list[AuditReport]:
    """Return the entries of the audit log."""
    return [AuditReport(format_time(entry.at), *entry[1:]) for entry in entries]


def fleet_table(found: FleetReport) -> str:
    """Return a table for people, with the warnings under it."""
    rows = [
        (
            each.replica,
            f"{each.presence}, judges" if each.judges else each.presence,
            each.version,
            each.rules,
            each.heard,
            f"{each.lag:.1f} s",
            each.admin,
        )
        for each in found.replicas
    ]
    head = ("REPLICA", "STATE", "VERSION", "RULES", "HEARD", "LAG", "ADMIN")
    lines = [*columns([head, *rows], right=(5,))]
    refused = (
        f"the rules on disk of {each.replica} cannot be used: {each.refused}"
        for each in found.replicas
        if each.refused
    )
    failing = (
        f"in {each.replica}, {one.failing} of {one.targets} targets of service {one.service} fail"
        f" since {one.since}"
        for each in found.replicas
        for one in each.failing
    )
    told = (*found.warnings, *refused, *failing)
    return "\n".join([*lines, *(f"warning: {text}" for text in told)])


def audit_table(found: list[AuditReport]) -> str:
    """Return a table for people, the latest change first."""
    if not found:
        return "Nothing was changed yet."
    rows = [
        (
            each.at,
            f"{each.who} {each.origin}".rstrip(),
            each.what,
            f"{each.api} {each.version}".rstrip(),
            f"{each.before} -> {each.after}" if each.before or each.after else "",
            each.why,
        )
        for each in reversed(found)
    ]
    return "\n".join(columns([("WHEN", "WHO", "WHAT", "WHERE", "CHANGE", "WHY"), *rows]))
