"""ShadowReport: the differences that the shadow of a version found, as JSON and as a table."""

from typing import Literal

import msgspec

from gateway.base.overrides import VersionKey
from gateway.findings.formatting import columns, compared_text, format_time, plural
from gateway.findings.uncompared import listed
from gateway.rollout.cutover import CutoverRoute
from gateway.usage.delta import latency_quantile
from gateway.usage.totals import Totals


class FieldReport(msgspec.Struct):
    """A field of answers or of requests.

    Attributes:
        field: the field; one of a request begins with `request`.
        differences: the number of answers in which it differed, or of requests refused for it.
        noise: the number of answers in which it differed without meaning.
        last: when it differed last.
        kind: whether it is a field of an answer that was compared or of a request that was
            validated.
    """

    field: str
    differences: int
    noise: int
    last: str
    kind: Literal["answer", "request"] = "answer"


class DifferenceSample(msgspec.Struct):
    """The value of a field that a client got, and the value that it would get.

    Attributes:
        endpoint: the path of the endpoint.
        field: the field.
        old: the value that the client got; of a request, the status of the answer.
        new: the value that it would get; of a request, the reason for the refusal.
        request_id: the id of a request that shows it, in the log and at the services.
        method: the method of that request.
        path: its path, without the query.
    """

    endpoint: str
    field: str
    old: str
    new: str
    request_id: str
    method: str
    path: str


class LatencyReport(msgspec.Struct):
    """The times from a request to the head of its answer, in milliseconds, at most 5% off.

    Attributes:
        answers: the number of answers.
        p50_ms: the time within which half of them came.
        p95_ms: the time within which 95% came.
        p99_ms: the time within which 99% came.
    """

    answers: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class ShadowReport(msgspec.Struct):
    """The differences of one version.

    Attributes:
        api: the name of the API.
        version: the label of the version.
        compared: the number of answers compared.
        differing: the number of answers that differed.
        validated: the number of requests validated, and not sent.
        invalid: the number of requests that would be refused.
        shed: the number of requests that were not compared, by reason.
        fields: the fields that differed, the most frequent first.
        samples: the latest differences, the latest last.
        old: how long the version's own service took for the answers compared; None for no answers.
        new: how long the other version's service took for the same.
        uncompared: the operations of which no request was ever compared.
        replica: the replica whose counts alone these are; None for all of them.
    """

    api: str
    version: str
    compared: int
    differing: int
    validated: int
    invalid: int
    shed: dict[str, int]
    fields: list[FieldReport]
    samples: list[DifferenceSample]
    old: LatencyReport | None = None
    new: LatencyReport | None = None
    uncompared: list[str] = []
    replica: str | None = None


def shadow_report(
    totals: Totals, key: VersionKey, uncompared: list[str], replica: str | None = None
) -> ShadowReport:
    """Return the report of a version, with the operations that were never compared.

    Args:
        totals: what was counted.
        key: the version.
        uncompared: its operations of which no request was ever compared.
        replica: the replica whose counts alone these are; None for all of them.
    """

    def total(kind: str) -> int:
        return sum(occurrences.count for _, occurrences in totals.counted(kind, *key))

    fields: dict[str, FieldReport] = {}
    for labels, occurrences in totals.counted("differences", *key):
        fields[labels[-1]] = FieldReport(
            labels[-1],
            occurrences.count,
            0,
            format_time(occurrences.last),
            "request" if labels[-1].startswith("request ") else "answer",
        )
    for labels, occurrences in totals.counted("noise", *key):
        found = fields.setdefault(
            labels[-1], FieldReport(labels[-1], 0, 0, format_time(occurrences.last))
        )
        found.noise = occurrences.count
    return ShadowReport(
        *key,
        compared=total("compared"),
        differing=total("differing"),
        validated=total("validated"),
        invalid=total("invalid"),
        shed={
            labels[-1]: occurrences.count for labels, occurrences in totals.counted("shed", *key)
        },
        fields=sorted(
            fields.values(), key=lambda each: (-each.differences, -each.noise, each.field)
        ),
        samples=[
            msgspec.convert(
                {**msgspec.to_builtins(each.document), **each.request}, DifferenceSample
            )
            for each in totals.samples.get(("differences", *key), ())
        ],
        old=_latency(totals, key, CutoverRoute.OLD),
        new=_latency(totals, key, CutoverRoute.NEW),
        uncompared=uncompared,
        replica=replica,
    )


def _latency(totals: Totals, key: VersionKey, route: CutoverRoute) -> LatencyReport | None:
    buckets = totals.latencies.get((*key, route))
    if not buckets:
        return None
    shares = (round(latency_quantile(buckets, share) * 1000, 1) for share in (0.5, 0.95, 0.99))
    return LatencyReport(buckets.total(), *shares)


def shadow_table(found: ShadowReport) -> str:
    """Return tables for people."""
    shed = ", ".join(f"{count} {reason}" for reason, count in sorted(found.shed.items()))
    lines = [
        f"{found.api} {found.version}: {compared_text(found.compared, found.differing)}"
        + (
            f"; {found.validated} {plural(found.validated, 'request')} validated,"
            f" {found.invalid} would be refused"
            if found.validated
            else ""
        )
        + (f"; not compared: {shed}" if shed else "")
    ]
    for name, latency in (("old route", found.old), ("new route", found.new)):
        if latency is not None:
            lines.append(
                f"  {name}  p50 {latency.p50_ms:.1f} ms, p95 {latency.p95_ms:.1f} ms,"
                f" p99 {latency.p99_ms:.1f} ms"
            )
    if found.uncompared:
        lines.append(f"  missing    never compared: {listed(found.uncompared)}")
    if found.fields:
        fields = [
            (each.field, str(each.differences), str(each.noise), each.last) for each in found.fields
        ]
        lines += columns([("FIELD", "DIFFERENCES", "NOISE", "LAST"), *fields], right=range(1, 3))
    if found.samples:
        samples = [
            (each.field, each.old, each.new, f"{each.method} {each.path}", each.request_id)
            for each in reversed(found.samples)
        ]
        head = ("SAMPLE", "CLIENT GOT", "WOULD GET", "REQUEST", "ID")
        lines += columns([head, *samples])
    if found.replica is not None:
        lines.append(f"These are the counts of the replica {found.replica} alone.")
    return "\n".join(lines)
