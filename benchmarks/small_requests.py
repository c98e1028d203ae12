"""Comparisons with small requests: routing, conversion, shadows, and large configurations."""

from benchmarks import rules, systems
from benchmarks.comparison import Comparison
from benchmarks.database import database
from benchmarks.lab import Lab
from benchmarks.loads import beside, closed, paced
from benchmarks.measure import (
    added,
    at_least,
    at_most,
    cpu,
    p99,
    rate,
)
from benchmarks.request import Request
from benchmarks.scenario import (
    BOB_1,
    BOB_2,
    BY_PATH,
    MECHANISMS,
    ROUTING_PEERS,
    Effort,
    SkippedError,
)

# A load far below the maximum, as in production, and below the maximum rate of openloop.
_SHARE_OF_FULL = 0.4
_MOST_AT_CONSTANT_RATE = 6000.0


def routed(lab: Lab, effort: Effort) -> Comparison:
    """Route by each mechanism, as the other proxies do; nginx and HAProxy only forward requests."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    peers = {name: lab.measured(peer(lab.port(), backend)) for name, peer in ROUTING_PEERS.items()}
    runs, claims = {}, []
    both = {"gateway": ours}
    if lab.compiled is not None:
        fast = systems.gateway(lab.port(), backend, rules.shipped(), code=lab.compiled)
        both["compiled gateway"] = lab.measured(fast)
    for name, request in MECHANISMS.items():
        envoy = f"Envoy, by {name}"
        for one, running in both.items():
            runs[f"{one}, by {name}"] = closed(lab, running, request, BOB_2, effort.seconds)
        for peer, running in peers.items():
            runs[f"{peer}, by {name}"] = closed(lab, running, request, BOB_2, effort.seconds)
        for one in both:
            claims.append(rate(f"{one}, by {name}", envoy, at_least(1.0)))
            claims.append(cpu(f"{one}, by {name}", envoy))
        claims += [rate(f"{peer}, by {name}", envoy) for peer in peers if peer != "Envoy"]
    for name, system in {"nginx": systems.nginx, "HAProxy": systems.haproxy}.items():
        plain = lab.measured(system(lab.port(), backend))
        runs[f"{name}, plain"] = closed(lab, plain, BY_PATH, BOB_2, effort.seconds)
        claims.append(rate(f"{name}, plain", "Envoy, by path"))
    return Comparison(runs, claims)


def compiled(lab: Lab, effort: Effort) -> Comparison:
    """Compare the gateway with compiled modules and the gateway in plain Python."""
    if lab.compiled is None:
        raise SkippedError("needs --compiled, with the folder that `make compiled` creates")
    backend = lab.beside(systems.backend(lab.port())).port
    text = rules.converted()
    fast = systems.gateway(lab.port(), backend, text, code=lab.compiled)
    plain = systems.gateway(lab.port(), backend, text)
    pairs, claims = [], []
    for kind, request, expected in (
        ("as it is", Request("/v2/person"), BOB_2),
        ("converted", Request("/v1/person"), BOB_1),
    ):
        of, to = f"compiled, {kind}", f"plain, {kind}"
        both = {of: (fast, request), to: (plain, request)}
        pairs.append(beside(lab, both, expected, effort.seconds))
        claims += [rate(of, to), cpu(of, to)]
    return Comparison({}, claims, pairs=pairs)


def latency(lab: Lab, effort: Effort) -> Comparison:
    """Send the same rate of requests to all systems, far below the maximum of each."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    peers = {name: lab.measured(peer(lab.port(), backend)) for name, peer in ROUTING_PEERS.items()}
    everyone = {"gateway": ours, **peers}
    full = [closed(lab, system, BY_PATH, BOB_2, 1)().rate for system in everyone.values()]
    constant = min(_SHARE_OF_FULL * min(full), _MOST_AT_CONSTANT_RATE)
    runs = {
        f"{name}, {constant:,.0f} requests/s": paced(
            lab, system, BY_PATH, BOB_2, constant, effort.seconds
        )
        for name, system in everyone.items()
    }
    of, to, *others = runs
    return Comparison(runs, [p99(of, to, at_most(1.0)), *(p99(other, to) for other in others)])


