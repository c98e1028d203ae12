"""What went wrong with requests, as `error.type` of OpenTelemetry's conventions has it."""

import pytest

from gateway.proxy.request_ending import Alike, RequestEnding

GOOD = RequestEnding("GET", "GET", 200, None, False, "h:1", 200, False)


@pytest.mark.parametrize(
    ("changed", "error", "service_error"),
    [
        ({}, "", ""),
        ({"status": 404, "service_status": 404}, "", "404"),
        ({"status": 400, "code": "version_missing", "service_status": 0}, "", ""),
        ({"status": 503, "service_status": 503}, "503", "503"),
        ({"status": 503, "code": "brownout", "service_status": 0}, "brownout", ""),
        ({"status": 502, "code": "conversion_failed"}, "conversion_failed", ""),
        *(
            ({"status": status, "code": code, "service_status": 0}, code, code)
            for status, code in ((502, "upstream_unreachable"), (504, "upstream_timeout"))
        ),
        # It broke off after its head, and so did the answer to the client.
        ({"code": "upstream_protocol", "aborted": True}, *["upstream_protocol"] * 2),
        ({"aborted": True}, "aborted", ""),
        ({"status": 0, "aborted": True, "service_status": 0}, "aborted", ""),
        ({"status": 0, "service_status": 0}, "aborted", ""),
    ],
)
def test_errors(changed: dict[str, object], error: str, service_error: str) -> None:
    ending = GOOD._replace(**changed)  # type: ignore[arg-type]  # they are of the right types
    assert (ending.error, ending.service_error) == (error, service_error)


def test_a_service_that_was_not_asked_has_no_requests() -> None:
    key = "person", "1", "/p"
    assert Alike(key, GOOD).upstream is not None
    assert Alike(key, GOOD._replace(target=None)).upstream is None
