"""The speed of body conversions in this process, without the rest of the gateway."""

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
    """Return an order in the newer version's format, with about half a kilobyte."""
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
    """Return an array of orders without white space, with about this number of megabytes."""
    size = len(_compact(order(1000)))
    return _compact([order(1000 + index) for index in range(int(megabytes * 1e6 / size))])


def conversions() -> tuple[BodyConversion, BodyConversion]:
    """Return the conversions of a response to the older version and of a request to the newer."""
    found = load(rules.LENS.encode(), "lens.yaml", {}).router.find("/v1/orders")
    routes: list[Route] = [] if found is None else list(found[0].routes.values())
    for route in routes:
        if route.request is not None and route.response is not None:
            down, up = route.response.for_response("GET", 200), route.request.for_request("POST")
            if down is not None and up is not None:
                return down, up
    raise NoResultError("the configuration has no conversion")


def check(newer: bytes) -> bytes:
    """Return the older version's document, after checking that it converts back to the original."""
    down, up = conversions()
    older = json_body.convert(newer, down)
    if b'"total":"1' not in older or json.loads(json_body.convert(older, up)) != json.loads(newer):
        raise NoResultError("the conversion is wrong")
    return older


def throughput(convert: Callable[[bytes], object], body: bytes, seconds: float) -> Sample:
    """Return the rate at which a body is converted repeatedly, in megabytes (10⁶ bytes)."""
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
    """Parse and write a body with the standard library."""
    return json.dumps(json.loads(body))


def by_msgspec(body: bytes) -> object:
    """Parse and write a body with msgspec."""
    return msgspec.json.encode(msgspec.json.decode(body))


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
