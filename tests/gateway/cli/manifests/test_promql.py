"""PromQL expressions: labels are quoted, and shares are defined without failures."""

import pytest

from gateway.cli.manifests.monitoring import BY_VERSION, failed_share, labels, request_labels, text


@pytest.mark.parametrize(
    ("value", "expected"), [("a", '"a"'), ('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"')]
)
def test_quotes_and_backslashes_in_a_label_value_are_escaped(value: str, expected: str) -> None:
    assert text(value) == expected


def test_the_labels_of_a_version_are_its_api_and_its_version() -> None:
    assert labels(("p", "1")) == 'api="p", version="1"'
    expected = 'gateway_api_name="p", gateway_api_version="1"'
    assert request_labels(("p", "1")) == expected


def test_a_share_without_failures_is_zero() -> None:
    found = failed_share("a", "5m")
    rate = "rate(http_server_request_duration_seconds_count{a}[5m])"
    everything = f"sum by ({BY_VERSION}) ({rate})"
    assert found.endswith(f" or 0 * {everything}) / {everything}")
