"""What is compared on small requests: routed, converted, shadowed, by few rules and by many."""

from benchmarks import rules, systems
from benchmarks.comparison import Comparison
from benchmarks.database import database
from benchmarks.lab import Lab
from benchmarks.loads import closed, paced
from benchmarks.measure import (
    Goal,
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
    for name, request in MECHANISMS.items():
        one, envoy = f"gateway, by {name}", f"Envoy, by {name}"
        runs[one] = closed(lab, ours, request, BOB_2, effort.seconds)
        for peer, running in peers.items():
            runs[f"{peer}, by {name}"] = closed(lab, running, request, BOB_2, effort.seconds)
        claims += [rate(one, envoy, at_least(1.0)), cpu(one, envoy)]
        claims += [rate(f"{peer}, by {name}", envoy) for peer in peers if peer != "Envoy"]
    for name, system in {"nginx": systems.nginx, "HAProxy": systems.haproxy}.items():
        plain = lab.measured(system(lab.port(), backend))
        runs[f"{name}, plain"] = closed(lab, plain, BY_PATH, BOB_2, effort.seconds)
        claims.append(rate(f"{name}, plain", "Envoy, by path"))
    return Comparison(runs, claims)


def exported(lab: Lab, effort: Effort) -> Comparison:
    """Route by Envoy as `export envoy` sets it up, and as its own rules do."""
    backend = lab.beside(systems.backend(lab.port())).port
    ours = lab.measured(systems.exported(lab.port(), backend, rules.bypassed()))
    theirs = lab.measured(systems.envoy(lab.port(), backend))
    runs, claims = {}, []
    for name in ("path", "query", "header"):  # the other goes to the gateway
        of, to = f"Envoy by export, by {name}", f"Envoy, by {name}"
        runs[of] = closed(lab, ours, MECHANISMS[name], BOB_2, effort.seconds)
        runs[to] = closed(lab, theirs, MECHANISMS[name], BOB_2, effort.seconds)
        claims += [rate(of, to, at_least(0.97)), cpu(of, to)]
    return Comparison(runs, claims)


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
    ends = lab.measured(systems.gateway(lab.port(), backend, rules.ending()))
    stays = lab.measured(systems.gateway(lab.port(), backend, rules.shipped()))
    asked = Request("/v2/person", (("X-Client", "acme"),))
    runs = {
        "a version that ends": closed(lab, ends, asked, BOB_2, effort.seconds),
        "one that stays": closed(lab, stays, asked, BOB_2, effort.seconds),
    }
    of, to = runs
    return Comparison(runs, [added(of, to, at_most(3)), rate(of, to)])


def traced(lab: Lab, effort: Effort) -> Comparison:
    """Decide for each request whether it is traced, and trace none."""
    tracing = 'tracing: { endpoint: "http://127.0.0.1:1", ratio: 0 }\n'
    return _added(lab, effort, "not sampled", tracing, at_most(1))


def kept(lab: Lab, effort: Effort) -> Comparison:
    """Keep who called which version, in a file."""
    return _added(lab, effort, "kept in a file", "state: state.db\n", at_most(1))


def shared(lab: Lab, effort: Effort) -> Comparison:
    """Keep who called which version, in a database that a fleet shares."""
    url = database(lab)
    return _added(lab, effort, "kept in PostgreSQL", f"state: {url}\n", at_most(1))


def _added(lab: Lab, effort: Effort, name: str, key: str, goal: Goal) -> Comparison:
    """Compare the shipped rules with one more key to those rules without it."""
    backend = lab.beside(systems.backend(lab.port())).port
    plain = rules.stateless()
    runs = {}
    for run, text in {name: key + plain, "without": plain}.items():
        system = lab.measured(systems.gateway(lab.port(), backend, text))
        runs[run] = closed(lab, system, BY_PATH, BOB_2, effort.seconds)
    of, to = runs
    return Comparison(runs, [added(of, to, goal), rate(of, to, at_least(0.97))])


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
