"""The shadow of a version: the fields that differ, by share, with samples and what mends them."""

from dataclasses import dataclass

from gateway.admin.page.suggested_fix import SuggestedFix, suggest_fix
from gateway.admin.shadow_report import DifferenceSample, FieldReport, ShadowReport, shadow_report
from gateway.findings.version_summary import VersionSummary
from gateway.usage.totals import Totals

# A view shows so many fields, and of each so many samples.
MOST_FIELDS = 50
_MOST_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class DifferingField:
    """A field that differs.

    Attributes:
        report: how often, and when last.
        share: of the answers that were compared, or of the requests that were validated.
        samples: the latest.
        fix: the suggested fixes.
    """

    report: FieldReport
    share: float
    samples: list[DifferenceSample]
    fix: SuggestedFix


@dataclass(frozen=True, slots=True)
class ShadowPart:
    """What is shown of a shadow: its counts, and the fields that differ; `more` are left out."""

    report: ShadowReport
    fields: list[DifferingField]
    more: int


def shadow_part(
    version: VersionSummary, totals: Totals, uncompared: list[str]
) -> ShadowPart | None:
    """Return what is shown of a shadow; None if there is none, and none has counted anything."""
    report = shadow_report(totals, version.key, uncompared)
    if version.shadow is None and not (report.compared or report.validated or report.shed):
        return None
    fields = [_field(each, report, version) for each in report.fields[:MOST_FIELDS]]
    return ShadowPart(report, fields, max(len(report.fields) - MOST_FIELDS, 0))


def _field(each: FieldReport, report: ShadowReport, version: VersionSummary) -> DifferingField:
    of = report.validated if each.kind == "request" else report.compared
    samples = [sample for sample in report.samples if sample.field == each.field]
    return DifferingField(
        each,
        min(each.differences / max(of, 1), 1.0),
        samples[-_MOST_SAMPLES:][::-1],
        suggest_fix(each.field, report.samples, version.shadow, newer=version.shadowed_by_newer),
    )
