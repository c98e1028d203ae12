"""`python -m gateway explain` of versions that are on the move: which way, why, and what beside."""

import sys
from pathlib import Path

import pytest

from gateway.__main__ import main

RULES = Path(__file__).with_name("moving.yaml")
OLD = "the old way: 50% of the clients go via version 2"
NEW = "the new way: 50% of the clients go via version 2"


@pytest.mark.parametrize(
    ("asked", "fields", "facts"),
    [
        (
            "GET /v1/person",
            ["X-Client: a"],
            {"cutover": f"{NEW}, buckets below 5000; 'a' is in 3414", "asks": "GET /v2/person"},
        ),
        (
            "GET /v1/person",
            ["X-Client: b"],
            {
                "cutover": f"{OLD}, buckets below 5000; 'b' is in 7206",
                "shadow": "5% also ask new for /v2/person, converted, to compare",
            },
        ),
        ("GET /v1/person", [], {"cutover": f"{OLD}, and who has no name goes last"}),
        (
            "GET /v2/person",
            [],
            {
                "cutover": "the old way: 10% of the requests go via version 1, by chance",
                "shadow": "100% also ask old for /v1/person, converted, to compare",
            },
        ),
    ],
)
def test_explain(
    asked: str,
    fields: list[str],
    facts: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [word for field in fields for word in ("-H", field)]
    monkeypatch.setattr(sys, "argv", ["gateway", "explain", str(RULES), asked, *options])
    assert main() == 0
    lines = [line.strip().partition(" ") for line in capsys.readouterr().out.splitlines()]
    printed = {name: fact.strip() for name, _, fact in lines}
    assert facts.items() <= printed.items()
    assert ("shadow" in printed) == ("shadow" in facts or "old way" in facts["cutover"])
