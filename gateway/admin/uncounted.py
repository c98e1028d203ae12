"""What front proxies send straight to services, as far as it is not counted by their logs."""

from collections.abc import Iterator

from gateway.admin.formatting import format_time
from gateway.core.snapshot import Snapshot
from gateway.state.state_access import LogReading, StateView


def uncounted(
    rules: Snapshot, view: StateView, period: float, spelled: str
) -> Iterator[tuple[str, str]]:
    """Yield why not all requests are counted, and the remedy of each reason.

    An export that is not in force any more, by the rules, may be so in a front proxy. So this
    matters to every version, and so does a front proxy that the rules have ceased to name.

    Args:
        rules: the rules in force.
        view: what was counted, and until when.
        period: the seconds before the time of the view that matter.
        spelled: the same, for a sentence.
    """
    if rules.bypass and not rules.front_proxies:
        yield (
            "front proxies may send its requests straight to services, and these are not counted",
            "name the front proxies in 'bypass', and count by their logs: usage import",
        )
        return
    if rules.front_proxies and not (rules.state or "").startswith("postgres"):
        yield (
            f"what {', '.join(rules.front_proxies)} sends straight to services is not counted",
            "name a database of PostgreSQL in 'state'; logs of front proxies are counted there",
        )
        return
    logs = {log.name: log for log in view.logs}
    for name in rules.front_proxies:
        again = f"have its log read: usage import --follow FILE --source {name}"
        yield from _of_log(name, logs.pop(name, None), view.now, period, spelled, again)
    for log in logs.values():
        if log.until > view.now - period:
            again = (
                f"name {log.name} in 'bypass', and have its log read; or ask again after"
                f" {format_time(log.until + period)}, if it sends nothing straight any more"
            )
            yield from _of_log(log.name, log, view.now, period, spelled, again)


def _of_log(
    name: str, log: LogReading | None, now: float, period: float, spelled: str, again: str
) -> Iterator[tuple[str, str]]:
    if log is None or not log.until:
        yield f"what {name} sends straight to services was never counted", again
    elif not log.is_fresh(now):
        yield f"what {name} sends straight is counted until {format_time(log.until)} only", again
    elif log.since > now - period:
        since = format_time(log.since) + (f", because {log.reason}" if log.reason else "")
        yield (
            f"what {name} sends straight is counted since {since}, less than {spelled} ago",
            f"ask again after {format_time(log.since + period)}, or look less far back: 'within'",
        )
