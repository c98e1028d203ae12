"""Comparisons with many connections that send few or no requests."""

import http.client
from contextlib import closing

from benchmarks import rules, systems
from benchmarks.comparison import Comparison
from benchmarks.lab import Lab, Running, ask
from benchmarks.loads import closed, paced
from benchmarks.measure import (
    Claim,
    NoResultError,
    Round,
    Sample,
    at_least,
    at_most,
    cpu,
    middle,
    p99,
    rate,
)
from benchmarks.onlooker import onlooker
from benchmarks.scenario import BOB_2, BY_PATH, PACED, Effort
from benchmarks.slowloris import slowloris

IDLE = 1000
SLOW = 1000


def idle(lab: Lab, effort: Effort) -> Comparison:
    """Keep idle connections open beside the connections of the load."""
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
    """Measure a paced load while many clients begin requests that they never complete."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    undisturbed = paced(lab, ours, BY_PATH, BOB_2, PACED, effort.seconds)

    def beside_slow() -> Sample:
        with slowloris(ours.port, SLOW):
            ask(ours, BY_PATH, BOB_2)  # then all earlier connections are accepted
            return undisturbed()

    runs = {f"beside {SLOW:,} slow heads": beside_slow, "without them": undisturbed}
    of, to = runs
    return Comparison(runs, [p99(of, to, at_most(2)), cpu(of, to)])


def watched(lab: Lab, effort: Effort) -> Comparison:
    """Measure a paced load while the operator's page is open and metrics are scraped."""
    backend = lab.beside(systems.backend(lab.port())).port
    admin = lab.port()
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.shipped(), admin=admin))
    second = paced(lab, ours, BY_PATH, BOB_2, PACED, 1)
    look = lab.resources.enter_context(onlooker(admin))
    of, to = "beside an open page and a scrape a second", "without them"

    def both() -> Round:
        # Turns of one second, in which the speed of the machine hardly changes.
        samples: dict[str, list[Sample]] = {of: [], to: []}
        for name in (of, to, to, of) * effort.seconds:
            look(name == of)
            samples[name].append(second())
        return {name: middle(found) for name, found in samples.items()}

    claims = [p99(of, to, at_most(1.1)), cpu(of, to)]
    return Comparison({}, claims, pairs=[both])


def _keep(lab: Lab, system: Running) -> http.client.HTTPConnection:
    """Return an open connection on which one request was sent."""
    connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=10)
    lab.resources.enter_context(closing(connection))
    _ask_again(connection)
    return connection


def _ask_again(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", BY_PATH.target)
    response = connection.getresponse()
    if response.status != 200 or BOB_2.encode() not in response.read():
        raise NoResultError(f"the response on an idle connection has status {response.status}")
