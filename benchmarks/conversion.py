"""How fast bodies are converted, in this process: the gateway's codec and nothing around it."""

import json
import resource
import time
from collections.abc import Callable

import msgspec

from benchmarks import rules
from benchmarks.measure import NoResultError, Sample
from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import json_body
from gateway.routing.snapshot import Route
from gateway.rules.load import load

_STATES = ("OPEN", "PAID", "SENT")


def order(number: int) -> dict[str, object]:
    """Return an order as the newer version has it: about half a kilobyte."""
    return {
        "id": number,
        "createdAt": "2025-05-05T10:00:00Z",
        "state": _STATES[number % 3],
        "customer": {"first": "Ada", "last": "Lovelace"},
        "total": 125_000 + number,
        "currency": "EUR",
        "channel": "web",
        "shipTo": {"street": "12 St James's Square", "city": "London", "code": "SW1Y 4JH"},
        "lines": [
            {"sku": f"A-{number % 1000:03}", "quantity": 2, "price": 1250, "gift": False},
            {"sku": "B-017", "quantity": 1, "price": 122_500, "gift": True},
        ],
        "note": "Please ring twice; the bell is hard to hear from the garden.",
    }


def orders(megabytes: float) -> bytes:
    """Return an array of orders, without white space, of about that many megabytes."""
    size = len(_compact(order(1000)))
    return _compact([order(1000 + index) for index in range(int(megabytes * 1e6 / size))])


def ways() -> tuple[BodyConversion, BodyConversion]:
    """Return the conversion of a response to the older version, and of a request to the newer."""
    found = load(rules.LENS.encode(), "lens.yaml", {}).router.find("/v1/orders")
    routes: list[Route] = [] if found is None else list(found[0].routes.values())
    for route in routes:
        if route.request is not None and route.response is not None:
            down, up = route.response.for_response("GET", 200), route.request.for_request("POST")
            if down is not None and up is not None:
                return down, up
    raise NoResultError("the rules convert nothing")


def check(newer: bytes) -> bytes:
    """Return the older version's document, after making sure that it comes back as it was."""
    down, up = ways()
    older = json_body.convert(newer, down)
    if b'"total":"1' not in older or json.loads(json_body.convert(older, up)) != json.loads(newer):
        raise NoResultError("the conversion is wrong")
    return older


def passes(convert: Callable[[bytes], object], body: bytes, seconds: float) -> Sample:
    """Return how fast a body is converted, again and again; in megabytes (10⁶ bytes)."""
    convert(body)
    count, began, used = 0, time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - began) < seconds:
        convert(body)
        count += 1
    used = time.process_time() - used
    moved = count * len(body) / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    # By CPU time, since other programs may share the core.
    return Sample(moved / used, used / moved * 1e6, used / elapsed, memory)


def by_json(body: bytes) -> object:
    """Parse and write again, as the standard library does."""
    return json.dumps(json.loads(body))


def by_msgspec(body: bytes) -> object:
    """Parse and write again, as msgspec does."""
    return msgspec.json.encode(msgspec.json.decode(body))


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
