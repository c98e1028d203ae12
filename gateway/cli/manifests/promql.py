"""The PromQL expressions that the dashboard and the alerts share."""

from gateway.base.overrides import VersionKey

SERVED = "http_server_request_duration_seconds"
ASKED = "http_client_request_duration_seconds"
BY_VERSION = "gateway_api_name, gateway_api_version"
# What went wrong for no fault of the client, and by no intent of the operator.
_FAILED = 'error_type!~"|aborted|version_brownout"'


def text(value: str) -> str:
    """Return a string of PromQL."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def labels(key: VersionKey) -> str:
    """Return the matchers of a version, for metrics of the gateway's own names."""
    api, version = key
    return f"api={text(api)}, version={text(version)}"


def request_labels(key: VersionKey) -> str:
    """Return the matchers of a version, for metrics of OpenTelemetry's names."""
    api, version = key
    return f"gateway_api_name={text(api)}, gateway_api_version={text(version)}"


def requests(matchers: str, window: str, by: str = BY_VERSION) -> str:
    """Return the rate of requests."""
    return f"sum by ({by}) (rate({SERVED}_count{{{matchers}}}[{window}]))"


def failed_share(matchers: str, window: str) -> str:
    """Return the share of requests of a version that failed, also where none has failed yet."""
    everything = requests(matchers, window)
    failed = requests(f"{matchers}, {_FAILED}", window)
    return f"({failed} or 0 * {everything}) / {everything}"


def quantile(share: float, metric: str, matchers: str, window: str, by: str) -> str:
    """Return the time within which a share of the requests ended, in seconds."""
    rate = f"sum by (le, {by}) (rate({metric}_bucket{{{matchers}}}[{window}]))"
    return f"histogram_quantile({share:g}, {rate})"
