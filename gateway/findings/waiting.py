"""Waiting: what waits for somebody, the most urgent first, each with its reason and one action."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple
from urllib.parse import quote

from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.catalog import CatalogVersion
from gateway.findings.formatting import moment_text, period_text, plural, sentence
from gateway.findings.notification import FailingWebhook
from gateway.findings.service_failures import service_failures
from gateway.findings.standing import Standing
from gateway.lifecycle.brownout import WindowOccurrence
from gateway.observe.failing_service import FailingService
from gateway.rollout.cutover_state import DecidedBy, awaited, outlook
from gateway.rollout.cutovers import CurrentCutover
from gateway.rollout.decisions import AuditEntry
from gateway.rollout.gates import GateOutcome
from gateway.store.state import FleetView
from gateway.usage.totals import Totals

DAY = 86_400.0
# A sunset is near from so many days before it on.
_NEAR = 30
# A gate is near its limit from this share of what it allows.
_PRESSED = 0.8
# A step that has lasted so many times as long as it was to, waits for more than a few requests.
_STUCK = 2

Urgency = Literal["now", "soon", "ready"]
Tone = Literal["bad", "warn", "info", "good"]


class Waiting(NamedTuple):
    """Something that waits for somebody.

    Attributes:
        urgency: when it has to be done.
        rank: which of the same urgency come first; the lowest.
        at: which of the same rank come first; the lowest.
        tone: how bad it is.
        kind: what it is, in one or two words.
        subject: what it is about: a version, a file, a replica.
        reason: why it waits, as a sentence.
        action: what to do, as a button has it.
        link: where that is done.
    """

    urgency: Urgency
    rank: int
    at: float
    tone: Tone
    kind: str
    subject: str
    reason: str
    action: str
    link: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What is looked at.

    Attributes:
        now: in seconds since 1970.
        versions: what the rules have of each version.
        standings: how each version is used.
        cutovers: how each cutover stands.
        retirable: the versions that can be retired.
        overrides: those in force.
        totals: what was counted.
        fleet: the replicas.
        refused: why the rules on disk are not in force; empty if they are.
        replica: the name of this gateway.
        unready: why the gateway cannot serve; None if it can.
        failing: the tasks that fail.
        stale_since: since when the store of the state has not been reached; None if it is.
        stale_reason: why it has not.
        changes: the audit log, the latest last; needed if anything is paused by hand.
        webhooks: those that take no messages.
        services: those with targets that fail in this gateway.
    """

    now: float
    versions: Mapping[VersionKey, CatalogVersion]
    standings: Mapping[VersionKey, Standing]
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


def waiting(seen: Situation) -> list[Waiting]:
    """Return what waits for somebody, the most urgent first."""
    found = [
        *_gateway(seen),
        *_replicas(seen),
        *_webhooks(seen),
        *_services(seen),
        *_cutovers(seen),
        *_sunsets(seen),
        *_brownouts(seen),
        *_violations(seen),
        *_retirable(seen),
    ]
    order = ("now", "soon", "ready")
    # What is alike in all of that stays in the order of the rules: version 2 before version 10.
    return sorted(found, key=lambda one: (order.index(one.urgency), one.rank, one.at))


def version_link(key: VersionKey, part: str = "") -> str:
    """Return the address of the view of a version, or of a part of it."""
    place = "/".join(quote(step, safe="") for step in key if step)
    return f"/page/versions/{place}{part}"


def name_of(key: VersionKey) -> str:
    """Return the name of a version for people."""
    return " ".join(key).rstrip()


def _gateway(seen: Situation) -> Iterator[Waiting]:
    if seen.unready is not None:
        yield Waiting(
            *("now", 0, 0.0, "bad", "Not ready", "This gateway"),
            f"It takes no requests: {seen.unready}.",
            *("See the reason", "/readyz"),
        )
    yield from _refused(seen)
    if seen.stale_since is not None:
        yield Waiting(
            *("now", 0, 2.0, "bad", "State is stale", "The store of the state"),
            f"It has not been reached since {moment_text(seen.stale_since)}: {seen.stale_reason}."
            " Requests are answered all the same, and counts wait.",
            *("See the replicas", "/page/audit#replicas"),
        )
    for task in seen.failing:
        yield Waiting(
            *("now", 3, 0.0, "bad", "Task fails", task),
            "It failed within the last minute and is started again; the log has the reason.",
            *("See the metrics", "/metrics"),
        )


