"""A year of requests for the page's tests, as a gateway would have counted them."""

import asyncio
import math
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway.store.sqlite import SqliteFile
from gateway.usage.delta import BOUNDS, Delta, TrafficDelta, UsageDelta
from gateway.usage.totals import StateRows, Totals

DAY = 86_400.0
PATH = "/v{version}/person"


def callers(version: str, day: int) -> int:
    if version == "1":
        return max(round(66 - (365 - day) * 0.092 + 3 * math.sin(day / 9)), 0)
    return max(round((330 - day) * 0.15 + 2 * math.sin(day / 7)), 0)


def request_delta(
    chance: random.Random, at: float, version: str, clients: int, each: int = 60
) -> Delta:
    calm = 0.4 if time.gmtime(at).tm_wday > 4 else 1.0
    usages, requests, failed = [], 0, 0
    for number in range(clients):
        count = max(round(calm * chance.gauss(each * (1 - number / 80), each / 8)), 1)
        errors = sum(chance.random() < 0.004 for _ in range(count))
        usages.append(UsageDelta("person", version, PATH, f"client-{number}", count, 0, errors, 1))
        requests, failed = requests + count, failed + errors
    buckets = [0] * (len(BOUNDS) + 1)
    for _ in range(requests):
        took = chance.lognormvariate(-4.4, 0.7)
        buckets[sum(took > bound for bound in BOUNDS)] += 1
    traffic = [TrafficDelta("person", version, PATH, "GET", 200, "", buckets, requests * 0.014, 0)]
    return Delta(at, usages, traffic, [], [], [])


def past(now: float) -> StateRows:
    chance = random.Random(4)
    totals = Totals(StateRows(documents={"since": now - 365 * DAY}))
    for day in range(365, 0, -1):
        for version in ("1", "2"):
            at = now - day * DAY
            if clients := callers(version, day):
                totals.absorb(request_delta(chance, at, version, clients))
    for minute in range(1439, 0, -7):
        for version in ("1", "2"):
            clients = max(round(callers(version, 1) * (0.25 + 0.2 * math.sin(minute / 230))), 1)
            totals.absorb(request_delta(chance, now - minute * 60, version, clients, 1))
    changes = totals.changes()
    changes.documents["since"] = now - 365 * DAY
    return changes


def write_past(path: Path) -> None:
    async def write() -> None:
        store = SqliteFile(path)
        await store.write(past(time.time()))
        await store.close()

    # In a thread, because the browser's driver runs an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(write())).result()
