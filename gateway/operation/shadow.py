"""Shadow: how the answers of a version differ, as JSON can say it and as a table for people."""

import msgspec

from gateway.core.orders import Served
from gateway.operation.ledger import Ledger
from gateway.operation.usage import moment


class Field(msgspec.Struct):
    """A field that differed, in so many answers, and was noise in so many others."""

    field: str
    differences: int
    noise: int
    last: str


class Shadow(msgspec.Struct):
    """What was found of one version.

    Attributes:
        api: the name of the API.
        version: the label of the version.
        compared: how many answers were compared.
        differing: how many of them differed.
        shed: how many were not compared, by reason.
        fields: what differed, the most frequent first.
        samples: the latest differences.
    """

    api: str
    version: str
    compared: int
    differing: int
    shed: dict[str, int]
    fields: list[Field]
    samples: list[object]


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
        list(ledger.samples.get(("differences", *served), ())),
    )


def table(found: Shadow) -> str:
    """Return it for people."""
    shed = ", ".join(f"{count} {reason}" for reason, count in sorted(found.shed.items()))
    lines = [
        f"{found.api} {found.version}: {found.compared} answers compared, {found.differing} differ"
        + (f"; not compared: {shed}" if shed else "")
    ]
    if found.fields:
        width = max(len("FIELD"), *(len(each.field) for each in found.fields))
        lines.append(f"{'FIELD':<{width}}  DIFFERENCES  NOISE  LAST")
        lines += [
            f"{each.field:<{width}}  {each.differences:>11}  {each.noise:>5}  {each.last}"
            for each in found.fields
        ]
    lines += [msgspec.json.encode(sample).decode() for sample in found.samples]
    return "\n".join(lines)
