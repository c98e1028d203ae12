"""Comparisons with large bodies: streamed, and converted."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks import bulk, conversion, rules, systems
from benchmarks.comparison import Comparison
from benchmarks.lab import Lab, ask
from benchmarks.loads import paced
from benchmarks.measure import (
    NoResultError,
    Sample,
    at_least,
    at_most,
    cpu,
    growth,
    p99_alone,
    rate,
    rate_alone,
)
from benchmarks.request import Request
from benchmarks.scenario import BOB_1, BOB_2, PACED, ROUTING_PEERS, Effort
from gateway.conversion.formats import json_body

ARRAY_BYTES = 10_000_000


def large(lab: Lab, effort: Effort) -> Comparison:
    """Stream large response and request bodies."""
    backend = lab.beside(systems.bulk(lab.port())).port
    everyone = {
        "gateway": lab.measured(systems.gateway(lab.port(), backend, rules.BULK)),
        "nginx": lab.measured(systems.nginx(lab.port(), backend)),
        "Envoy": lab.measured(systems.envoy(lab.port(), backend)),
        "Caddy": lab.measured(systems.caddy(lab.port(), backend)),
        "Traefik": lab.measured(systems.traefik(lab.port(), backend)),
    }
    count = effort.megabytes * 10**6
    path = f"/bytes/{count}"
    runs: dict[str, Callable[[], Sample]] = {}
    for name, system in everyone.items():
        ask(system, Request("/bytes/0"), "")
        load_down = partial(bulk.download, system.port, path)
        load_up = partial(bulk.upload, system.port, path, count)
        runs[f"{name}, down"] = partial(lab.sample, system, load_down)
        runs[f"{name}, up"] = partial(lab.sample, system, load_up)
    claims = []
    for way in ("down", "up"):
        ours, theirs = f"gateway, {way}", f"nginx, {way}"
        claims += [
            rate(ours, theirs, at_least(0.7)),
            cpu(ours, theirs),
            growth(ours, at_most(20)),
            *(rate(f"{peer}, {way}", theirs) for peer in ROUTING_PEERS),
        ]
    return Comparison(runs, claims, unit="MB")


def array(lab: Lab, effort: Effort) -> Comparison:
    """Measure small requests while large arrays are converted one after the other."""
    person = {"name": {"firstName": "Bob", "lastName": "Charlie"}, "note": "x" * 100}
    one = json.dumps(person, separators=(",", ":"))
    people = "[" + ",".join([one] * (ARRAY_BYTES // len(one))) + "]"
    backend = lab.beside(systems.backend(lab.port(), people=people)).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.PEOPLE))
    ask(ours, Request("/v1/people"), BOB_1)
    undisturbed = paced(lab, ours, Request("/small"), BOB_2, PACED, effort.seconds)

    def beside_arrays() -> Sample:
        over = threading.Event()
        with ThreadPoolExecutor() as pool:
            converted = pool.submit(_convert_until, over, ours.port)
            try:
                sample = undisturbed()
            finally:
                over.set()
        if not converted.result():
            raise NoResultError("no array was converted")
        return sample

    runs = {"beside 10 MB arrays": beside_arrays, "without them": undisturbed}
    return Comparison(runs, [p99_alone("beside 10 MB arrays", at_most(50))])


def lens(lab: Lab, effort: Effort) -> Comparison:
    """Convert arrays by five changes, and compare with parsing and writing the same bytes."""
    newer = conversion.orders(1)
    older = conversion.check(newer)
    down, up = conversion.conversions()
    one = partial(conversion.throughput, seconds=effort.seconds / 2)  # CPU time varies less
    runs = {
        "five changes, to the older": partial(
            one, lambda body: json_body.convert(body, down), newer
        ),
        "five changes, to the newer": partial(one, lambda body: json_body.convert(body, up), older),
        "json.loads, json.dumps": partial(one, conversion.by_json, newer),
        "msgspec decode, encode": partial(one, conversion.by_msgspec, newer),
    }
    to_older, to_newer, *others = runs
    claims = [rate_alone(name, at_least(60)) for name in (to_older, to_newer)]
    claims += [
        rate(name, other, text=f"{name} ÷ {other.partition(',')[0]}")
        for name in (to_older, to_newer)
        for other in others
    ]
    return Comparison(runs, claims, unit="MB")


def _convert_until(over: threading.Event, port: int) -> int:
    """Request converted arrays one after the other until `over` is set, and return their number."""
    count = 0
    while not over.is_set():
        bulk.download(port, "/v1/people")
        count += 1
    return count
