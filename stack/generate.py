"""Write the files that are derived from the code, as `make generate` does."""

import json
from pathlib import Path

from gateway.observe.metric_table import METRICS, MetricRow
from gateway.rules.editor_schema import json_schema

ROOT = Path(__file__).parents[1]


def schema() -> str:
    """Return the JSON Schema of gateway.yaml."""
    return json.dumps(json_schema(), indent=2) + "\n"


def metrics_page() -> str:
    """Return the table of metrics."""
    rows = "\n".join(map(_metric, METRICS))
    return f"""\
# Metrics

Generated from `gateway/observe/metric_table.py` by `make generate`. The values in the third column
are those of the last label; [Operate](operate.md#metrics) explains the labels of `http_*`. Metrics
that are kept continue after a restart if `state` names a store; other counters and histograms begin
at zero.

| Metric | Type | Labels | Kept | What |
| --- | --- | --- | --- | --- |
{rows}
"""


def _metric(row: MetricRow) -> str:
    labels = ", ".join(f"`{label}`" for label in row.labels)
    if row.values:
        labels += ": " + ", ".join(f"`{value}`" for value in row.values)
    kept = "" if row.type == "gauge" else "yes" if row.lasting else "no"
    return f"| `{row.name}` | {row.type} | {labels} | {kept} | {row.help} |"


GENERATED = {"gateway.schema.json": schema, "docs/metrics.md": metrics_page}
"""The functions that return the text of each derived file, by its path."""


def main() -> None:
    """Write each derived file."""
    for path, text in GENERATED.items():
        (ROOT / path).write_text(text())


if __name__ == "__main__":
    main()
