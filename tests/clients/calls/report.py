"""Shared by the scripts with Python clients: make all calls and print the results as JSON."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

FIELDS = ("status", "http_status", "code", "param", "reason", "user_message", "body", "data")


def report(calls: Mapping[str, Callable[[], Any]]) -> None:
    results: dict[str, Any] = {}
    for name, call in calls.items():
        try:
            results[name] = call()
        except Exception as error:
            found = {field: getattr(error, field, None) for field in FIELDS}
            kept = {field: value for field, value in found.items() if value is not None}
            results[name] = {"raised": type(error).__name__, **kept}
            if not kept:
                results[name]["text"] = str(error)[:300]
    json.dump(results, sys.stdout, default=_plain)


def _plain(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
