"""The verdict on whether a version can be retired, with reasons and remedies."""

import re
from collections.abc import Collection, Iterator, Mapping
from heapq import nlargest
from itertools import islice
from math import inf
from operator import itemgetter
from typing import Literal, NamedTuple

import msgspec

from gateway.base.mistakes import printable
from gateway.base.overrides import Overrides, SetAside, VersionKey
from gateway.findings.conditions import ANSWERS, Finding, VerdictAnswer
from gateway.findings.formatting import client_text, format_time, gap_text, plural
from gateway.findings.next_steps import next_step
from gateway.findings.uncompared import is_served_elsewhere, listed, uncompared_operations
from gateway.rollout.cutover import percent_in_force
from gateway.routing.snapshot import Route, Snapshot
from gateway.store.state import DataGap, StateView
from gateway.usage.operations import Documented
from gateway.usage.totals import TopClients, Totals

WITHIN = "30d"
_PERIOD = re.compile(r"([0-9]{1,5})([smhd])", re.ASCII)
_UNITS = {"s": (1, "second"), "m": (60, "minute"), "h": (3600, "hour"), "d": (86_400, "day")}
# The latest time that can be formatted as a date, in seconds since 1970.
_FOREVER = 253_402_300_799.0
_MAX_NAMED = 5

_ORDER = (*ANSWERS, "note")


