"""Shadow: how the answers of a version differ, as JSON can say it and as a table for people."""

import msgspec

from gateway.core.orders import Served
from gateway.operation.ledger import Ledger
from gateway.operation.usage import columns, moment


class Field(msgspec.Struct):
    """A field that differed, in so many answers, and was noise in so many others."""

    field: str
    differences: int
    noise: int
    last: str


class Sample(msgspec.Struct):
    """What a client got in a field, and what it would get."""

    endpoint: str
    field: str
    old: str
    new: str


class Shadow(msgspec.Struct):
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
    fields: list[Field]
    samples: list[Sample]


def shadow(ledger: Ledger, served: Served) -> Shadow:
    """Return what was found of a version."""

    def total(kind: str) -> int:
        return sum(times.count for _, times in ledger.counted(kind, *served))

    fields: dict[str, Field] = {}
    for labels, times in ledger.counted("differences", *served):
        fields[labels[-1]] = Field(labels[-1], times.count, 0, moment(times.last))
    for labels, times in ledger.counted("noise", *served):
        found = fields.setdefault(labels[-1], Field(labels[-1], 0, 0, moment(times.last)))
        found.noise = times.count
    return Shadow(
        *served,
        total("compared"),
        total("differing"),
        {labels[-1]: times.count for labels, times in ledger.counted("shed", *served)},
        sorted(fields.values(), key=lambda each: (-each.differences, -each.noise, each.field)),
        msgspec.convert(list(ledger.samples.get(("differences", *served), ())), list[Sample]),
    )


def table(found: Shadow) -> str:
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
