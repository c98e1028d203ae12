"""The Services view: each target's health, share of load and latency; expiry of certificates."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.admin.page.listing import Listing, listing
from gateway.findings.action_items import ServiceFailure, name_of, service_failures
from gateway.findings.operator import Operator
from gateway.findings.retirement import used_services
from gateway.http.upstream.service import Service
from gateway.store.state import FleetView
from gateway.usage.history import Interval, Resolution

_DAY = 86_400.0


def services_page(
    operator: Operator, fleet: FleetView, now: float, query: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the template values; `query` has the parameters `find` and `page`."""
    sent = _sent(operator)
    failing = {(each.service, each.target): each for each in operator.targets()}
    failures = defaultdict[str, list[ServiceFailure]](list)
    for one in service_failures(operator.state.replica, operator.failing_services(), fleet):
        failures[one.service].append(one)
    users, text = used_services(operator.rules), query.get("find", "").casefold()

    def row(service: Service) -> Mapping[str, Any]:
        total = sum(sent[each.authority].requests for each in service.targets)
        return {
            "service": service,
            "users": [name_of(key) for key in users.get(service.name, ())],
            "failures": failures.get(service.name, ()),
            "fails": any(each.whole for each in failures.get(service.name, ())),
            "targets": [
                {
                    "target": target,
                    "failing": failing.get((service.name, target.authority)),
                    "sent": sent[target.authority],
                    "share": sent[target.authority].requests / total if total else None,
                    "slow": sent[target.authority].quantile(0.95),
                }
                for target in service.targets
            ],
        }

    found: Listing[Service] = listing(
        [*operator.rules.services.values()],
        query,
        {"service": lambda each: (each.name not in failures, each.name)},
        default="service",
        fits=lambda each: text in " ".join((each.name, *_authorities(each))).casefold(),
    )
    expiries = operator.certificate_expiries().items()
    return {
        "table": found,
        "rows": [row(each) for each in found.rows],
        "certificates": [
            (file, ends, (ends - now) / _DAY)
            for file, ends in sorted(expiries, key=lambda each: each[1])
        ],
    }


def _authorities(service: Service) -> Iterator[str]:
    return (each.authority for each in service.targets)


def _sent(operator: Operator) -> Mapping[str, Interval]:
    """Return the requests to each target since this gateway started; errors are failures."""
    found = defaultdict[str, Interval](lambda: Interval(Resolution.MINUTE))
    for (_, _, target), total in [*operator.totals.upstream.items()]:
        one = found[target]
        for (_, status, error), durations in [*total.endings.items()]:
            count = sum(durations.buckets)
            one.add_counts(count, count if error or status >= 500 else 0, 0)
            one.add_durations(durations.buckets, durations.seconds)
    return found
