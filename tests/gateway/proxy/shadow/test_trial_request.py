"""Shadows of write requests: they are validated, or sent as dry runs. The tests use no sockets."""

import pytest

from gateway.rollout.differences import RefusedField
from tests.gateway.proxy.wires import Gateway

OLD, NEW = 1, 2
KEY = ("person", "1")
PATH = "/v{version}/person"
RULES = f"""
services:
  old: {{ targets: ["http://127.0.0.1:{OLD}"] }}
  new: {{ targets: ["http://127.0.0.1:{NEW}"] }}
apis:
  person:
    upstream_path: /person
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: old, shadow: {{ via: "2", SHADOW }} }}
      "2": {{ service: new, schema: v2.json }}
    conversions:
      - between: ["1", "2"]
        changes: [ rename: {{ field: name, to: title }} ]
        query: [ rename: {{ field: size, to: page }} ]
"""
CREATED = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
BODY = b'{"title":"B"}'


def answers(body: bytes, status: bytes = b"201 Created") -> bytes:
    return CREATED.replace(b"201 Created", status) % (len(body), body)


def gateway(shadow: str, status: bytes = b"201 Created") -> Gateway:
    return Gateway(
        RULES.replace("SHADOW", shadow),
        {OLD: lambda _: answers(BODY, status), NEW: lambda _: answers(b'{"name":"B"}')},
    )


def write(query: str = "", body: bytes = BODY, *, method: str = "POST") -> bytes:
    head = (
        f"{method} /v1/person{query} HTTP/1.1\r\nHost: h\r\nX-Request-Id: r1\r\nPrefer: hurry\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def test_a_write_request_is_validated_but_not_sent() -> None:
    served = gateway("validate: true")
    answer = await served.ask(write("?page=3"))
    assert answer.startswith(b"HTTP/1.1 201")
    assert served.requests[NEW] == []
    assert len(served.requests[OLD]) == 1
    ((document, plan, request),) = served.trials
    assert (document, request.method, request.target) == ("v2.json", "POST", "/person?size=3")
    assert (str(plan.route.service_version), request.body) == ("2", b'{"name":"B"}')
    assert served.counted == [
        ("validated", *KEY),
        ("operations_compared", *KEY, "POST", PATH),
    ]
    assert (served.samples, served.compared) == ([], [("POST", False)])


@pytest.mark.parametrize(
    ("more", "shown"), [("", "refused: enum"), (", samples: plain", "refused: 'B' is not one of")]
)
async def test_fields_that_the_other_version_would_refuse_are_counted(
    more: str, shown: str
) -> None:
    served = gateway(f"validate: true, ignore: [/known]{more}")
    served.refuses = [
        RefusedField("/known", "type", "a number"),
        RefusedField("/name", "enum", "'B' is not one of"),
        RefusedField("query size", "required", "is missing"),
    ]
    await served.ask(write(method="PUT"))
    assert served.counted == [
        ("validated", *KEY),
        ("operations_compared", *KEY, "PUT", PATH),
        ("invalid", *KEY),
        ("differences", *KEY, "request /name"),
        ("differences", *KEY, "request query size"),
    ]
    assert served.compared == [("PUT", True)]
    document, request = served.samples[0]
    assert document == {"endpoint": PATH, "field": "request /name", "old": "201", "new": shown}
    assert request == {"request_id": "r1", "method": "PUT", "path": "/v1/person"}


@pytest.mark.parametrize(("query", "body"), [("", b"{"), ("?page=1&size=2", BODY)])
async def test_a_request_that_cannot_be_converted_counts_as_invalid(
    query: str, body: bytes
) -> None:
    served = gateway("validate: true")
    await served.ask(write(query, body))
    assert served.trials == []
    assert ("invalid", *KEY) in served.counted
    assert ("differences", *KEY, "request conversion") in served.counted
    (((document, _)),) = served.samples
    assert isinstance(document, dict)
    assert "does not fit this version" in document["new"]


async def test_a_write_request_is_skipped_if_it_cannot_be_validated() -> None:
    served = gateway("validate: true", b"422 No")
    await served.ask(write())
    assert served.counted == [("shed", *KEY, "refused")]  # by the service of the client's version
    served = gateway("validate: true")
    served.refuses = None
    await served.ask(write())
    assert served.counted == [("shed", *KEY, "document")]
    served = gateway("validate: true, body: 4")
    await served.ask(write())
    assert served.counted == [("shed", *KEY, "large")]
    served = gateway("percent: 100")
    await served.ask(write())
    assert (served.counted, served.requests[NEW], served.trials) == ([], [], [])
    assert served.compared == []


@pytest.mark.parametrize(
    ("mark", "target", "fields"),
    [
        ("header: prefer, value: dry-run", b"/person?x=1&dryRun=no", [b"prefer: dry-run"]),
        ("query: dryRun, value: yes", b"/person?x=1&dryRun=yes", [b"Prefer: hurry"]),
    ],
)
async def test_a_dry_run_is_sent_with_its_mark_and_compared_like_a_read(
    mark: str, target: bytes, fields: list[bytes]
) -> None:
    served = gateway(f"validate: true, dry_run: {{ {mark} }}, samples: plain")
    await served.ask(write("?x=1&dryRun=no"))
    (asked,) = served.requests[NEW]
    assert asked.startswith(b"POST %b HTTP/1.1\r\n" % target)
    lines = asked.split(b"\r\n")
    assert [line for line in lines if line.lower().startswith(b"prefer")] == fields
    assert b"X-Shadow: 1" in lines
    assert asked.endswith(b'{"name":"B"}')
    assert len(served.requests[OLD]) == 1  # a second request would execute the write again
    # Response times are not compared, because a write takes longer than a dry run.
    assert served.counted == [("compared", *KEY), ("operations_compared", *KEY, "POST", PATH)]


async def test_a_dry_run_is_sent_only_for_the_configured_methods() -> None:
    served = gateway('dry_run: { query: dryRun, value: "true", methods: [PUT] }')
    await served.ask(write())
    assert served.requests[NEW] == []
    await served.ask(write(method="PUT"))
    assert len(served.requests[NEW]) == 1


async def test_a_read_that_cannot_be_converted_counts_as_a_difference() -> None:
    served = gateway("noise: false")
    await served.ask(b"GET /v1/person?page=1&size=2 HTTP/1.1\r\nHost: h\r\n\r\n")
    assert served.requests[NEW] == []
    assert served.counted == [
        ("compared", *KEY),
        ("operations_compared", *KEY, "GET", PATH),
        ("differing", *KEY),
        ("differences", *KEY, "status"),
    ]
    assert served.compared == [("GET", True)]


async def test_response_times_of_reads_are_counted() -> None:
    served = gateway("percent: 100")
    await served.ask(b"GET /v1/person HTTP/1.1\r\nHost: h\r\n\r\n")
    assert served.counted == [
        ("compared", *KEY),
        ("operations_compared", *KEY, "GET", PATH),
        ("latency", *KEY),
    ]