def converted(lab: Lab, effort: Effort) -> Comparison:
    """Compare version 1, which version 2 serves, with an unconverted version 2."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.gateway(lab.port(), backend, rules.converted()))
    runs = {
        "converted": closed(lab, ours, Request("/v1/person"), BOB_1, effort.seconds),
        "as it is": closed(lab, ours, Request("/v2/person"), BOB_2, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [rate(of, to, at_least(0.85)), cpu(of, to)])


def shadowed(lab: Lab, effort: Effort) -> Comparison:
    """Serve version 1 at full load with a shadow of all requests, and without a shadow."""
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
    """Compare a deprecated version with named clients and a version that stays."""
    backend = lab.beside(systems.backend(lab.port())).port
    ends = systems.gateway(lab.port(), backend, rules.ending())
    stays = systems.gateway(lab.port(), backend, rules.shipped())
    asked = Request("/v2/person", (("X-Client", "acme"),))
    both = {"a version that ends": (ends, asked), "one that stays": (stays, asked)}
    of, to = both
    pair = beside(lab, both, BOB_2, 2 * effort.seconds)
    return Comparison({}, [added(of, to, at_most(3)), rate(of, to)], pairs=[pair])


def same(lab: Lab, effort: Effort) -> Comparison:
    """Compare the gateway with itself, to show the smallest detectable difference."""
    return _added(lab, effort, "with the same rules", "")


def traced(lab: Lab, effort: Effort) -> Comparison:
    """Configure tracing with a share of 0: each request is examined and none is traced."""
    tracing = 'tracing: { endpoint: "http://127.0.0.1:1", ratio: 0 }\n'
    return _added(lab, effort, "not sampled", tracing, 1)


def kept(lab: Lab, effort: Effort) -> Comparison:
    """Store the usage of versions in a file."""
    return _added(lab, effort, "kept in a file", "state: state.db\n", 1)


def shared(lab: Lab, effort: Effort) -> Comparison:
    """Store the usage of versions in the database of a fleet."""
    url = database(lab)
    return _added(lab, effort, "kept in PostgreSQL", f"state: {url}\n", 1)


def _added(lab: Lab, effort: Effort, name: str, key: str, most: float | None = None) -> Comparison:
    """Compare the shipped configuration with and without an additional key.

    Args:
        name: the name of the run with the key.
        key: the line of the configuration.
        most: the maximum additional CPU time for a request, in µs; None for no goal.
    """
    backend = lab.beside(systems.backend(lab.port())).port
    plain = rules.stateless()
    both = {
        run: (systems.gateway(lab.port(), backend, text), BY_PATH)
        for run, text in {name: key + plain, "without": plain}.items()
    }
    of, to = both
    few, many = (None, None) if most is None else (at_most(most), at_least(0.97))
    pair = beside(lab, both, BOB_2, 2 * effort.seconds)
    return Comparison({}, [added(of, to, few), rate(of, to, many)], pairs=[pair])


def house(lab: Lab, effort: Effort) -> Comparison:
    """Route with a large and a small configuration."""
    backend = lab.beside(systems.backend(lab.port())).port
    large = systems.gateway(lab.port(), backend, rules.house(50, 50, 50))
    small = systems.gateway(lab.port(), backend, rules.house(1, 1, 2))
    in_large, in_small = Request("/v25/api25/resource25"), Request("/v2/api0/resource0")
    both = {
        "10,000 routes, 50 versions": (lab.measured(large), in_large),  # takes long to start
        "4 routes, 2 versions": (lab.measured(small), in_small),
    }
    of, to = both
    pair = beside(lab, both, BOB_2, effort.seconds)
    return Comparison({}, [cpu(of, to, at_most(1.05)), rate(of, to)], pairs=[pair])


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


def workers(lab: Lab, effort: Effort) -> Comparison:
    """Compare two workers, each with its own core, with one worker."""
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
    if len(pair.processes) <= len(alone.processes):
        raise SkippedError("this gateway has no workers")
    of, to = runs
    return Comparison(runs, [rate(of, to, at_least(1.8))])
