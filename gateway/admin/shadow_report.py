"""ShadowReport: the differences that the shadow of a version found, as JSON and as a table."""

import msgspec

from gateway.admin.formatting import columns, format_time
from gateway.core.overrides import VersionKey
from gateway.state.totals import Totals


class FieldReport(msgspec.Struct):
    """A field of answers; in how many it differed, and in how many that was noise."""

    field: str
    differences: int
    noise: int
    last: str


class DifferenceSample(msgspec.Struct):
    """The value of a field that a client got, and the value that it would get."""

    endpoint: str
    field: str
    old: str
    new: str


class ShadowReport(msgspec.Struct):
    """The differences of one version.

    Attributes:
        api: the name of the API.
        version: the label of the version.
        compared: the number of answers compared.
        differing: the number of answers that differed.
        shed: the number of answers that were not compared, by reason.
        fields: the fields that differed, the most frequent first.
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
    """Return the report of a version."""

    def total(kind: str) -> int:
        return sum(occurrences.count for _, occurrences in totals.counted(kind, *key))

    fields: dict[str, FieldReport] = {}
    for labels, occurrences in totals.counted("differences", *key):
        fields[labels[-1]] = FieldReport(
            labels[-1], occurrences.count, 0, format_time(occurrences.last)
        )
    for labels, occurrences in totals.counted("noise", *key):
        found = fields.setdefault(
            labels[-1], FieldReport(labels[-1], 0, 0, format_time(occurrences.last))
        )
        found.noise = occurrences.count
    return ShadowReport(
        *key,
        total("compared"),
        total("differing"),
        {labels[-1]: occurrences.count for labels, occurrences in totals.counted("shed", *key)},
        sorted(fields.values(), key=lambda each: (-each.differences, -each.noise, each.field)),
        msgspec.convert(
            list(totals.samples.get(("differences", *key), ())), list[DifferenceSample]
        ),
    )


def shadow_table(found: ShadowReport) -> str:
    """Return tables for people."""
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
