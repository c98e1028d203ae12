"""The worker's end of the channel: behavior that the tests in tests/gateway/live do not show."""

import asyncio
import socket

from gateway.base.overrides import NO_OVERRIDES
from gateway.process.channel import ApplyOverrides, Channel, SetClock
from gateway.process.listening import CHANNEL, LISTENERS
from gateway.process.reloader import Loaded
from gateway.process.worker import Worker
from gateway.verify.live.document_jobs import NOT_DONE, JobResult, OperationList


def ignore(*_: object) -> None:
    pass


async def stand_in(_: list[int]) -> None:
    pass


async def test_the_late_result_of_a_cancelled_job_is_not_used_for_the_next_job() -> None:
    ours, theirs = socket.socketpair()
    with socket.socket() as listener:
        sockets = f"={listener.detach()}"
    worker = Worker({LISTENERS: sockets, CHANNEL: str(theirs.detach())})
    supervisor = await Channel.over(ours)
    for message in (Loaded(b"", {}), ApplyOverrides(0, NO_OVERRIDES), SetClock(0.0)):
        supervisor.send(message)
    await worker.join()
    late, right = JobResult(problem="late"), JobResult(problem="right")
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(worker.listen(ignore, ignore, ignore, stand_in, ignore))
        passing = tasks.create_task(worker.pass_on_jobs())
        first = worker.documents.ask(OperationList("v1.json", "1", []))
        assert await supervisor.receive() == OperationList("v1.json", "1", [])
        passing.cancel()
        assert await first == NOT_DONE
        passing = tasks.create_task(worker.pass_on_jobs())
        second = worker.documents.ask(OperationList("v2.json", "2", []))
        supervisor.send(late)
        assert await supervisor.receive() == OperationList("v2.json", "2", [])
        supervisor.send(right)
        assert await second == right
        passing.cancel()
        await supervisor.close()
        await listening
    await worker.leave()
    for listening_socket in worker.listeners:
        listening_socket.own.close()
