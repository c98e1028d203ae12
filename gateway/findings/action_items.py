"""Action items: findings that need attention, each with its reason and remedy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple
from urllib.parse import quote

from gateway.base.overrides import Overrides, VersionKey
from gateway.base.urls import without_secrets
from gateway.findings.conditions import Finding
from gateway.findings.formatting import moment_text, period_text, plural, sentence
from gateway.findings.next_steps import next_step
from gateway.findings.notifications import FailingWebhook
from gateway.findings.summaries import UsageSummary, VersionSummary
from gateway.lifecycle.brownout import WindowOccurrence
from gateway.observe.failing_targets import FailingService
from gateway.rollout.cutovers import CurrentCutover, DecidedBy, missing_evidence, next_change
from gateway.rollout.decisions import AuditEntry
from gateway.rollout.gates import GateOutcome
from gateway.routing.snapshot import Snapshot
from gateway.store.state import FleetView
from gateway.usage.totals import Totals

DAY = 86_400.0
# A sunset is treated as near from this number of days before it.
_NEAR = 30
# A gate is treated as near its limit from this share of the limit.
_PRESSED = 0.8
# A cutover step is treated as stuck after this multiple of its configured time.
_STUCK = 2

_ORDER = {finding: place for place, finding in enumerate(Finding)}


class ActionItem(NamedTuple):
    """A finding about one subject. `waits` is a sentence; empty if it waits for a person."""

    finding: Finding
    subject: str
    reason: str
    link: str
    order: float = 0.0
    waits: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a gateway, from which action items are computed.

    Attributes:
        now: the current time, in seconds since 1970.
        refused: the mistakes in the configuration on disk; empty if it is in force.
        changes: the audit log, latest entry last. It is needed only if an operator has set a
            cutover or paused brownouts.
        certificates: the expiry of each certificate in seconds since 1970, by its file.
        documents: the mistakes in OpenAPI documents, by location.
    """

    now: float
    rules: Snapshot
    versions: Mapping[VersionKey, VersionSummary]
    summaries: Mapping[VersionKey, UsageSummary]
    cutovers: Mapping[VersionKey, CurrentCutover]
    retirable: Iterable[VersionKey]
    overrides: Overrides
    totals: Totals
    fleet: FleetView
    refused: str
    replica: str
    unready: str | None = None
    failing: tuple[str, ...] = ()
    stale_since: float | None = None
    stale_reason: str = ""
    changes: Sequence[AuditEntry] = ()
    webhooks: Sequence[FailingWebhook] = ()
    services: Sequence[FailingService] = ()
    certificates: Mapping[str, float] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)


def action_items(seen: Situation) -> list[ActionItem]:
    found = [
        *_gateway(seen),
        *_replicas(seen),
        *_certificates(seen),
        *_services(seen),
        *_cutovers(seen),
        *_sunsets(seen),
        *_brownouts(seen),
        *_documents(seen),
        *_violations(seen),
        *_retirable(seen),
    ]
    found += _next_steps(seen, {(item.subject, item.link) for item in found})
    # The sort is stable: equally urgent items stay in the order of the configuration, such as
    # version 2 before version 10.
    return sorted(found, key=lambda item: (_ORDER[item.finding], item.order))


def _item(finding: Finding, subject: str, reason: str, order: float = 0.0) -> ActionItem:
    return ActionItem(finding, subject, reason, finding.link, order)


def _of_version(finding: Finding, key: VersionKey, reason: str, order: float = 0.0) -> ActionItem:
    return ActionItem(finding, name_of(key), reason, version_link(key, finding.link), order)


def version_link(key: VersionKey, part: str = "") -> str:
    place = "/".join(quote(step, safe="") for step in key if step)
    return f"/page/versions/{place}{part}"


def name_of(key: VersionKey) -> str:
    return " ".join(key).rstrip()


# A key set that is in use is fetched again within an hour.
_KEYS_FAILED = 7200.0


