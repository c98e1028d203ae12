"""LogPosition: how far the log of a front proxy is counted, kept in the database of the fleet.

It is written in the transaction that hands in what was counted, so that each line is counted once,
whenever the process that reads dies. One process reads a log at a time: the last one that took it.
"""

from typing import NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from gateway.export.access_log.log_file import LogPlace
from gateway.state.fleet.beat import Report, report_start
from gateway.state.fleet.database.postgres_connection import PostgresConnection
from gateway.state.fleet.fleet_reading import log_document
from gateway.state.fleet.outbox import Batch
from gateway.state.fleet.postgres import PostgresDatabase
from gateway.state.fleet.transaction_ledger import write_document
from gateway.state.schema.state_tables import batches, documents
from gateway.state.state_changes import StateError, StateUnreachableError


class LogPosition(msgspec.Struct, frozen=True):
    """How far a log is counted; times in seconds since 1970 by the database.

    Attributes:
        start: the mark of the process that reads it.
        mark: of the file, see `LogPlace`.
        offset: in the file.
        since: the time from which on all is counted.
        until: the time up to which all is counted.
        reason: why not from earlier on; empty where reading began then.
    """

    start: str
    mark: str
    offset: int
    since: float
    until: float
    reason: str = ""

    @property
    def place(self) -> LogPlace:
        """The place in the log."""
        return LogPlace(self.mark, self.offset)


class TakenLog(NamedTuple):
    """A log that was taken: its position, whether it was read before, and the time."""

    position: LogPosition
    known: bool
    now: float


async def take(database: PostgresDatabase, name: str, start: str) -> TakenLog:
    """Take a log from the process that read it before, if any; raises StateError."""
    async with database.transaction() as (connection, now):
        fresh = LogPosition(start, "", 0, now, 0.0)
        row = {"name": log_document(name), "document": msgspec.json.encode(fresh).decode()}
        await connection.execute(insert(documents).on_conflict_do_nothing(), row)
        found = await _locked(connection, name)
        position = msgspec.structs.replace(found, start=start)
        await write_document(connection, log_document(name), msgspec.to_builtins(position))
    return TakenLog(position, bool(found.until), now)


async def hand_in(
    database: PostgresDatabase,
    report: Report,
    former: LogPosition,
    position: LogPosition,
    batch: Batch | None,
) -> float:
    """Hand in what was counted from one position to another, all or nothing; return the time.

    Raises:
        StateUnreachableError: it may have been handed in or not, or the database is from a backup
            and has an earlier position; `take` the log anew to know.
        StateError: another process reads the log.
    """
    name = report.replica
    async with database.transaction() as (connection, now):
        found = await _locked(connection, name)
        if found.start != report.start:
            raise StateError(f"another process reads the log of {name} since; let one run")
        if found != former:
            raise StateUnreachableError(
                f"the database lacks what was counted of the log of {name}, as one from a backup"
            )
        if batch is not None:
            # Not one of the gateways: it is gone as soon as it has reported.
            await report_start(connection, report, batch.sequence, now, gone=now)
            row = {"start": report.start, **batch._asdict()}
            await connection.execute(insert(batches), row)
        await write_document(connection, log_document(name), msgspec.to_builtins(position))
    return now


async def _locked(connection: PostgresConnection, name: str) -> LogPosition:
    same = documents.c.name == log_document(name)
    found = await connection.execute(select(documents.c.document).where(same).with_for_update())
    return msgspec.json.decode(found.scalar_one(), type=LogPosition)
