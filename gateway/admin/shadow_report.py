"""Shadow: how the answers of a version differ, as JSON can say it and as a table for people."""

import msgspec

from gateway.admin.formatting import columns, format_time
from gateway.core.overrides import VersionKey
from gateway.state.totals import Totals


class FieldReport(msgspec.Struct):
    """A field that differed, in so many answers, and was noise in so many others."""

    field: str
    differences: int
    noise: int
    last: str


class DifferenceSample(msgspec.Struct):
    """What a client got in a field, and what it would get."""

    endpoint: str
    field: str
    old: str
    new: str


class ShadowReport(msgspec.Struct):
    """What was found of one version.

    Attributes:
        api: the name of the API.
        version: the label of the version.
        compared: how many answers were compared.
        differing: how many of them differed.
        shed: how many were not compared, by reason.
        fields: what differed, the most frequent first.
        samples: the latest differences, the latest last.
    """

    api: str
    version: str
    compared: int
    differing: int
    shed: dict[str, int]
    fields: list[FieldReport]
    samples: list[DifferenceSample]


def shadow_report(totals: Totals, key: VersionKey) -> ShadowReport:
    """Return what was found of a version."""

    def total(kind: str) -> int:
        return sum(times.count for _, times in totals.counted(kind, *key))

    fields: dict[str, FieldReport] = {}
    for labels, times in totals.counted("differences", *key):
        fields[labels[-1]] = FieldReport(labels[-1], times.count, 0, format_time(times.last))
    for labels, times in totals.counted("noise", *key):
        found = fields.setdefault(
            labels[-1], FieldReport(labels[-1], 0, 0, format_time(times.last))
        )
        found.noise = times.count
    return ShadowReport(
        *key,
        total("compared"),
        total("differing"),
        {labels[-1]: times.count for labels, times in totals.counted("shed", *key)},
        sorted(fields.values(), key=lambda each: (-each.differences, -each.noise, each.field)),
        msgspec.convert(
            list(totals.samples.get(("differences", *key), ())), list[DifferenceSample]
        ),
    )


def shadow_table(found: ShadowReport) -> str:
    """Return it for people."""
    shed = ", ".join(f"{count} {reason}" for reason, count in sorted(found.shed.items()))
    lines = [
        f"{found.api} {found.version}: {found.compared} answers compared, {found.differing} differ"
        + (f"; not compared: {shed}" if shed else "")
    ]
    if found.fields:
        fields = [
            (each.field, str(each.differences), str(each.noise), each.last) for each in found.fields
        ]
        lines += columns([("FIELD", "DIFFERENCES", "NOISE", "LAST"), *fields], right=range(1, 3))
    if found.samples:
        samples = [
            (each.field, each.endpoint, each.old, each.new) for each in reversed(found.samples)
        ]
        lines += columns([("SAMPLE", "ENDPOINT", "CLIENT GOT", "WOULD GET"), *samples])
    return "\n".join(lines)