def _gateway(seen: Situation) -> Iterator[ActionItem]:
    if seen.unready is not None:
        yield _item(Finding.NOT_READY, "This gateway", f"It accepts no requests: {seen.unready}.")
    yield from _refused(seen)
    if seen.stale_since is not None:
        yield _item(
            Finding.STATE_STALE,
            "The store of the state",
            f"It has been unreachable since {moment_text(seen.stale_since)}: {seen.stale_reason}."
            " Requests are still served; counts are stored later.",
        )
    for task in seen.failing:
        reason = "It failed within the last minute and was restarted; the log has the reason."
        yield _item(Finding.TASK_FAILS, task, reason)
    for (url, result), times in seen.totals.counted("key_fetches"):
        fetched = seen.totals.counts.get(("key_fetches", (url, "fetched")))
        since = 0.0 if fetched is None else fetched.last
        # An old failure may be that of a URL that is no longer configured.
        if result == "failed" and times.last > max(since, seen.now - _KEYS_FAILED):
            known = "No keys are known" if fetched is None else "The known keys stay in use"
            reason = f"The last request failed at {moment_text(times.last)}. {known}."
            yield _item(Finding.KEYS_NOT_FETCHED, url, reason, times.last)
    for webhook in seen.webhooks:
        yield _item(Finding.WEBHOOK_FAILS, webhook.webhook, webhook.text, webhook.since)


def _refused(seen: Situation) -> Iterator[ActionItem]:
    """Yield an item for each refused configuration; replicas with equal mistakes share an item."""
    found: dict[str, list[str]] = {seen.refused: [seen.replica]} if seen.refused else {}
    for each in seen.fleet.replicas:
        if each.refused and each.presence == "heard" and each.replica != seen.replica:
            found.setdefault(each.refused, []).append(each.replica)
    for text, names in found.items():
        here = names[0] == seen.replica
        yield _item(
            Finding.RULES_REFUSED if here else Finding.REFUSED_ELSEWHERE,
            "The file on disk" + ("" if names == [seen.replica] else f" of {', '.join(names)}"),
            sentence(f"it cannot be used, and the previous configuration stays in force: {text}"),
        )


def _replicas(seen: Situation) -> Iterator[ActionItem]:
    for replica in seen.fleet.replicas:
        if replica.presence == "lost":
            reason = (
                f"It has sent no heartbeat since {moment_text(replica.heard)}; its counts since"
                " then are missing."
            )
            yield _item(Finding.REPLICA_LOST, replica.replica, reason, replica.heard)
    if seen.stale_since is None:  # an unreachable store already has an item
        for warning in seen.fleet.warnings:
            yield _item(Finding.REPLICAS_DIFFER, "The replicas", sentence(warning))


# Certificates are usually renewed a month before they expire (Let's Encrypt). So a certificate that
# expires within this time was not renewed as planned.
_EXPIRES_SOON = 21 * 86_400.0


def _certificates(seen: Situation) -> Iterator[ActionItem]:
    for file, expires in seen.certificates.items():
        if expires > seen.now + _EXPIRES_SOON:
            continue
        expired = expires <= seen.now
        finding = Finding.CERTIFICATE_EXPIRED if expired else Finding.CERTIFICATE_EXPIRES
        verb = "has been expired since" if expired else "expires at"
        reason = f"It {verb} {moment_text(expires)}. Replace the file; it is used at once."
        yield _item(finding, file, reason, expires)


def _services(seen: Situation) -> Iterator[ActionItem]:
    for _, subject, whole, since, text in service_failures(seen.replica, seen.services, seen.fleet):
        finding = Finding.SERVICE_FAILS if whole else Finding.TARGET_FAILS
        yield _item(finding, subject, text, since)


def _cutovers(seen: Situation) -> Iterator[ActionItem]:
    for key, current in seen.cutovers.items():
        cutover, state, _, _, now = current
        percent = f"{state.percent:g}%"
        if state.decided_by is DecidedBy.OPERATOR:
            if state.percent != cutover.percent:
                reason = (
                    f"It was set to {percent} {_by_hand(seen, 'cutover', key)}. Until it is"
                    " cleared, steps and gates do not change it."
                )
                yield _of_version(Finding.CUTOVER_PAUSED, key, reason, state.since)
        elif state.decided_by is DecidedBy.ROLLED_BACK:
            reason = f"Its cutover was rolled back to 0%: {state.why}."
            yield _of_version(Finding.ROLLED_BACK, key, reason, -state.since)
        else:
            yield from _gates(key, current, now)


