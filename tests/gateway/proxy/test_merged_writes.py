"""Merged writes, through the real pipeline, to a simulated service that stores one order."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.conversion.patches import apply_json_patch, apply_merge_patch
from tests.gateway.proxy.wires import Gateway

RULES = """
services:
  orders: { targets: ["http://127.0.0.1:1"], timeouts: { whole: 30 } }
apis:
  orders:
    conversions:
      - between: ["1", "2"]
        writes: WRITES
        changes:
          - rename: { field: status, to: state }
          - default: { field: channel, value: web }
          - default: { field: "lines[].color", value: none }
    versions: { "1": { via: "2" }, "2": { service: orders } }
    endpoints: [ { path: "/v{version}/orders/{id}", version: { in: path } } ]
"""
MERGE = RULES.replace("WRITES", "merge")
ORDER = {"status": "new", "channel": "app", "lines": [{"sku": "a", "color": "red"}]}
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass
class Orders:
    """A service with one order, whose entity tag is its revision."""

    order: Any = field(default_factory=lambda: dict(ORDER))
    revision: int = 1
    tagged: bool = True
    asked: list[tuple[str, dict[str, str], str]] = field(default_factory=list)
    before_write: Callable[[], None] = lambda: None

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.asked]

    def __call__(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        line, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        method = line.split()[0]
        self.asked.append((method, fields, body.decode()))
        if method == "GET":
            return response(404, None) if self.order is None else self._shown()
        self.before_write()
        if fields.get("if-match", self._tag) != self._tag:
            return response(412, None)
        sent = json.loads(body)
        if "json-patch" in fields["content-type"]:
            self.order = apply_json_patch(self.order, sent)
        elif method == "PATCH":
            self.order = apply_merge_patch(self.order, sent)
        else:
            self.order = sent
        self.revision += 1
        return self._shown()

    @property
    def _tag(self) -> str:
        return f'"{self.revision}"'

    def _shown(self) -> bytes:
        return response(200, self.order, *([f"ETag: {self._tag}"] if self.tagged else []))


def response(status: int, document: Any, *lines: str) -> bytes:
    body = b"" if document is None else json.dumps(document).encode()
    head = [f"HTTP/1.1 {status} OK", *lines]
    head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def request(method: str, document: Any, *lines: str, media: str = "application/json") -> bytes:
    body = json.dumps(document).encode()
    head = [f"{method} /v1/orders/7 HTTP/1.1", "Host: a.test", f"Content-Type: {media}", *lines]
    return "\r\n".join([*head, f"Content-Length: {len(body)}"]).encode() + b"\r\n\r\n" + body


def exchanged(
    orders: Orders, *requests: bytes, rules: str = MERGE
) -> tuple[list[tuple[int, Any]], Gateway]:
    """Send requests to a new gateway, and return the status and the document of each response."""
    found: list[tuple[int, Any]] = []

    async def run() -> Gateway:
        gateway = Gateway(rules, {1: orders})
        for one in requests:
            head, _, body = (await gateway.ask(one)).partition(b"\r\n\r\n")
            document = None
            with suppress(ValueError):
                document = json.loads(body)
            found.append((int(head.split()[1]), document))
        gateway.close()
        return gateway

    return found, asyncio.run(run())


WRITES = {
    "PUT": request("PUT", {"state": "paid", "lines": [{"sku": "a"}]}),
    "PATCH with JSON": request("PATCH", {"state": "paid"}),
    "merge patch": request("PATCH", {"state": "paid"}, media=MERGE_PATCH),
    "JSON Patch": request(
        "PATCH",
        [
            {"op": "test", "path": "/lines/0/sku", "value": "a"},
            {"op": "replace", "path": "/state", "value": "paid"},
        ],
        media=JSON_PATCH,
    ),
}


@pytest.mark.parametrize("sent", WRITES.values(), ids=WRITES)
def test_a_write_keeps_what_its_version_cannot_see_and_costs_one_request_more(sent: bytes) -> None:
    orders = Orders()
    ((status, document),), gateway = exchanged(orders, sent)
    assert status == 200
    assert document == {"state": "paid", "lines": [{"sku": "a"}]}
    assert orders.order == {**ORDER, "status": "paid"}
    assert orders.methods == ["GET", sent.split()[0].decode()]
    assert orders.asked[1][1]["if-match"] == '"1"'
    assert ("merged_writes", "orders", "1", "merged") in gateway.counted
    assert len(gateway.exchanges) == 1


def test_a_document_that_does_not_exist_is_created_as_without_a_merge() -> None:
    orders = Orders(None)
    sent = request("PUT", {"state": "new", "lines": []})
    ((status, document),), gateway = exchanged(orders, sent)
    assert (status, document) == (200, {"state": "new", "lines": []})
    assert orders.order == {"status": "new", "lines": [], "channel": "web"}
    assert "if-match" not in orders.asked[1][1]
    assert ("merged_writes", "orders", "1", "unmerged") in gateway.counted


def test_the_read_has_the_credentials_but_neither_body_nor_conditions_of_the_write() -> None:
    orders = Orders()
    lines = (
        *("Authorization: Bearer x", "Cookie: a=b", "X-Api-Key: k", 'Idempotency-Key: "key"'),
        *("Prefer: return=minimal", "Cache-Control: max-age=9", "If-Unmodified-Since: x"),
    )
    exchanged(orders, request("PUT", {"state": "paid", "lines": [{"sku": "a"}]}, *lines))
    (_, read, body), (_, write, _) = orders.asked
    assert body == ""
    kept = {"authorization": "Bearer x", "cookie": "a=b", "x-api-key": "k"}
    assert kept.items() <= read.items()
    assert kept.items() <= write.items()
    assert read["cache-control"] == "no-cache"
    dropped = ("idempotency-key", "prefer", "if-unmodified-since", "content-type")
    assert not {*dropped} & read.keys()
    assert {*dropped} <= write.keys()


@pytest.mark.parametrize("lines", [(), ("If-Match: *",)])
def test_a_concurrent_write_causes_one_new_attempt(lines: tuple[str, ...]) -> None:
    orders = Orders()

    def write_once() -> None:
        orders.before_write = lambda: None
        orders.order = {**orders.order, "channel": "shop"}
        orders.revision += 1

    orders.before_write = write_once
    found, gateway = exchanged(orders, request("PATCH", {"state": "paid"}, *lines))
    assert found[0][0] == 200
    assert orders.order == {**ORDER, "channel": "shop", "status": "paid"}
    assert orders.methods == ["GET", "PATCH"] * 2
    assert ("merged_writes", "orders", "1", "repeated") in gateway.counted


def test_a_second_concurrent_write_gives_409_in_the_format_of_the_version() -> None:
    orders = Orders()

    def write() -> None:
        orders.revision += 1

    orders.before_write = write
    errors = 'errors: { body: { error: "{code}" } }'
    rules = MERGE.replace('{ via: "2" }', f'{{ via: "2", {errors} }}')
    found, gateway = exchanged(orders, request("PATCH", {"state": "paid"}), rules=rules)
    assert found == [(409, {"error": "write_conflict"})]
    assert orders.order == ORDER
    assert ("merged_writes", "orders", "1", "conflict") in gateway.counted


def get(orders: Orders) -> str:
    """Return the entity tag that a client of version 1 gets."""
    tags: list[str] = []

    async def run() -> None:
        gateway = Gateway(MERGE, {1: orders})
        answer = await gateway.ask(b"GET /v1/orders/7 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        tags.extend(line[6:] for line in answer.decode().split("\r\n") if line[:5] == "ETag:")
        gateway.close()

    asyncio.run(run())
    return tags[0]


def test_if_match_of_the_client_must_match_the_document_that_is_read() -> None:
    orders = Orders()
    tag = get(orders)
    stale = request("PATCH", {"state": "a"}, f"If-Match: {tag}", "Idempotency-Key: k")
    found, _ = exchanged(orders, stale, stale)
    assert [status for status, _ in found] == [200, 412]
    assert found[1][1]["code"] == "precondition_failed"
    assert orders.methods == ["GET", "GET", "PATCH", "GET"]
    assert orders.order["status"] == "a"


def test_a_412_to_the_condition_of_the_client_is_returned_without_a_retry() -> None:
    orders = Orders()
    tag = get(orders)

    def write() -> None:
        orders.revision += 1

    orders.before_write = write
    found, _ = exchanged(orders, request("PATCH", {"state": "a"}, f"If-Match: {tag}"))
    assert found[0][0] == 412
    assert orders.methods == ["GET", "GET", "PATCH"]


@pytest.mark.parametrize(
    "lines", [('If-Match: "0", {tag}',), ('If-Match: "0"', "If-Match: {tag}"), ("If-Match: *",)]
)
def test_one_tag_of_several_or_an_asterisk_matches_the_document(lines: tuple[str, ...]) -> None:
    orders = Orders()
    tag = get(orders)
    sent = request("PATCH", {"state": "a"}, *(line.format(tag=tag) for line in lines))
    found, _ = exchanged(orders, sent)
    assert (found[0][0], orders.order["status"]) == (200, "a")
    assert orders.asked[-1][1]["if-match"] == '"1"'


@pytest.mark.parametrize(
    ("order", "line", "status", "methods"),
    [
        (ORDER, "If-None-Match: *", 412, ["GET"]),
        (None, "If-None-Match: *", 200, ["GET", "PUT"]),
        (None, "If-Match: *", 412, ["GET", "PUT"]),
        (None, 'If-Match: "1"', 412, ["GET", "PUT"]),
    ],
)
def test_conditions_on_the_existence_of_the_document_hold(
    order: Any, line: str, status: int, methods: list[str]
) -> None:
    orders = Orders(order)
    found, _ = exchanged(orders, request("PUT", {"state": "a", "lines": []}, line))
    assert (found[0][0], orders.methods) == (status, methods)
    if methods[1:]:
        assert line.partition(":")[0].lower() in orders.asked[1][1]


@pytest.mark.parametrize("line", ["If-None-Match: {tag}", "If-Unmodified-Since: x"])
def test_a_412_that_another_condition_may_cause_is_returned_without_a_retry(line: str) -> None:
    orders = Orders()

    def write() -> None:
        orders.revision += 1

    tag = get(orders)
    orders.before_write = write
    found, _ = exchanged(orders, request("PATCH", {"state": "a"}, line.format(tag=tag)))
    assert (found[0][0], orders.methods) == (412, ["GET", "GET", "PATCH"])


def test_an_idempotency_key_is_not_reused_with_another_body() -> None:
    orders = Orders()
    line = 'Idempotency-Key: "8e03"'
    sent = [request("PATCH", {"state": state}, line) for state in ("a", "a", "b", "a")]
    exchanged(orders, *sent)
    keys: dict[str, set[str]] = {}
    for method, fields, body in orders.asked:
        if method == "PATCH":
            keys.setdefault(fields["idempotency-key"], set()).add(body)
    assert all(len(bodies) == 1 and key[-1] == '"' for key, bodies in keys.items())
    assert all(key.startswith('"8e03-') for key in keys)


def test_without_tag_accept_sends_a_write_without_a_condition() -> None:
    orders = Orders(tagged=False)
    rules = RULES.replace("WRITES", "{ without_tag: accept }")
    found, _ = exchanged(orders, request("PATCH", {"state": "paid"}), rules=rules)
    assert found[0][0] == 200
    assert orders.order == {**ORDER, "status": "paid"}
    assert "if-match" not in orders.asked[1][1]


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (request("PUT", {"state": "a", "lines": [{"sku": "b"}]}), 409, "write_unmergeable"),
        (
            request("PATCH", [{"op": "test", "path": "/state", "value": 1}], media=JSON_PATCH),
            *(409, "write_unmergeable"),
        ),
        (request("PUT", {"state": "a"}, media="application/apply-patch+yaml"), 415, None),
        (request("PUT", 1).replace(b"\r\n\r\n1", b"\r\n\r\n{"), 400, "unconvertible_request"),
        (request("PUT", {"state": "a", "status": "b"}), 400, "unconvertible_request"),
    ],
)
def test_a_write_that_cannot_be_merged_is_refused_and_not_sent(
    sent: bytes, status: int, code: str | None
) -> None:
    orders = Orders()
    found, gateway = exchanged(orders, sent)
    assert found[0][0] == status
    assert found[0][1]["code"] == (code or "unsupported_media_type")
    assert ("merged_writes", "orders", "1", "refused") in gateway.counted
    assert "GET" not in orders.methods[1:]
    assert orders.order == ORDER


def nested(levels: int, inner: bytes = b"1") -> bytes:
    return b'{"a":' * levels + inner + b"}" * levels


def patch(*operations: dict[str, Any]) -> bytes:
    return json.dumps(operations).encode()


def adding(path: str, value: Any = 1) -> bytes:
    return patch({"op": "add", "path": path, "value": value})


DEEPENING = [{"op": "add", "path": "/a" * n, "value": {}} for n in range(1, 600)]
# For each form, hostile bodies and what the service stores; None for a refusal.
HOSTILE: list[tuple[str, bytes, dict[str, Any] | None]] = [
    (JSON_PATCH, patch(*[{"op": "test", "path": "", "value": ORDER}] * 9_000), None),
    (JSON_PATCH, patch(*[{"op": "add", "path": "/lines/0", "value": {}}] * 1_000), None),
    (JSON_PATCH, patch(*DEEPENING), None),
    (JSON_PATCH, adding("/x", "x" * 900_000), {"x": "x" * 900_000}),
    (JSON_PATCH, adding("/a" * 1_000), None),
    (JSON_PATCH, b'[{"op":"add","path":"/a","value":%b}]' % nested(1_000), None),
    (JSON_PATCH, b'[{"op":"add","path":"/a","value":%b}]' % nested(90_000), None),
    (JSON_PATCH, adding("/a~1b~0c"), {"a/b~c": 1}),
    (JSON_PATCH, adding("/~01"), {"~1": 1}),
    (JSON_PATCH, adding("/"), {"": 1}),
    (JSON_PATCH, adding("/\u00fc\u20ac\U0001f600"), {"\u00fc\u20ac\U0001f600": 1}),
    (JSON_PATCH, adding("/tags/-", "b"), {"tags": ["a", "b"]}),
    (JSON_PATCH, patch({"op": "remove", "path": "/tags/-"}), None),
    (JSON_PATCH, patch({"op": "replace", "path": "/tags/-", "value": 1}), None),
    (JSON_PATCH, adding("/tags/-/x"), None),
    (JSON_PATCH, adding("/tags/2"), None),
    (JSON_PATCH, adding("/tags/-1"), None),
    (JSON_PATCH, adding("/tags/00"), None),
    (JSON_PATCH, adding("/tags/\u0660"), None),
    (JSON_PATCH, adding("/tags/" + "9" * 5_000), None),
    (JSON_PATCH, patch({"op": "move", "from": "/lines", "path": "/lines/0"}), None),
    (JSON_PATCH, patch({"op": "move", "from": "/tags/0", "path": "/tags/0/x"}), None),
    (JSON_PATCH, patch({"op": "move", "from": "", "path": "/x"}), None),
    (JSON_PATCH, patch({"op": "move", "from": "/tags", "path": "/tags"}), {}),
    (JSON_PATCH, patch({"op": "move", "from": "/tags", "path": "/x"}), {"x": ["a"], "tags": None}),
    (JSON_PATCH, patch({"op": "test", "path": "/tags", "value": ["b"]}), None),
    (JSON_PATCH, patch({"op": "test", "path": "/x", "value": None}), None),
    (JSON_PATCH, patch({"op": "test", "path": "/n", "value": True}), None),
    (JSON_PATCH, patch({"op": "remove", "path": ""}), None),
    (JSON_PATCH, patch({"op": "remove", "path": ""}, {"op": "remove", "path": ""}), None),
    (JSON_PATCH, patch({"op": "remove", "path": "/state/x"}), None),
    (JSON_PATCH, b'[{"op":"test","op":"remove","path":"/tags","value":["a"]}]', None),
    (JSON_PATCH, b'[[["op"]],null,1]', None),
    (JSON_PATCH, b'[{"op":["add"],"path":{},"value":1}]', None),
    (JSON_PATCH, b'[{"op":"add","path":"/\xff","value":1}]', None),
    (JSON_PATCH, b'[{"op":"add","path":"/\\ud800","value":1}]', None),
    (JSON_PATCH, b"{}", None),
    (MERGE_PATCH, nested(60), {"a": json.loads(nested(59))}),
    (MERGE_PATCH, nested(1_000), None),
    (MERGE_PATCH, nested(90_000), None),
    (MERGE_PATCH, b'{"state":"a","state":"b"}', None),
    (MERGE_PATCH, b"null", None),
    (MERGE_PATCH, b"[]", None),
    (MERGE_PATCH, b'{"n":1e999999999}', None),
    (MERGE_PATCH, b'{"n":NaN}', None),
    (MERGE_PATCH, b'{"x":null}', {}),
    (STRATEGIC, b'{"$patch":"merge"}', None),
    (STRATEGIC, b'{"$patch":["replace"]}', None),
    (STRATEGIC, b'{"$retainKeys":[{"a":1}]}', None),
    (STRATEGIC, b'{"$setElementOrder/tags":[["a"],{"b":1}]}', {}),
    (STRATEGIC, b'{"$deleteFromPrimitiveList/tags":[["a"],{"b":1},"a"]}', {"tags": []}),
    (STRATEGIC, b'{"$deleteFromPrimitiveList/state":["new"]}', None),
    (STRATEGIC, b'{"$other":1}', {"$other": 1}),
    (STRATEGIC, b'{"lines":[{"$patch":"delete"}]}', None),
    (STRATEGIC, nested(1_000, b'{"$patch":"delete"}'), None),
]


@pytest.mark.parametrize(
    ("media", "body", "changed"), HOSTILE, ids=[str(body[:60]) for _, body, _ in HOSTILE]
)
def test_a_hostile_write_is_refused_or_has_the_defined_result(
    media: str, body: bytes, changed: dict[str, Any] | None
) -> None:
    order = {**ORDER, "tags": ["a"], "n": 1}
    orders = Orders(order)
    head = f"PATCH /v1/orders/7 HTTP/1.1\r\nHost: a.test\r\nContent-Type: {media}\r\n"
    found, _ = exchanged(orders, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    if changed is None:
        assert found[0][0] in (400, 409)
        assert orders.methods[1:] == []
    else:
        wanted = {name: value for name, value in {**order, **changed}.items() if value is not None}
        assert (found[0][0], orders.order) == (200, wanted)


def test_a_key_identifies_the_elements_of_a_list_of_the_service() -> None:
    orders = Orders()
    rules = RULES.replace("WRITES", "{ key: { lines: sku } }")
    lines = [{"sku": "b"}, {"sku": "a", "n": 2}]
    exchanged(orders, request("PUT", {"state": "new", "lines": lines}), rules=rules)
    assert orders.order["lines"] == [
        {"sku": "b", "color": "none"},
        {"sku": "a", "n": 2, "color": "red"},
    ]


OPERATION = (
    RULES.replace(
        "        writes: WRITES\n",
        "        operations: [ { newer: 'POST /v{version}/orders/{id}',"
        " older: 'POST /v{version}/orders/{id}', writes: WRITES } ]\n",
    )
    .replace('path: "/v{version}/orders/{id}"', 'path: "/v{version}/orders/{rest*}"')
    .replace("WRITES", "{ read: 'GET /v{version}/orders/{id}/all' }")
)


def test_an_operation_merges_a_post_into_the_document_of_another_operation() -> None:
    orders = Orders()
    found, gateway = exchanged(
        orders, request("POST", {"state": "paid", "lines": [{"sku": "a"}]}), rules=OPERATION
    )
    assert gateway.requests[1][0].startswith(b"GET /v2/orders/7/all HTTP")
    assert found[0][0] == 200
    assert orders.order == {**ORDER, "status": "paid"}
    assert orders.methods == ["GET", "POST"]


def test_writes_of_other_versions_and_reads_are_not_merged() -> None:
    orders = Orders()
    newer = request("PUT", ORDER).replace(b"/v1/", b"/v2/")
    exchanged(orders, newer, b"GET /v1/orders/7 HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert orders.methods == ["PUT", "GET"]


def test_a_shadow_of_a_merged_write_is_validated_and_not_sent() -> None:
    shadow = MERGE.replace('{ via: "2" }', "{ service: old, shadow: SHADOW }").replace(
        "  orders: {", '  old: { targets: ["http://127.0.0.1:2"] }\n  orders: {', 1
    )
    orders, old = Orders(), Orders()

    async def run() -> None:
        rules = shadow.replace("SHADOW", "{ via: '2', methods: [GET, PUT] }")
        gateway = Gateway(rules, {1: orders, 2: old})
        await gateway.ask(request("PUT", {"state": "paid"}))
        gateway.close()

    asyncio.run(run())
    assert (old.methods, orders.methods) == (["PUT"], [])
