"""Faults: each code has one status and one blame; the response body follows RFC 9457."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from gateway.base.errors import (
    BEFORE_VERSION,
    Blame,
    Fault,
    FaultCode,
    FaultError,
    conversion_failed,
    operation_missing,
    unconvertible,
)


def test_no_two_codes_have_the_same_title() -> None:
    assert len({code.problem_title for code in FaultCode}) == len(FaultCode)


@pytest.mark.parametrize("code", FaultCode)
def test_a_status_of_4xx_blames_the_client_and_of_5xx_another_party(code: FaultCode) -> None:
    fault = Fault(code, "detail")
    assert fault.status in (range(400, 500) if fault.blame is Blame.CLIENT else range(500, 600))


def test_a_fault_is_a_problem_detail() -> None:
    fault = Fault(FaultCode.UPSTREAM_TIMEOUT, "The backend did not respond in time.")
    assert fault.problem("/v1/person") == {
        "type": "urn:problem:upstream_timeout",
        "title": "Backend too slow",
        "status": 504,
        "detail": "The backend did not respond in time.",
        "instance": "/v1/person",
        "code": "upstream_timeout",
    }


@pytest.mark.parametrize("supported", [(), ("1",), ("1", "2")])
def test_a_fault_about_a_version_lists_the_supported_versions(supported: tuple[str, ...]) -> None:
    fault = Fault(FaultCode.VERSION_UNKNOWN, "detail", supported=supported, status_override=406)
    problem = fault.problem("/")
    assert (fault.status, problem["status"]) == (406, 406)
    assert problem["supportedVersions"] == list(supported)


def test_a_problem_detail_contains_only_json_types() -> None:
    problem = Fault(FaultCode.VERSION_UNKNOWN, "detail", supported=("1",)).problem("/")
    assert {type(value) for value in problem.values()} == {str, int, list}


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("", "upstream_unreachable: No answer."),
        ("127.0.0.1:1 refused", "upstream_unreachable: 127.0.0.1:1 refused"),
    ],
)
def test_a_fault_error_has_the_fault_and_the_cause(cause: str, message: str) -> None:
    fault = Fault(FaultCode.UPSTREAM_UNREACHABLE, "No answer.")
    failed = FaultError(fault, cause)
    assert (failed.fault, failed.cause, str(failed)) == (fault, cause, message)


def test_a_fault_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Fault(FaultCode.INTERNAL, "detail").detail = "other"  # type: ignore[misc]


def test_faults_before_the_version_is_known_are_listed() -> None:
    """A retired or browned-out version is known, so these faults are not in the list."""
    about = {code for code in BEFORE_VERSION if code.startswith("version_")}
    assert about == {code for code in FaultCode if code.startswith("version_")} - {
        FaultCode.VERSION_RETIRED,
        FaultCode.VERSION_BROWNOUT,
    }
    assert all(code.blame is Blame.CLIENT for code in BEFORE_VERSION)


def test_faults_of_conversions_have_their_status_and_detail() -> None:
    request, answer = unconvertible("/a: no", {"field": "a"}), conversion_failed("/b: no")
    assert (request.misfit, answer.misfit) == ({"field": "a"}, None)
    assert (request.status, answer.status) == (400, 502)
    assert request.detail == "The request does not fit this version: /a: no."
    assert answer.detail == ("The backend's response cannot be converted to this version: /b: no.")


@pytest.mark.parametrize(
    ("given", "code", "detail", "fields"),
    [
        ((404, "Gone."), "operation_missing", "Gone.", ()),
        ((410, "Gone.", "Fax.", 7), "operation_missing", "Fax.", ()),
        ((405, "Gone."), "method_not_allowed", "Gone.", (b"",)),
        (
            (405, "Gone.", "", None, ("GET", "HEAD")),
            "method_not_allowed",
            "This endpoint answers GET, HEAD.",
            (b"GET, HEAD",),
        ),
        ((405, "Gone.", "No.", "M", ("PUT",)), "method_not_allowed", "No.", (b"PUT",)),
    ],
)
def test_a_missing_operation_returns_the_configured_fault(
    given: tuple[Any, ...], code: str, detail: str, fields: tuple[bytes, ...]
) -> None:
    """A 405 response has an Allow header, which may be empty (RFC 9110, 10.2.1 and 15.5.6)."""
    fault = operation_missing(*given)
    assert (fault.code, fault.status, fault.detail) == (code, given[0], detail)
    assert fault.fields == tuple((b"Allow", each) for each in fields)
    assert fault.own.get("code") == (given[3:4] or (None,))[0]