def _gates(key: VersionKey, current: CurrentCutover, now: float) -> Iterator[ActionItem]:
    cutover, state, evidence, results, _ = current
    percent = f"{state.percent:g}%"
    exceeded = [one for one in results if one.outcome is GateOutcome.EXCEEDED]
    pressed = [
        (used, one.text)
        for one in results
        if one.outcome is GateOutcome.PASSED and (used := one.pressure or 0.0) >= _PRESSED
    ]
    if exceeded:
        dry = cutover.gates is not None and cutover.gates.dry_run
        stays = f" It stays at {percent}: the gates are a dry run." if dry else ""
        yield _of_version(Finding.GATE_EXCEEDED, key, sentence(exceeded[0].text) + stays)
    elif state.decided_by is DecidedBy.HELD:
        reason = (
            f"Its cutover stays at {percent}: {state.why}. Now it"
            f" {next_change(cutover, state, evidence, now)}."
        )
        yield _of_version(Finding.CUTOVER_HELD, key, reason, -state.since)
    elif pressed:
        used, text = max(pressed, key=lambda each: each[0])
        yield _of_version(Finding.GATE_NEAR_LIMIT, key, sentence(text), -used)
    elif now - state.since >= _STUCK * cutover.every:
        more = missing_evidence(cutover, state, evidence, now)
        if more is not None:
            reason = (
                f"Its cutover has stayed at {percent} for {period_text(now - state.since)}"
                f" instead of {period_text(cutover.every)}: it needs {more}."
            )
            yield _of_version(Finding.STEP_STUCK, key, reason, state.since)


def _by_hand(seen: Situation, what: str, key: VersionKey) -> str:
    """Return who made the latest change of a kind, when and why.

    The audit log is bounded, so it may no longer contain the change.
    """
    for entry in reversed(seen.changes):
        # A change by the gateway itself has no origin.
        if (entry.what, entry.api, entry.version) == (what, *key) and entry.origin:
            why = f": {entry.why}" if entry.why else ""
            return f"by {entry.who} at {moment_text(entry.at)}{why}"
    return "by an operator; the audit log no longer has the name and the reason"


def _sunsets(seen: Situation) -> Iterator[ActionItem]:
    for key, version in seen.versions.items():
        summary = seen.summaries.get(key)
        if version.terms is None or summary is None:
            continue
        left = version.terms.sunset - seen.now
        if 0 < left <= _NEAR * DAY and summary.served >= seen.now - _NEAR * DAY:
            finding = Finding.SUNSET_THIS_WEEK if left <= 7 * DAY else Finding.SUNSET_NEAR
            reason = f"It ends in {period_text(left)}, and {summary.calls}."
            yield _of_version(finding, key, reason, left)


def _brownouts(seen: Situation) -> Iterator[ActionItem]:
    for key, version in seen.versions.items():
        first = next(iter(version.upcoming(seen.now)), None)
        if first is None:
            continue
        refuses = _refuses(first, seen.now)
        if key in seen.overrides.paused:
            by_hand = _by_hand(seen, "brownout pause", key)
            reason = f"They were paused {by_hand}. Without the pause, it {refuses}."
            yield _of_version(Finding.BROWNOUTS_PAUSED, key, reason, first.begins)
        elif first.begins < seen.now + DAY:
            yield _of_version(Finding.BROWNOUT_NEAR, key, f"It {refuses}.", first.begins)


def _refuses(window: WindowOccurrence, now: float) -> str:
    if window.begins <= now:
        until = "without an end" if window.ends == inf else f"until {moment_text(window.ends)}"
        return f"refuses {window.percent:g}% of its requests {until}"
    lasts = "" if window.ends == inf else f" for {period_text(window.ends - window.begins)}"
    begins = moment_text(window.begins)
    return f"will refuse {window.percent:g}% of its requests from {begins}{lasts}"


