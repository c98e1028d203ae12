"""LogImport: adds what the log of a front proxy has to the sums of a fleet, once."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec

from gateway.core.clients import ClientNaming
from gateway.export.access_log.log_file import LogFile, LogPart
from gateway.export.access_log.log_position import LogPosition, hand_in, take
from gateway.export.access_log.logged_request import LoggedRequest, read_line
from gateway.state.fleet.beat import Report, begin_counting
from gateway.state.fleet.fleet_clock import FleetClock
from gateway.state.fleet.outbox import Batch, encode
from gateway.state.fleet.postgres import PostgresDatabase
from gateway.state.state_changes import StateChanges, StateUnreachableError
from gateway.state.top_clients import ClientUsage, TopClients
from gateway.state.totals import Occurrences, Totals
from gateway.steady_clock import passed
from gateway.telemetry.delta import BOUNDS, Delta, TrafficDelta, UsageDelta

# Seconds between two looks at a log that was read to its end.
_INTERVAL = 1.0
# The number of problems of a part that are reported one by one.
_MOST_REPORTED = 5


class LogCounts(NamedTuple):
    """What was read: lines, those of requests that went straight, and those that are unreadable."""

    lines: int = 0
    straight: int = 0
    unreadable: int = 0


class LogImport:
    """Reads the log of a front proxy and hands in what it counts.

    Args:
        url: of the database.
        path: of the log.
        name: of the front proxy.
        naming: the rules by which clients are named.
        tell: receives what was lost or cannot be read, a sentence each.
    """

    def __init__(
        self,
        url: str,
        path: Path,
        name: str,
        naming: ClientNaming | None,
        tell: Callable[[str], None],
    ) -> None:
        self._database = PostgresDatabase(url, keeps=False)
        self._path = path
        self._name = name
        self._naming = naming
        self._tell = tell
        self._clock = FleetClock()
        self._start = uuid4().hex
        self._sequence = 0
        self._missing = False
        self.counts = LogCounts()

    async def run(self, *, follow: bool) -> None:
        """Read to the end of the log; then, with `follow`, what is added to it, until cancelled.

        While the database cannot be reached, `follow` waits for it.

        Raises:
            StateError: the database cannot be used, or another process reads the log.
            OSError: the file cannot be read, unless it is waited for.
        """
        try:
            while True:
                try:
                    await self._run(follow=follow)
                    return
                except StateUnreachableError as error:
                    if not follow:
                        raise
                    self._tell(f"{error}; what it lacks is handed in later")
                    await asyncio.sleep(_INTERVAL)
        finally:
            await self._database.close()

    async def _run(self, *, follow: bool) -> None:
        await self._database.prepare()
        await begin_counting(self._database)
        asked = passed()
        position, known, now = await take(self._database, self._name, self._start)
        self._clock.set(now, asked)
        read = max(position.since, position.until) - self._clock.ahead
        log = LogFile(self._path, position.place, read if known else float("inf"))
        try:
            while True:
                begin = self._clock.now()
                part = self._read(log, wait=follow)
                if part is not None:
                    position = await self._hand_in(position, part, begin)
                    if part.at_end and not follow:
                        return
                if part is None or part.at_end:
                    await asyncio.sleep(_INTERVAL)
        finally:
            log.close()

    def _read(self, log: LogFile, *, wait: bool) -> LogPart | None:
        """Return the next part; None while there is no file."""
        try:
            part = log.read()
        except OSError as error:
            if not wait:
                raise
            if not self._missing:
                self._tell(f"{self._path} cannot be read, and is waited for: {error.strerror}")
            self._missing = True
            return None
        self._missing = False
        return part

    async def _hand_in(self, position: LogPosition, part: LogPart, begin: float) -> LogPosition:
        totals, problems, straight = self._count(part)
        for problem in problems[:_MOST_REPORTED]:
            self._tell(problem)
        if len(problems) > _MOST_REPORTED:
            self._tell(f"{len(problems) - _MOST_REPORTED} more of {self._path}")
        changes: dict[str, object] = {"mark": part.place.mark, "offset": part.place.offset}
        if problems:
            changes |= {"since": self._clock.now(), "reason": problems[-1]}
        if part.at_end:
            changes["until"] = begin
        content = encode(totals, [])
        batch = None
        if content is not None:
            self._sequence += 1
            batch = Batch(self._sequence, content)
        former, position = position, msgspec.structs.replace(position, **changes)
        report = Report(self._start, self._name, "", "", 0)
        asked = passed()
        self._clock.set(await hand_in(self._database, report, former, position, batch), asked)
        lines, before, unreadable = self.counts
        more = len(problems) - bool(part.problem)
        self.counts = LogCounts(lines + len(part.lines), before + straight, unreadable + more)
        return position

    def _count(self, part: LogPart) -> tuple[Totals, list[str], int]:
        """Return what a part has, what is wrong with it, and how many requests it has."""
        totals = Totals(StateChanges())
        problems = [part.problem] if part.problem else []
        straight = 0
        # Log and clock are of one machine, whose clock may be wrong.
        now, ahead = self._clock.now(), round(self._clock.ahead)
        for offset, line in part.lines:
            try:
                found = read_line(line, self._naming)
            except ValueError as error:
                problems.append(f"the line at byte {offset} of {self._path} is no entry: {error}")
                continue
            if found is None:
                continue
            straight += 1
            at = min(found.at + ahead, now)
            usage = ClientUsage(1, failed=int(found.failed), first=at, last=at, served=at)
            of_line = TopClients({(found.endpoint, found.client): usage})
            totals.clients_of(found.api, found.version).merge(of_line)
            imported = found.api, found.version, self._name
            totals.count("imported", imported, Occurrences(1, at, at))
            totals.history.absorb(_delta(found, at))
        return totals, problems, straight


def _delta(found: LoggedRequest, at: float) -> Delta:
    """Return what a history counts of a request that began at a time."""
    place = found.api, found.version, found.endpoint
    traffic = []
    if found.seconds is not None:
        buckets = [0] * (len(BOUNDS) + 1)
        buckets[bisect_left(BOUNDS, found.seconds)] = 1
        traffic.append(TrafficDelta(*place, "", 0, "", buckets, found.seconds, 0))
    usage = UsageDelta(*place, found.client, 1, 0, int(found.failed), 1)
    return Delta(at, [usage], traffic)
