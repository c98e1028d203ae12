"""Results as a page in Markdown and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median

from benchmarks.measure import Result, Sample, Verdict


def page(facts: Mapping[str, str], effort: str, results: Sequence[Result]) -> str:
    """Return results.md: the verdicts, the samples, and the commands to repeat them."""
    return "\n".join(
        [
            "# Results",
            "",
            "Made by `make bench`; [README.md](README.md) explains the columns. Numbers are",
            f"medians over rounds, and ratios are taken within a round. {effort}",
            "",
            "![Ratios](chart.svg)",
            "",
            "## Verdicts",
            "",
            *_table(
                ("Compared", "Run", "Median", "Lowest … highest", "Goal", ""),
                [_found(result, verdict) for result in results for verdict in result.verdicts],
                left=1,
            ),
            "",
            *(
                f"{result.title}: skipped, {result.skipped}.\n"
                for result in results
                if result.skipped
            ),
            "## Where",
            "",
            *_table(("", ""), list(facts.items()), left=2),
            *(line for result in results if result.rounds for line in _details(result)),
            "",
        ]
    )


def data(facts: Mapping[str, str], effort: str, results: Sequence[Result]) -> str:
    """Return results.json, with every sample of every round."""
    whole = {
        "machine": dict(facts),
        "effort": effort,
        "results": [
            {
                "title": result.title,
                "unit": result.unit,
                "skipped": result.skipped,
                "verdicts": [{**asdict(each), "median": each.median} for each in result.verdicts],
                "rounds": [
                    {name: asdict(one) for name, one in each.items()} for each in result.rounds
                ],
                "commands": result.commands,
            }
            for result in results
        ],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def number(value: float) -> str:
    """Format a number with three significant digits and thousands separators."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 10 else f"{value:.2f}"


def _found(result: Result, verdict: Verdict) -> tuple[str, ...]:
    low, high = min(verdict.values), max(verdict.values)
    return (
        result.title,
        verdict.text,
        f"**{number(verdict.median)}** {verdict.unit}",
        f"{number(low)} … {number(high)}",
        str(verdict.goal or ""),
        "" if verdict.goal is None else "met" if verdict.met else "missed",
    )


def _details(result: Result) -> list[str]:
    unit = result.unit
    head = ("", f"{unit}/s", f"CPU µs/{unit}", "core busy", "p50 ms", "p99 ms", "RSS MB")
    rows = [(name, *_medians([each[name] for each in result.rounds])) for name in result.rounds[0]]
    commands = ["```sh", *result.commands, "```"]
    return ["", f"## {result.title}", "", *_table(head, rows, left=1), "", *commands]


def _medians(samples: Sequence[Sample]) -> tuple[str, ...]:
    return (
        number(median(sample.rate for sample in samples)),
        number(median(sample.cpu for sample in samples)),
        f"{median(sample.busy for sample in samples):.0%}",
        _or_none([sample.p50 for sample in samples]),
        _or_none([sample.p99 for sample in samples]),
        number(median(sample.rss for sample in samples)),
    )


def _or_none(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return number(median(known)) if known else "–"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Return the lines of a table; all columns after the first `left` are right-aligned."""
    rule = [":---"] * left + ["---:"] * (len(head) - left)
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