def _documents(seen: Situation) -> Iterator[ActionItem]:
    for location, problem in seen.documents.items():
        text = sentence(f"it cannot be used: {problem}")
        reason = (
            f"{text} No message is validated against it. If it has not been loaded since the start,"
            " requests with fields that it lets the gateway hide get 503."
        )
        yield _item(Finding.DOCUMENT_UNUSABLE, without_secrets(location), reason)


def _violations(seen: Situation) -> Iterator[ActionItem]:
    latest: dict[VersionKey, tuple[str, int, float]] = {}
    for (api, version, violated), times in seen.totals.counted("violations"):
        key, known = (api, version), latest.get((api, version), ("", 0, 0.0))
        if times.last >= seen.now - DAY and key in seen.versions:
            place, last = max((known[0], known[2]), (violated, times.last), key=lambda one: one[1])
            latest[key] = (place, known[1] + times.count, last)
    for key, (place, count, last) in latest.items():
        reason = (
            f"Converted responses violated its OpenAPI document {count:,} {plural(count, 'time')},"
            f" last at {moment_text(last)} in {place}."
        )
        yield _of_version(Finding.SCHEMA_VIOLATED, key, reason, -last)


def _retirable(seen: Situation) -> Iterator[ActionItem]:
    reason = "It served no request in the last 30 days, and nothing else requires it."
    for key in seen.retirable:
        yield _of_version(Finding.RETIRABLE, key, reason)


def _next_steps(seen: Situation, known: set[tuple[str, str]]) -> Iterator[ActionItem]:
    """Yield the next step of each version, unless a known item has the same subject and link."""
    for key in seen.versions:
        usage = seen.summaries.get(key, UsageSummary())
        facts = seen.rules, seen.totals, seen.overrides, seen.now
        step = next_step(key, *facts, usage.served, usage.calls)
        if step is None or (name_of(key), version_link(key, step.finding.link)) in known:
            continue
        waits = step.waits
        if step.finding is Finding.ROLLOUT:
            cutover, state, evidence, _, now = seen.cutovers[key]
            waits = f"It {next_change(cutover, state, evidence, now)}."
        yield _of_version(step.finding, key, step.reason)._replace(waits=waits)


_NAMED = 3


class ServiceFailure(NamedTuple):
    """A service with failing targets.

    Attributes:
        subject: the service. In a fleet, it is followed by the replicas that see the failures.
        since: the time of the first failure, in seconds since 1970.
    """

    service: str
    subject: str
    whole: bool
    since: float
    text: str


def service_failures(
    replica: str, here: Sequence[FailingService], fleet: FleetView
) -> Iterator[ServiceFailure]:
    """Yield services with failing targets; replicas that see the same failures share an entry."""
    found: dict[tuple[object, ...], list[tuple[str, FailingService]]] = {}
    others = [
        (each.replica, each.failing)
        for each in fleet.replicas
        if each.presence == "heard" and each.replica != replica
    ]
    for name, services in [(replica, here), *others]:
        for one in services:
            listed = sorted(error.target for error in one.listed)
            alike = one.service, one.targets, one.failing, *listed
            found.setdefault(alike, []).append((name, one))
    for group in found.values():
        first = min((one for _, one in group), key=lambda each: each.since)
        place = f" in {_named([name for name, _ in group])}" if others else ""
        yield ServiceFailure(
            first.service, first.service + place, first.whole, first.since, _text(first)
        )


def _named(replicas: list[str]) -> str:
    more = len(replicas) - _NAMED
    named = ", ".join(replicas[:_NAMED])
    return f"{named} and {more:,} more" if more > 0 else named


def _text(service: FailingService) -> str:
    failing = service.failing
    begin = f"{failing:,} of {service.targets:,} {plural(service.targets, 'target')}"
    listed = [
        f"{each.target} since {moment_text(each.since)} ({each.error or 'health checks fail'})"
        for each in service.listed
    ]
    if failing > len(listed):
        listed.append(f"and {failing - len(listed):,} more")
    then = "Its requests fail" if service.whole else "The other targets get its requests"
    return (
        f"{begin} {'fails' if failing == 1 else 'fail'}: {', '.join(listed)}. {then}."
        " Check whether they are running, and whether the gateway can reach them."
    )
