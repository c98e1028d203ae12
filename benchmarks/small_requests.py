"""What is compared on small requests: routed, converted, shadowed, by few rules and by many."""

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

# In use but far from full, as a gateway should be; and never more than openloop can send.
_SHARE_OF_FULL = 0.4
_MOST_AT_CONSTANT_RATE = 6000.0


def routed(lab: Lab, effort: Effort) -> Comparison:
    """Route by each mechanism, as the peers do; nginx and HAProxy pass everything to one place."""
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
    """Compare the gateway whose hot modules are compiled with the one that is plain Python."""
    if lab.compiled is None:
        raise SkippedError("needs --compiled, with the folder that `make compiled` makes")
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
    """Ask for the same number of requests a second, far below what any of them can do."""
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
    ends = systems.gateway(lab.port(), backend, rules.ending())
    stays = systems.gateway(lab.port(), backend, rules.shipped())
    asked = Request("/v2/person", (("X-Client", "acme"),))
    both = {"a version that ends": (ends, asked), "one that stays": (stays, asked)}
    of, to = both
    pair = beside(lab, both, BOB_2, 2 * effort.seconds)
    return Comparison({}, [added(of, to, at_most(3)), rate(of, to)], pairs=[pair])


def same(lab: Lab, effort: Effort) -> Comparison:
    """Compare the gateway with itself, which shows what the other comparisons can tell apart."""
    return _added(lab, effort, "with the same rules", "")


def traced(lab: Lab, effort: Effort) -> Comparison:
    """Decide for each request whether it is traced, and trace none."""
    tracing = 'tracing: { endpoint: "http://127.0.0.1:1", ratio: 0 }\n'
    return _added(lab, effort, "not sampled", tracing, 1)


def kept(lab: Lab, effort: Effort) -> Comparison:
    """Keep who called which version, in a file."""
    return _added(lab, effort, "kept in a file", "state: state.db\n", 1)


def shared(lab: Lab, effort: Effort) -> Comparison:
    """Keep who called which version, in a database that a fleet shares."""
    url = database(lab)
    return _added(lab, effort, "kept in PostgreSQL", f"state: {url}\n", 1)


def _added(lab: Lab, effort: Effort, name: str, key: str, most: float | None = None) -> Comparison:
    """Compare the shipped rules with one more key to those rules without it.

    Args:
        lab: where.
        effort: how long.
        name: of the run with the key.
        key: the line of the rules.
        most: how many µs of CPU time more a request is to take at most; None for no goal.
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
    """Route in a large house and in a small one."""
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
