"""Whatever a version is called, its name is one string of PromQL."""

import pytest

from gateway.export.monitoring.promql import failed_share, labels, text


@pytest.mark.parametrize(
    ("value", "expected"), [("a", '"a"'), ('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"')]
)
def test_text(value: str, expected: str) -> None:
    assert text(value) == expected


def test_labels() -> None:
    assert labels(("p", "1")) == 'api="p", version="1"'
    expected = 'gateway_api_name="p", gateway_api_version="1"'
    assert labels(("p", "1"), "gateway_") == expected


def test_a_share_without_failures_is_zero() -> None:
    found = failed_share("a", "5m", "b")
    everything = "sum by (b) (rate(http_server_request_duration_seconds_count{a}[5m]))"
    assert found.endswith(f" or 0 * {everything}) / {everything}")
