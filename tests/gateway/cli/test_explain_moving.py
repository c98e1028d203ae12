"""The output of `explain` for versions with a cutover, a shadow or a brownout."""

import sys
from pathlib import Path

import pytest

from gateway.__main__ import main

RULES = Path(__file__).with_name("moving.yaml")
OLD = "the old route: 50% of the clients go via version 2"
NEW = "the new route: 50% of the clients go via version 2"


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
                "shadow": "5% are also sent, converted, to new for /v2/person to compare responses",
            },
        ),
        ("GET /v1/person", [], {"cutover": f"{OLD}, and clients without a name go last"}),
        (
            "GET /v2/person",
            [],
            {
                "cutover": "the old route: 10% of the requests go via version 1, by chance",
                "shadow": (
                    "100% are also sent, converted, to old for /v1/person to compare responses"
                ),
            },
        ),
    ],
)
def test_explain_shows_the_route_of_a_cutover(
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
    assert ("shadow" in printed) == ("shadow" in facts or "old route" in facts["cutover"])


def test_explain_shows_a_brownout_together_with_a_cutover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A brownout applies to the version on both routes."""
    rules = tmp_path / "gateway.yaml"
    rules.write_text(
        """
services:
  old: { targets: ["http://127.0.0.1:1"] }
  new: { targets: ["http://127.0.0.1:2"] }
apis:
  ferry:
    endpoints: [ { path: "/v{version}/sailings", version: { in: path } } ]
    versions:
      "1":
        service: old
        lifecycle: { deprecated: 2025-01-01, sunset: 2098-12-31 }
        brownout: { percent: 20 }
        cutover: { via: "2", percent: 100 }
      "2": { service: new }
    conversions: [ { between: ["1", "2"], changes: [] } ]
"""
    )
    monkeypatch.setattr(sys, "argv", ["gateway", "explain", str(rules), "GET /v1/sailings"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "  brownout  refuses 20% of the requests now\n" in printed
    assert "  cutover   the new route: 100% of the clients go via version 2" in printed


@pytest.mark.parametrize(
    ("shadow", "asked", "fact"),
    [
        (
            "validate: true",
            "POST /v1/person",
            "100% are converted to requests to new for /v2/person and validated, but not sent",
        ),
        (
            "dry_run: { query: try, value: x }",
            "POST /v1/person",
            (
                "100% are also sent, converted, as a dry run, to new for"
                " /v2/person?try=x to compare responses"
            ),
        ),
        (
            "percent: 100",
            "GET /v1/person?a=1&b=2",
            (
                "would be refused: The request does not fit this version: the query parameter"
                " 'a': already exists, and the query parameter 'b' would become it."
            ),
        ),
    ],
)
def test_explain_shows_how_a_shadow_would_send_the_request(
    shadow: str,
    asked: str,
    fact: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rules = tmp_path / "gateway.yaml"
    rules.write_text(
        f"""
services:
  old: {{ targets: ["http://127.0.0.1:1"] }}
  new: {{ targets: ["http://127.0.0.1:2"] }}
apis:
  person:
    upstream_path: "/v{{version}}/person"
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: old, shadow: {{ via: "2", {shadow} }} }}
      "2": {{ service: new }}
    conversions:
      - between: ["1", "2"]
        query: [ rename: {{ field: a, to: b }} ]
"""
    )
    monkeypatch.setattr(sys, "argv", ["gateway", "explain", str(rules), asked])
    assert main() == 0
    printed = capsys.readouterr().out
    assert f"  shadow    {fact}\n" in printed