def _refused(seen: Situation) -> Iterator[Waiting]:
    """Yield the mistakes of the rules on disk, of each file once, however many replicas have it."""
    found: dict[str, list[str]] = {seen.refused: [seen.replica]} if seen.refused else {}
    for each in seen.fleet.replicas:
        if each.refused and each.presence == "heard" and each.replica != seen.replica:
            found.setdefault(each.refused, []).append(each.replica)
    for text, names in found.items():
        here = names == [seen.replica]
        yield Waiting(
            *("now", 0, 1.0, "bad", "Rules refused"),
            "The file on disk" if here else f"The file on disk of {', '.join(names)}",
            sentence(f"it cannot be used, and the former rules stay in force: {text}"),
            *(
                ("See the mistakes", "/page/rules#mistakes")
                if names[0] == seen.replica
                else ("See the replicas", "/page/audit#replicas")
            ),
        )


def _replicas(seen: Situation) -> Iterator[Waiting]:
    for replica in seen.fleet.replicas:
        if replica.presence == "lost":
            yield Waiting(
                *("now", 3, replica.heard, "bad", "Replica lost", replica.replica),
                f"It has not been heard since {moment_text(replica.heard)}; what it counted since"
                " then is missing.",
                *("See the replicas", "/page/audit#replicas"),
            )
    if seen.stale_since is not None:
        return  # that is why they cannot be read
    for warning in seen.fleet.warnings:
        yield Waiting(
            *("now", 4, 0.0, "warn", "Fleet", "The replicas"),
            sentence(warning),
            *("See the replicas", "/page/audit#replicas"),
        )


def _webhooks(seen: Situation) -> Iterator[Waiting]:
    for webhook in seen.webhooks:
        yield Waiting(
            *("now", 4, webhook.since, "bad", "Webhook fails", webhook.webhook),
            *(webhook.text, "See the messages", "/page/audit#word"),
        )


def _services(seen: Situation) -> Iterator[Waiting]:
    for subject, whole, since, text in service_failures(seen.replica, seen.services, seen.fleet):
        yield Waiting(
            *("now" if whole else "soon", 0, since, "bad" if whole else "warn"),
            *("Service fails", subject, text, "See the targets", "/page/rules"),
        )


def _cutovers(seen: Situation) -> Iterator[Waiting]:
    for key, (cutover, state, evidence, results, now) in seen.cutovers.items():
        there = version_link(key, "#cutover")
        if state.decided_by is DecidedBy.OPERATOR:
            if state.percent != cutover.percent:
                yield Waiting(
                    *("soon", 4, state.since, "info", "Cutover paused", name_of(key)),
                    f"It was set to {state.percent:g}% {_by_hand(seen, 'cutover', key)}. Until it"
                    " is cleared, neither steps nor gates move it.",
                    *("Clear the cutover", there),
                )
            continue
        if state.decided_by is DecidedBy.ROLLED_BACK:
            yield Waiting(
                *("now", 1, -state.since, "bad", "Rolled back", name_of(key)),
                f"Its cutover went back to 0%: {state.why}.",
                *("See the gates", there),
            )
            continue
        exceeded = [one for one in results if one.outcome is GateOutcome.EXCEEDED]
        pressed = [
            (one, used)
            for one in results
            if one.outcome is GateOutcome.PASSED and (used := one.pressure or 0.0) >= _PRESSED
        ]
        if exceeded:
            dry = cutover.gates is not None and cutover.gates.dry_run
            stays = f" It stays at {state.percent:g}%: the gates are a dry run." if dry else ""
            yield Waiting(
                *("now", 2, 0.0, "bad", "Gate exceeded", name_of(key)),
                sentence(exceeded[0].text) + stays,
                *("See the gates", there),
            )
        elif state.decided_by is DecidedBy.HELD:
            yield Waiting(
                *("soon", 1, -state.since, "warn", "Held", name_of(key)),
                f"Its cutover stays at {state.percent:g}%: {state.why}. Now it"
                f" {outlook(cutover, state, evidence, now)}.",
                *("See the gates", there),
            )
        elif pressed:
            one, used = max(pressed, key=lambda each: each[1])
            yield Waiting(
                *("soon", 1, -used, "warn", "Gate near its limit", name_of(key)),
                sentence(one.text),
                *("See the gates", there),
            )
        elif now - state.since >= _STUCK * cutover.every:
            more = awaited(cutover, state, evidence, now)
            if more is not None:
                yield Waiting(
                    *("soon", 1, state.since, "warn", "Step waits", name_of(key)),
                    f"Its cutover has stayed at {state.percent:g}% for"
                    f" {period_text(now - state.since)}, and not for {period_text(cutover.every)}:"
                    f" it takes {more}.",
                    *("See the gates", there),
                )


