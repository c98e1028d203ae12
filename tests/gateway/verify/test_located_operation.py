"""Operations are located at the endpoint to which the gateway routes their requests."""

import pytest

from gateway.rules.load import load
from gateway.verify.located_operation import locate
from gateway.verify.openapi.openapi import Description
from gateway.verify.unchecked import Unchecked
from gateway.versions.version import Version
from tests.gateway.verify.loans import document, rules

ENDPOINTS = load(rules().encode(), "gateway.yaml", {}).apis[0].endpoints
ONE = "/v{version}/loans/{id}"


@pytest.mark.parametrize(
    ("path", "endpoint", "captures"),
    [
        # The path of the service, the public path, and the public path without the version.
        ("/lendings/{number}", ONE, {"id": "{}"}),
        ("/v1/loans/{number}", ONE, {"version": "1", "id": "{}"}),
        ("/loans/{number}", ONE, {"id": "{}"}),
        # A literal path belongs to the endpoint with this literal, or else to a matching capture.
        ("/lendings/late", "/v{version}/loans/overdue", {}),
        ("/loans/overdue", "/v{version}/loans/overdue", {}),
        ("/lendings/archive", ONE, {"id": "archive"}),
        ("/lendings", "/v{version}/loans", {}),
    ],
)
def test_a_path_is_located_at_its_endpoint_with_the_captures(
    path: str, endpoint: str, captures: dict[str, str]
) -> None:
    described = Description({"openapi": "3.1.0", "paths": {path: {"get": {}}}}, "v1")
    (located,) = locate(ENDPOINTS, Version(1, "1"), described.operations)
    captures.pop("version", None)
    assert located.captures == {endpoint: captures}
    assert not located.reason


@pytest.mark.parametrize("path", ["/loans/{id}/fee", "/v1/loans/{number}/fee", "/loans/lo_7-a/fee"])
def test_a_document_may_omit_the_literal_prefix_of_a_capture(path: str) -> None:
    fee = '- { path: "/v{version}/loans/lo_{id}-a/fee", version: { in: path } }\n      - { path: '
    text = rules().replace("- { path: ", fee, 1)
    described = Description({"openapi": "3.1.0", "paths": {path: {"get": {}}}}, "v1")
    (located,) = locate(
        load(text.encode(), "g", {}).apis[0].endpoints, Version(1, "1"), described.operations
    )
    (captures,) = located.captures.values()
    assert captures["id"] == ("7" if "7" in path else "{}")


def test_an_operation_is_not_located_at_an_endpoint_without_its_version() -> None:
    text = rules().replace("methods: [GET, PUT]", 'versions: ["2"]')
    endpoints = load(text.encode(), "gateway.yaml", {}).apis[0].endpoints
    described = Description(document(loans_ID="get"), "v1")
    (located,) = locate(endpoints, Version(1, "1"), described.operations)
    assert located.reason == Unchecked.NO_ENDPOINT.reason
    (located,) = locate(endpoints, Version(2, "2"), described.operations)
    assert not located.reason


@pytest.mark.parametrize("server", ["/elsewhere", "https://example.com/v1"])
def test_an_unknown_server_path_is_ignored(server: str) -> None:
    described = {**document(loans_ID="get"), "servers": [{"url": server}]}
    (located,) = locate(ENDPOINTS, Version(1, "1"), Description(described, "v1").operations)
    assert list(located.captures) == [ONE]
    assert not located.reason


@pytest.mark.parametrize("path", ["/", "/v2/loans", "/loans/{id}/books", "/healthz"])
def test_a_path_without_an_endpoint_has_a_reason(path: str) -> None:
    described = Description({"openapi": "3.1.0", "paths": {path: {"get": {}}}}, "v1")
    (located,) = locate(ENDPOINTS, Version(1, "1"), described.operations)
    assert (located.captures, located.reason) == ({}, Unchecked.NO_ENDPOINT.reason)


def test_an_operation_whose_method_the_endpoint_refuses_has_a_reason() -> None:
    described = Description(document(loans_ID="get delete"), "v1")
    taken, refused = locate(ENDPOINTS, Version(1, "1"), described.operations)
    assert (taken.name, taken.reason) == ("GET /loans/{id}", "")
    assert (refused.name, refused.captures) == ("DELETE /loans/{id}", {})
    assert refused.reason == "its endpoint does not accept DELETE"


def test_the_second_of_two_paths_with_different_parameter_names_is_a_twin() -> None:
    """OpenAPI considers such paths identical.

    Requests belong to the first operation with the method.
    """
    operations: dict[str, object] = {"get": {}}
    paths = {"/loans/{id}": operations, "/loans/{number}": {**operations, "put": {}}}
    described = Description({"openapi": "3.1.0", "paths": paths}, "v1")
    first, second, other = locate(ENDPOINTS, Version(1, "1"), described.operations)
    assert (first.reason, other.reason, first.twin, other.twin) == ("", "", "", "")
    assert (second.captures, second.twin) == ({}, "GET /loans/{id}")
    assert second.reason == (
        "requests for it match GET /loans/{id}; keep only one of them in the document"
    )


def test_counterparts_have_the_same_method_and_captures() -> None:
    described = Description(document(loans_ID="get", loans_x="get"), "v1")
    older = locate(ENDPOINTS, Version(1, "1"), described.operations)
    described = Description(document(lendings_ID="get put"), "v2")
    newer = locate(ENDPOINTS, Version(2, "2"), described.operations)
    assert [[other.is_counterpart(one, ONE) for other in newer] for one in older] == [
        [True, False],
        [False, False],
    ]
