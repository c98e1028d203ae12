"""What is compared, and what is claimed of it: a function for every comparison."""

import http.client
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from benchmarks import bulk, conversion, rules, systems
from benchmarks.comparison import Comparison
from benchmarks.lab import Lab, Running, ask
from benchmarks.loads import closed, paced
from benchmarks.measure import (
    Claim,
    NoResultError,
    Sample,
    added,
    at_least,
    at_most,
    cpu,
    growth,
    p99,
    p99_alone,
    rate,
    rate_alone,
)
from benchmarks.request import Request
from benchmarks.slowloris import slowloris
from gateway.proxy.body import json_body

BOB_1, BOB_2 = '"Bob Charlie"', '"firstName":"Bob"'
BY_PATH = Request("/v2/person")
MECHANISMS = {
    "path": BY_PATH,
    "query": Request("/person/param?version=2"),
    "header": Request("/person/header", (("X-API-VERSION", "2"),)),
    "Accept": Request("/person/accept", (("Accept", "application/vnd.comp.app-v2+json"),)),
}
IDLE = 1000
SLOW = 1000
ARRAY_BYTES = 10_000_000
PACED = 1000.0
# In use but far from full, as a gateway should be; and never more than openloop can send.
_SHARE_OF_FULL = 0.4
_MOST_AT_CONSTANT_RATE = 6000.0


class SkippedError(Exception):
    """This machine, or this gateway, cannot show it; the text says why."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long and how much.

    Attributes:
        seconds: of each run of small requests.
        megabytes: of each large body.
    """

    seconds: int
    megabytes: int


Scenario = Callable[[Lab, Effort], Comparison]