def _by_hand(seen: Situation, what: str, key: VersionKey) -> str:
    """Return who made the latest change of a kind, when and why; the audit log is bounded."""
    for entry in reversed(seen.changes):
        # What the gateway itself has changed has no origin.
        if (entry.what, entry.api, entry.version) == (what, *key) and entry.origin:
            why = f": {entry.why}" if entry.why else ""
            return f"by {entry.who} at {moment_text(entry.at)}{why}"
    return "by hand; who did so, and why, is not in the audit log"


def _sunsets(seen: Situation) -> Iterator[Waiting]:
    for key, version in seen.versions.items():
        standing = seen.standings.get(key)
        if version.terms is None or standing is None:
            continue
        left = version.terms.sunset - seen.now
        if not 0 < left <= _NEAR * DAY or standing.served < seen.now - _NEAR * DAY:
            continue
        near = left <= 7 * DAY
        yield Waiting(
            "now" if near else "soon",
            *(5 if near else 2, left, "bad" if near else "warn", "Sunset is near", name_of(key)),
            f"It ends in {period_text(left)}, and {standing.calls}.",
            *("See who calls", version_link(key, "#callers")),
        )


def _brownouts(seen: Situation) -> Iterator[Waiting]:
    for key, version in seen.versions.items():
        if (first := next(iter(version.upcoming(seen.now)), None)) is None:
            continue
        if key in seen.overrides.paused:
            yield Waiting(
                *("soon", 4, first.begins, "info", "Brownouts paused", name_of(key)),
                f"They were paused {_by_hand(seen, 'brownout pause', key)}. Without that, it"
                f" {_refuses(first, seen.now)}.",
                *("Resume the brownouts", version_link(key, "#brownouts")),
            )
            continue
        if first.begins >= seen.now + DAY:
            continue
        yield Waiting(  # it comes by itself, so that what somebody has to do stands before it
            *("soon", 5, first.begins, "info", "Brownout", name_of(key)),
            f"It {_refuses(first, seen.now)}.",
            *("See the brownouts", version_link(key, "#brownouts")),
        )


def _refuses(window: WindowOccurrence, now: float) -> str:
    if window.begins <= now:
        until = "without an end" if window.ends == inf else f"until {moment_text(window.ends)}"
        return f"refuses {window.percent:g}% of its requests {until}"
    lasts = "" if window.ends == inf else f" for {period_text(window.ends - window.begins)}"
    begins = moment_text(window.begins)
    return f"will refuse {window.percent:g}% of its requests from {begins}{lasts}"


def _violations(seen: Situation) -> Iterator[Waiting]:
    latest: dict[VersionKey, tuple[str, int, float]] = {}
    for (api, version, field), times in seen.totals.counted("violations"):
        key, known = (api, version), latest.get((api, version), ("", 0, 0.0))
        if times.last >= seen.now - DAY and key in seen.versions:
            field, last = max((known[0], known[2]), (field, times.last), key=lambda one: one[1])
            latest[key] = (field, known[1] + times.count, last)
    for key, (field, count, last) in latest.items():
        yield Waiting(
            *("soon", 3, -last, "warn", "Schema violated", name_of(key)),
            f"Converted answers broke its OpenAPI document {count:,} {plural(count, 'time')}, last"
            f" at {moment_text(last)} in {field}.",
            *("See the verdict", version_link(key, "#retire")),
        )


def _retirable(seen: Situation) -> Iterator[Waiting]:
    for key in seen.retirable:
        yield Waiting(
            *("ready", 1, 0.0, "good", "Can be retired", name_of(key)),
            "Nobody was let through to it in the last 30 days, and nothing speaks against it.",
            *("See the verdict", version_link(key, "#retire")),
        )