class Reason(msgspec.Struct, frozen=True):
    """A reason for or against retiring a version.

    Attributes:
        answer: the answer that follows from the reason; `note` if the reason does not affect the
            answer.
        remedy: the suggested fix; empty if none is needed. If the fix mentions `within`, it means
            the parameter of this name in the command, in the admin API and on the page.
    """

    answer: Literal["yes", "no", "unknown", "note"]
    text: str
    remedy: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The verdict: `no` if any reason is `no`, else `unknown` if any is `unknown`, else `yes`.

    Reasons are sorted in this order, with notes last.

    Attributes:
        next: the next step towards another service; empty if there is none.
    """

    api: str
    version: str
    answer: VerdictAnswer
    reasons: list[Reason]
    next: str = ""


def verdict(
    key: VersionKey,
    view: StateView,
    rules: Snapshot,
    overrides: Overrides,
    *,
    within: str,
    documented: Documented = None,
) -> Verdict:
    """Return the verdict on whether a version can be retired.

    Args:
        within: the period of the evidence, such as 30d, 12h, 5m or 30s. The period ends at the time
            up to which all requests are counted.

    Raises:
        ValueError: `within` is not a valid period.
    """
    period, spelled = _period(within)
    totals, now = view.totals, view.now
    begin, late = view.counted - period, now - view.counted
    over, named = _is_over(key, rules, now), rules.naming is not None
    reasons = [
        *_callers(
            _window(key, totals, overrides, begin, now),
            *(totals, begin, period + late, spelled),
            is_over=over,
            named=named,
        ),
        *_dates(key, rules, now),
        *_service(key, rules),
        *_cutover(key, rules, overrides),
        *_found(key, totals, begin, "differences", ("compared", "validated"), "shadow"),
        *_uncompared(key, totals, rules, documented),
        *_found(key, totals, begin, "violations", ("checked",), "schema"),
        *_elsewhere(view),
    ]
    given = {reason.answer for reason in reasons}
    answer: VerdictAnswer = next((each for each in ANSWERS if each in given), "yes")
    reasons.sort(key=lambda one: _ORDER.index(one.answer))
    served = totals.clients.get(key, TopClients()).served
    step = next_step(key, rules, totals, overrides, now, served)
    if step is None or step.finding in (
        Finding.CALLED,
        Finding.UNCALLED,
    ):  # the reasons already contain these two
        return Verdict(*key, answer, reasons)
    return Verdict(*key, answer, reasons, " ".join(filter(None, (step.reason, step.action))))


def _elsewhere(view: StateView) -> Iterator[Reason]:
    yield from map(_gap, view.gaps)
    if view.replica is not None and not view.gaps:
        yield Reason(
            "unknown",
            f"these are the counts of the replica {view.replica} only",
            "include all replicas: remove 'replica'",
        )


def _gap(gap: DataGap) -> Reason:
    if gap.replica is None:
        text = "so the counts of other replicas are unknown"
        return Reason("unknown", f"{gap_text(gap)}, {text}", "repeat this when it is reachable")
    return Reason(
        "unknown",
        f"{gap_text(gap)}, and may have served it since",
        f"start it again with its disk; if it is lost for good: fleet forget {gap.replica}",
    )


class _Callers(NamedTuple):
    """The time of the latest request of each client in the period; None for all other clients.

    Attributes:
        served: clients with a request that the service accepted.
        rejected: other clients with a request that the service rejected.
        refused: all other clients.
        aside: clients that are set aside, with the end and the reason.
    """

    served: dict[str | None, float]
    rejected: dict[str | None, float]
    refused: dict[str | None, float]
    aside: dict[str, SetAside]


def _window(
    key: VersionKey, totals: Totals, overrides: Overrides, begin: float, now: float
) -> _Callers:
    found, aside = _Callers({}, {}, {}, {}), overrides.aside(now)
    for (_, client), row in totals.clients.get(key, TopClients()).rows.items():
        if row.last >= begin and client is not None and client in aside:
            found.aside[client] = aside[client]
            continue
        times = (found.served, row.served), (found.rejected, row.rejected_at)
        for lasts, last in (*times, (found.refused, row.last)):
            if last >= begin and last > lasts.get(client, 0.0):
                lasts[client] = last
    for client in found.served:
        found.rejected.pop(client, None)
    for client in (*found.served, *found.rejected):
        found.refused.pop(client, None)
    return found


def _callers(
    found: _Callers,
    totals: Totals,
    begin: float,
    period: float,
    spelled: str,
    *,
    is_over: bool,
    named: bool,
) -> Iterator[Reason]:
    served, rejected, refused, aside = found
    window = f"in the last {spelled.removeprefix('1 ')}"
    nobody = "it served no request" if rejected or refused else "nobody has called it"
    if aside:
        nobody = "no other client has called it"
        ends = (
            f"{client_text(name)} until {format_time(until)} ({why})"
            for name, (until, why) in sorted(aside.items())
        )
        texts = [*islice(ends, _MAX_NAMED)]
        more = f", and {len(aside) - _MAX_NAMED} more" if len(aside) > _MAX_NAMED else ""
        yield Reason(
            "note",
            f"{len(aside)} {plural(len(aside), 'client')} that called it {window}"
            f" {'is' if len(aside) == 1 else 'are'} set aside: {', '.join(texts)}{more}",
        )
    if served:
        yield Reason(
            "no",
            f"{_number_of(served)} called it {window}: {_latest(served)}",
            _remedy(served, named=named),
        )
    elif totals.since > begin:
        yield Reason(
            "unknown",
            f"{nobody} since counting began at {format_time(totals.since)}, less than"
            f" {spelled} ago",
            f"repeat this after {format_time(totals.since + period)}, or use a shorter 'within'",
        )
    elif is_over or not refused:
        yield Reason("yes", f"{nobody} {window}")
    if rejected:
        yield Reason(
            "note",
            f"{_number_of(rejected)} called it {window}, and no request was accepted"
            f" (401, 403, 404, 405): {_latest(rejected)}",
        )
    if refused:
        # Before the sunset, a refused client may still depend on the version. After the sunset,
        # retiring the version does not affect the client.
        yield Reason(
            "note" if is_over else "no",
            f"{_number_of(refused)} called it {window} and got only refusals or failures:"
            f" {_latest(refused)}",
            _remedy(refused, named=named),
        )


def _is_over(key: VersionKey, rules: Snapshot, now: float) -> bool:
    terms = rules.terms(key)
    return terms is not None and terms.sunset <= now


def _number_of(lasts: Mapping[str | None, float]) -> str:
    count = len(lasts)
    return f"{'at least ' if None in lasts else ''}{count} {plural(count, 'client')}"


def _latest(lasts: Mapping[str | None, float]) -> str:
    latest = nlargest(_MAX_NAMED, lasts.items(), key=itemgetter(1))
    texts = [f"{client_text(client)} at {format_time(last)}" for client, last in latest]
    more = len(lasts) - len(latest)
    return ", ".join(texts) + (f", and {more} more" if more else "")


_SET_ASIDE = "usage set-aside CLIENT --why TEXT --until DATE"


def _remedy(lasts: Mapping[str | None, float], *, named: bool) -> str:
    if lasts.keys() == {""} and named:
        return (
            "they sent no name that 'clients' in the configuration reads; ask them"
            " to send it, or add a source that contains their name"
        )
    if lasts.keys() == {""}:
        return "configure 'clients' to see their names"
    if lasts.keys() == {None}:
        return "the log has their names; ask them to use another version"
    return f"ask them to use another version; if one may stay: {_SET_ASIDE}"


def _dates(key: VersionKey, rules: Snapshot, now: float) -> Iterator[Reason]:
    terms = rules.terms(key)
    if not key[1]:
        return  # an API without versions has no lifecycle
    if terms is None or terms.sunset == inf:
        yield Reason("note", "no end was announced to clients", "add a lifecycle with a sunset")
        return
    if terms.sunset > now:
        yield Reason(
            "no",
            f"it is promised until {format_time(terms.sunset)}",
            "wait, or change the sunset",
        )
    else:
        yield Reason("yes", f"its sunset was {format_time(terms.sunset)}")
    for client, until in sorted(terms.exempt.items()):
        if until > max(now, terms.sunset):
            yield Reason(
                "no",
                f"{client} may use it until {format_time(min(until, _FOREVER))}",
                "wait, or end the exemption",
            )


def _service(key: VersionKey, rules: Snapshot) -> Iterator[Reason]:
    own = [*rules.routes(key)]
    yield from _dependent_versions(key, rules)
    if not own:
        yield Reason("note", "no service serves it any longer", "remove it from the configuration")
    needed = {name: users for name, users in _uses(rules).services.items() if key in users}
    via = next((route for route in own if route.version != route.service_version), None)
    if via is not None:
        text = f"it is served from version {via.service_version}"
        if needed.keys() == {via.service.name}:
            yield Reason("note", f"{text}, and no other service is configured for it")
            return
        yield Reason("note", text)
    for service, users in needed.items():
        purposes = "" if "" in users[key] else " and ".join(users[key])
        text = f"it needs {service}{' for ' if purposes else ''}{purposes}"
        others = [_name(other) for other in users if other != key]
        if others:
            do = "does" if len(others) == 1 else "do"
            yield Reason("note", f"{text}, as {do} {listed(others)}")
        else:
            yield Reason(
                "note",
                f"{text}; nothing else needs it",
                f"stop {service} after the version is removed from the configuration",
            )


def _dependent_versions(key: VersionKey, rules: Snapshot) -> Iterator[Reason]:
    for purpose, other in sorted(_uses(rules).versions.get(key, ())):
        if purpose == _SHADOW:
            remedy = f"remove the shadow of version {other}, or change its version"
            yield Reason("note", f"the shadow of version {other} sends requests to it", remedy)
        else:
            text = f"version {other} is served from it{' for ' if purpose else ''}{purpose}"
            remedy = {
                "": f"serve version {other} from another version, or from its own service",
                _CUTOVER: f"remove the cutover of version {other}, or change its version",
            }.get(purpose, "declare these operations between other versions, or refuse them")
            yield Reason("no", text, remedy)


_OPERATIONS = "operations that another version lacks"
_CUTOVER, _SHADOW = "its cutover", "its shadow"


def _used_routes(route: Route) -> Iterator[tuple[Route, str]]:
    """Yield the routes of a version, each with its purpose, which is empty for its own route."""
    yield route, ""
    for substitute in route.substitutes.values():
        yield substitute, _OPERATIONS
    for beside, purpose in ((route.cutover, _CUTOVER), (route.shadow, _SHADOW)):
        if beside is not None:
            for used, _ in _used_routes(beside.route):
                yield used, purpose


class _Uses(NamedTuple):
    services: dict[str, dict[VersionKey, dict[str, None]]]
    versions: dict[VersionKey, set[tuple[str, str]]]


def _uses(rules: Snapshot) -> _Uses:
    """Return which versions use which services and versions; cached, since it may take 0.1 s."""
    known = rules.derived.get(__name__)
    if isinstance(known, _Uses):
        return known
    made = rules.derived[__name__] = _Uses({}, {})
    for endpoint in rules.router:
        for label, route in endpoint.routes.items():
            key = endpoint.api, "" if label is None else str(label)
            for used, purpose in _used_routes(route):
                users = made.services.setdefault(used.service.name, {})
                users.setdefault(key, {})[purpose] = None
                if used.service_version != label:
                    other = endpoint.api, str(used.service_version)
                    made.versions.setdefault(other, set()).add((purpose, str(label)))
    return made


def used_services(rules: Snapshot) -> Mapping[str, Collection[VersionKey]]:
    """Return the versions that use each service, also for a cutover or a shadow."""
    return _uses(rules).services


def _name(key: VersionKey) -> str:
    return f"version {key[1]} of {key[0]}" if key[1] else key[0]


def _cutover(key: VersionKey, rules: Snapshot, overrides: Overrides) -> Iterator[Reason]:
    cutover = rules.cutovers.get(key)
    percent = 100 if cutover is None else percent_in_force(cutover, overrides)
    if percent < 100:
        remedy = f"raise it to 100%: cutover set {' '.join(key)} 100 --why TEXT"
        yield Reason("no", f"its cutover is at {percent:g}%", remedy)


def _corrected(kind: str, key: VersionKey) -> str:
    if kind == "violations":
        return (
            "correct the conversion, or the document; then use a shorter period 'within', without"
            " the old violations"
        )
    return (
        "correct the conversion, or ignore known differences; then delete the old differences:"
        f" shadow reset {' '.join(key)} --why TEXT"
    )


def _found(
    key: VersionKey,
    totals: Totals,
    begin: float,
    kind: str,
    cases_kinds: tuple[str, ...],
    by: str,
) -> Iterator[Reason]:
    cases = sum(
        times.count
        for cases_kind in cases_kinds
        for _, times in totals.counted(cases_kind, *key)
        if times.last >= begin
    )
    found = sorted(
        ((times, labels[-1]) for labels, times in totals.counted(kind, *key)),
        key=lambda each: -each[0].last,
    )
    fields = [
        f"{field} {_times(times.count)}, last at {format_time(times.last)}"
        for times, field in found
        if times.last >= begin
    ]
    if fields:
        more = f"; and {len(fields) - _MAX_NAMED} more" if len(fields) > _MAX_NAMED else ""
        yield Reason(
            "no",
            f"{by} {kind}: {'; '.join(fields[:_MAX_NAMED])}{more}",
            _corrected(kind, key),
        )
    elif cases:
        yield Reason("yes", f"no {by} {kind} in {cases} {plural(cases, 'response')}")
    else:
        left_out = totals.counted("unchecked", *key) if kind == "violations" else ()
        number = sum(times.count for _, times in left_out if times.last >= begin)
        why = ""
        if number:
            responses = f"{number} {plural(number, 'response')}"
            why = f": {responses} could not be validated; check_failed in the log has the reason"
        yield Reason("note", f"{by} {kind} were not checked{why}")


def _uncompared(
    key: VersionKey,
    totals: Totals,
    rules: Snapshot,
    documented: Documented,
) -> Iterator[Reason]:
    if not is_served_elsewhere(key, totals, rules):
        return
    operations = uncompared_operations(key, totals, rules, documented)
    if operations:
        # Without a service of its own, the version has no responses to compare with.
        own = any(route.version == route.service_version for route in rules.routes(key))
        yield Reason(
            "note",
            f"never compared: {listed(operations)}",
            "compare them with a shadow; its 'validate' and 'dry_run' are for writes"
            if own
            else f"prove their conversions: verify --api {key[0]}",
        )


def _period(text: str) -> tuple[float, str]:
    found = _PERIOD.fullmatch(text)
    if found is None or not int(found[1]):
        raise ValueError(f"'{text}' is not a period; write it like 30d, 12h, 5m or 30s")
    seconds, unit = _UNITS[found[2]]
    count = int(found[1])
    return count * seconds, f"{count} {plural(count, unit)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def sentence(found: Verdict) -> str:
    lines = [f"Version {found.version} of {found.api} {ANSWERS[found.answer].text}:"]
    for reason in found.reasons:
        lines.append(f"  {reason.answer:<7}  {printable(reason.text)}")
        if reason.remedy:
            lines.append(f"           -> {reason.remedy}")
    if found.next:
        lines.append(f"  next     {printable(found.next)}")
    return "\n".join(lines)