def routed(lab: Lab, effort: Effort) -> Comparison:
    """Route by each mechanism, as Envoy does; nginx and HAProxy pass everything to one place."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    envoy = lab.measured(systems.envoy(lab.port(), backend))
    runs, claims = {}, []
    for name, request in MECHANISMS.items():
        one, other = f"gateway, by {name}", f"Envoy, by {name}"
        runs[one] = closed(lab, ours, request, BOB_2, effort.seconds)
        runs[other] = closed(lab, envoy, request, BOB_2, effort.seconds)
        claims += [rate(one, other, at_least(1.0)), cpu(one, other)]
    for name, system in {"nginx": systems.nginx, "HAProxy": systems.haproxy}.items():
        plain = lab.measured(system(lab.port(), backend))
        runs[f"{name}, plain"] = closed(lab, plain, BY_PATH, BOB_2, effort.seconds)
        claims.append(rate(f"{name}, plain", "Envoy, by path"))
    return Comparison(runs, claims)


def latency(lab: Lab, effort: Effort) -> Comparison:
    """Ask for the same number of requests a second, far below what either can do."""
    backend = lab.beside(systems.backend(lab.port())).port
    both = {
        "gateway": lab.measured(systems.gateway(lab.port(), backend, rules.shipped())),
        "Envoy": lab.measured(systems.envoy(lab.port(), backend)),
    }
    full = [closed(lab, system, BY_PATH, BOB_2, 1)().rate for system in both.values()]
    constant = min(_SHARE_OF_FULL * min(full), _MOST_AT_CONSTANT_RATE)
    runs = {
        f"{name}, {constant:,.0f} requests/s": paced(
            lab, system, BY_PATH, BOB_2, constant, effort.seconds
        )
        for name, system in both.items()
    }
    of, to = runs
    return Comparison(runs, [p99(of, to, at_most(1.0))])


def converted(lab: Lab, effort: Effort) -> Comparison:
    """Serve version 1 from version 2, beside version 2 as it is."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.converted()))
    runs = {
        "converted": closed(lab, ours, Request("/v1/person"), BOB_1, effort.seconds),
        "as it is": closed(lab, ours, Request("/v2/person"), BOB_2, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [rate(of, to, at_least(0.85)), cpu(of, to)])


def shadowed(lab: Lab, effort: Effort) -> Comparison:
    """Serve version 1 at full load with a shadow of everything, which gives way, and without."""
    backend = lab.beside(systems.backend(lab.port())).port
    with_one = lab.measured(systems.gateway(lab.port(), backend, rules.shadowed()))
    without = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    asked = Request("/v1/person")
    runs = {
        "shadowed": closed(lab, with_one, asked, BOB_2, effort.seconds),
        "not shadowed": closed(lab, without, asked, BOB_2, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [rate(of, to, at_least(0.95)), p99(of, to, at_most(1.1))])


def ending(lab: Lab, effort: Effort) -> Comparison:
    """Name and count who asks for a version, and say when it ends, beside a version that stays."""
    backend = lab.beside(systems.backend(lab.port())).port
    ends = lab.measured(systems.gateway(lab.port(), backend, rules.ending()))
    stays = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    asked = Request("/v2/person", (("X-Client", "acme"),))
    runs = {
        "a version that ends": closed(lab, ends, asked, BOB_2, effort.seconds),
        "one that stays": closed(lab, stays, asked, BOB_2, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [added(of, to, at_most(3)), rate(of, to)])


def house(lab: Lab, effort: Effort) -> Comparison:
    """Route in a large house and in a small one."""
    backend = lab.beside(systems.backend(lab.port())).port
    large = systems.gateway(lab.port(), backend, rules.house(50, 50, 50))
    small = systems.gateway(lab.port(), backend, rules.house(1, 1, 2))
    in_large, in_small = Request("/v25/api25/resource25"), Request("/v2/api0/resource0")
    runs = {
        "10,000 routes, 50 versions": closed(
            lab, lab.measured(large), in_large, BOB_2, effort.seconds
        ),
        "4 routes, 2 versions": closed(lab, lab.measured(small), in_small, BOB_2, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [cpu(of, to, at_most(1.05)), rate(of, to)])


def idle(lab: Lab, effort: Effort) -> Comparison:
    """Keep connections that hardly ever ask for anything, beside those of the load."""
    backend = lab.beside(systems.backend(lab.port())).port
    crowded, quiet = (
        lab.measured(systems.gateway(lab.port(), backend, rules.shipped())) for _ in range(2)
    )
    busy, alone = (closed(lab, one, BY_PATH, BOB_2, effort.seconds) for one in (crowded, quiet))
    before = crowded.rss()
    crowd = [_keep(lab, crowded) for _ in range(IDLE)]
    each = (crowded.rss() - before) / IDLE * 1e3

    def beside_crowd() -> Sample:
        for connection in crowd:
            _ask_again(connection)
        return busy()

    runs = {f"beside {IDLE:,} idle connections": beside_crowd, "without them": alone}
    of, to = runs
    claims = [
        rate(of, to, at_least(0.9)),
        cpu(of, to),
        Claim("memory of an idle connection", lambda _: each, "kB", at_most(12)),
    ]
    return Comparison(runs, claims)


def slow(lab: Lab, effort: Effort) -> Comparison:
    """Answer a paced load while many clients begin requests and never come to an end."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    undisturbed = paced(lab, ours, BY_PATH, BOB_2, PACED, effort.seconds)

    def beside_slow() -> Sample:
        with slowloris(ours.port, SLOW):
            ask(ours, BY_PATH, BOB_2)  # all have been accepted when this one is answered
            return undisturbed()

    runs = {f"beside {SLOW:,} slow heads": beside_slow, "without them": undisturbed}
    of, to = runs
    return Comparison(runs, [p99(of, to, at_most(2)), cpu(of, to)])


def chain(lab: Lab, effort: Effort) -> Comparison:
    """Convert through five versions, and through one."""
    backend = lab.beside(systems.backend(lab.port(), chain=rules.DOCUMENT)).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.chain()))
    first, last = '"name":"Bob Charlie"', '"pet":"Bob Charlie"'
    runs = {
        "five conversions": closed(lab, ours, Request("/v1/chain"), first, effort.seconds),
        "one conversion": closed(lab, ours, Request("/v5/chain"), last, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [cpu(of, to, at_most(2.5)), rate(of, to)])


def large(lab: Lab, effort: Effort) -> Comparison:
    """Stream large bodies through, down and up."""
    backend = lab.beside(systems.bulk(lab.port())).port
    both = {
        "gateway": lab.measured(systems.gateway(lab.port(), backend, rules.BULK)),
        "nginx": lab.measured(systems.nginx(lab.port(), backend)),
    }
    count = effort.megabytes * 10**6
    path = f"/bytes/{count}"
    runs: dict[str, Callable[[], Sample]] = {}
    for name, system in both.items():
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
        ]
    return Comparison(runs, claims, unit="MB")


def array(lab: Lab, effort: Effort) -> Comparison:
    """Answer small requests while large arrays are converted, one after the other."""
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
    """Convert arrays by five changes, beside parsing and writing the same bytes without any."""
    newer = conversion.orders(1)
    older = conversion.check(newer)
    down, up = conversion.ways()
    one = partial(conversion.passes, seconds=effort.seconds / 2)  # CPU time wanders less
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
    claims += [rate(name, other) for name in (to_older, to_newer) for other in others]
    return Comparison(runs, claims, unit="MB")


def workers(lab: Lab, effort: Effort) -> Comparison:
    """Share the work between two workers on a core each."""
    if len(lab.cores) < 3:
        raise SkippedError("needs a third core")
    backend = lab.beside(systems.backend(lab.port())).port
    one = systems.gateway(lab.port(), backend, rules.shipped())
    two = systems.gateway(lab.port(), backend, rules.shipped(), workers=2)
    alone, pair = lab.measured(one), lab.measured(two, cores=2)
    runs = {
        "two workers": closed(lab, pair, BY_PATH, BOB_2, effort.seconds),
        "one worker": closed(lab, alone, BY_PATH, BOB_2, effort.seconds),
    }
    if len(pair.family) <= len(alone.family):
        raise SkippedError("this gateway has no workers")
    of, to = runs
    return Comparison(runs, [rate(of, to, at_least(1.8))])


SCENARIOS: Mapping[str, Scenario] = {
    "Routed requests, against Envoy": routed,
    "Latency at equal load, against Envoy": latency,
    "Converted small bodies, against the same unconverted": converted,
    "A shadow of everything at full load, against none": shadowed,
    "A version that ends, against one that stays": ending,
    "A large house, against a small one": house,
    "Idle connections, against none": idle,
    "A slowloris, against none": slow,
    "A chain of five conversions, against one": chain,
    "Large bodies streamed, against nginx": large,
    "Small requests beside large conversions": array,
    "Conversion by itself, against parsing": lens,
    "Two workers, against one": workers,
}
"""Every comparison, by its title."""


def _keep(lab: Lab, system: Running) -> http.client.HTTPConnection:
    """Return a connection that was used once."""
    connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=10)
    lab.resources.enter_context(closing(connection))
    _ask_again(connection)
    return connection


def _ask_again(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", BY_PATH.target)
    response = connection.getresponse()
    if response.status != 200 or BOB_2.encode() not in response.read():
        raise NoResultError(f"an idle connection was answered {response.status}")


def _convert_until(over: threading.Event, port: int) -> int:
    """Get converted arrays, one after the other, and return how many."""
    count = 0
    while not over.is_set():
        bulk.download(port, "/v1/people")
        count += 1
    return count
