"""Simulates all kinds of healthy traffic and of faults for many seeds, and prints the results.

The traffic has 40 requests a second from 60 clients. The cutover has three steps of 30 seconds.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from gateway.rollout.cutover import bucket
from gateway.rollout.cutovers import DecidedBy
from tests.gateway.rollout.deciding import KEY
from tests.gateway.rollout.simulation import Fault, Run, Traffic, simulate

CUTOVER = """{ via: "2", steps: [25, 50, 100], every: 30s,
  gates: { errors: 1%, latency: 1.5x, window: 20s } }"""
USUAL = {"404": 0.02, "4xx": 0.01, "5xx": 0.002}
TRAFFIC = partial(Traffic, 40, 60, rare=0.04)
HEALTHY = {
    "all is well": TRAFFIC(),
    "usual errors": TRAFFIC(shares=USUAL),
    "many usual errors": TRAFFIC(shares={"404": 0.1, "4xx": 0.05, "5xx": 0.02}),
    "clients that are always refused": TRAFFIC(refused=0.3),
    "a client that always fails in one operation": TRAFFIC(shares=USUAL, rare_client="c3"),
    "a client that fails for a while": TRAFFIC(batch=range(20, 44)),
    "few clients, some with many requests": Traffic(40, 12, heavy=True, shares=USUAL),
    "bursts": TRAFFIC(bursts=5, shares=USUAL),
    "durations with a long tail": TRAFFIC(tail=1.5, shares=USUAL),
    "a peak of both services": TRAFFIC(peak=range(10, 60)),
    "an incident of both services": TRAFFIC(shares=USUAL, incident=range(12, 30)),
    "an outage of both services": TRAFFIC(outage=range(12, 24)),
    "retries in an outage": TRAFFIC(outage=range(35, 50), retries=4),
    "a retry storm": TRAFFIC(incident=range(5, 45), retries=5),
    "an operation that fails on both routes for a while": TRAFFIC(rare_incident=range(5, 50)),
    "a deploy of both services": TRAFFIC(stalls=(range(20, 23), range(45, 50), range(75, 80))),
    "three requests an hour": Traffic(3 / 3600, 3, shares={"404": 0.2}),
    "one request in two seconds": Traffic(0.5, 6, shares={"404": 0.1}),
    "one client": Traffic(20, 1, shares=USUAL),
    "a wrong document": TRAFFIC(violating=0.3, violating_writes=0.1, violating_clients=0.2),
}
MOVED_FIRST = min((f"c{number}" for number in range(60)), key=partial(bucket, KEY))
FAULTS = {
    "3 % of the responses are 500": Fault("5xx", 0.03),
    "all requests fail": Fault("5xx"),
    "all requests of one client fail": Fault("4xx", client=MOVED_FIRST),
    "all reads of one client fail": Fault("4xx", client=MOVED_FIRST, reads=True),
    "one operation hangs": Fault(slower=60, operations=("GET /r0",)),
    "one operation of 4 % is 502": Fault("5xx", rare=True),
    "two operations take 20 ms longer": Fault(slower=0.02, operations=("GET /r0", "POST /w1")),
}


def healthy(name: str, seed: int) -> Run:
    return simulate(seed, HEALTHY[name], CUTOVER, seconds=150, before=100)


def faulty(name: str, seed: int) -> Run:
    return simulate(seed, TRAFFIC(), CUTOVER, fault=FAULTS[name], seconds=300, before=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="default: %(default)s")
    seeds = range(parser.parse_args().seeds)
    with ProcessPoolExecutor() as processes:
        wrong = 0
        for name in HEALTHY:
            states = [run.state for run in processes.map(partial(healthy, name), seeds)]
            counts = Counter(str(state.decided_by) for state in states)
            wrong += counts[DecidedBy.ROLLED_BACK]
            show(f"{name}: {dict(counts)}")
            for why in {each.why for each in states if each.decided_by is DecidedBy.ROLLED_BACK}:
                show(f"  {why}")
        total = len(HEALTHY) * len(seeds)
        show(f"{wrong} of {total} healthy cutovers were rolled back")
        is_missed = False
        for name in FAULTS:
            runs = [*processes.map(partial(faulty, name), seeds)]
            found = [run for run in runs if run.state.decided_by is DecidedBy.ROLLED_BACK]
            if len(found) < 0.95 * len(runs):
                is_missed = True
                show(f"{name}: only {len(found)} of {len(runs)} rolled back")
                continue
            struck, seconds = (
                [
                    sorted(run[place] for run in found)[int(len(found) * part)]
                    for part in (0.5, 0.95)
                ]
                for place in (Run._fields.index("struck"), Run._fields.index("seconds"))
            )
            further = sum(run.highest > 25 for run in runs)
            show(
                f"{name}: {len(found)} of {len(runs)} rolled back, {further} after a further step;"
                f" failed requests and seconds: median {struck[0]}, {seconds[0]}; 95 %"
                f" {struck[1]}, {seconds[1]}"
            )
    return 1 if is_missed or wrong * 1000 > total else 0


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
