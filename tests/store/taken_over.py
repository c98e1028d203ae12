"""State that commit 570391cb wrote, and the responses of its admin port."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.gateway.kit import Program
from tests.gateway.live.shifting import admin

FIXTURES = Path(__file__).with_name("fixtures")
USAGE = "api, version, endpoint, client, others, count, refused, failed, slack, first, last, served"


def rules(state: str) -> str:
    return (FIXTURES / "gateway.yaml").read_text().replace("STATE", json.dumps(state))


def answers(engine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / f"{engine}.json").read_text())
    return found


def differing(program: Program, engine: str) -> Iterator[tuple[str, object, object]]:
    for path, before in answers(engine).items():
        status, now = admin(program, "GET", path)
        assert status == 200
        if isinstance(before, dict):
            now = {name: now[name] for name in before}
        if "gates" in before:
            now["gates"] = now["gates"][:1]
        if path == "/usage":
            # That commit counted by endpoint, and did not count rejected requests.
            rows = ({"operation": row.pop("endpoint"), **row} for row in before["usage"])
            before["usage"] = sorted(({**row, "rejected": 0} for row in rows), key=_sorted)
            now["usage"].sort(key=_sorted)
        if now != before:
            yield path, before, now


def _sorted(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)
