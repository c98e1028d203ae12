"""Which requests a shadow falls on."""

from typing import Any

import pytest

from gateway.rollout.dry_run import DryRun
from gateway.rollout.shadow import Shadow, ShadowMode


@pytest.mark.parametrize(
    ("method", "percent", "draw", "expected"),
    [
        ("GET", 100.0, 0.999, True),
        ("HEAD", 100.0, 0.0, True),
        ("POST", 100.0, 0.0, False),
        ("GET", 0.0, 0.0, False),
        ("GET", 25.0, 0.2499, True),
        ("GET", 25.0, 0.25, False),
    ],
)
def test_the_method_and_the_draw_decide(
    method: str, percent: float, draw: float, expected: bool
) -> None:
    assert Shadow(("person", "1"), percent).falls_on(method, "/p", draw) is expected


TRIED = DryRun("Prefer", "dry-run", methods=frozenset({"POST", "PUT"}), paths=frozenset({"/p"}))


@pytest.mark.parametrize(
    ("more", "method", "path", "expected"),
    [
        ({}, "GET", "/p", ShadowMode.SEND),
        ({}, "POST", "/p", None),
        ({"document": "v2.json"}, "POST", "/p", ShadowMode.VALIDATE),
        ({"document": "v2.json"}, "DELETE", "/p", ShadowMode.VALIDATE),
        ({"document": "v2.json"}, "GET", "/p", ShadowMode.SEND),
        ({"document": "v2.json"}, "OPTIONS", "/p", None),
        ({"dry_run": TRIED}, "PUT", "/p", ShadowMode.DRY_RUN),
        ({"dry_run": TRIED}, "PUT", "/q", None),
        ({"dry_run": TRIED}, "PATCH", "/p", None),
        ({"dry_run": TRIED, "document": "v2.json"}, "POST", "/p", ShadowMode.DRY_RUN),
        ({"dry_run": TRIED, "document": "v2.json"}, "POST", "/q", ShadowMode.VALIDATE),
        # What can be tried is not carried out a second time, even if the rules name its method.
        ({"dry_run": TRIED, "methods": frozenset({"POST"})}, "POST", "/p", ShadowMode.DRY_RUN),
        ({"dry_run": TRIED, "methods": frozenset({"POST"})}, "POST", "/q", ShadowMode.SEND),
    ],
)
def test_how_a_request_is_compared(
    more: dict[str, Any], method: str, path: str, expected: ShadowMode | None
) -> None:
    shadow = Shadow(("person", "1"), **more)
    assert shadow.mode(method, path) is expected
    assert shadow.falls_on(method, path, 0.0) is (expected is not None)
