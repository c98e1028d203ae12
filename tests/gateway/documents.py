"""Document processes for tests: one that does its jobs at once in this process, and a real one."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.verify.live.document_child import DocumentWork
from gateway.verify.live.document_jobs import Job, JobResult
from gateway.verify.live.document_process import DocumentProcess


async def ignore(location: str, document: bytes) -> str:
    return ""


class LocalDocuments(DocumentProcess):
    """Does each job in this process before `ask` returns."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ignore)
        self.work = DocumentWork(folder)
        self.asked: list[Job] = []

    def ask(self, job: Job, *, urgent: bool = False) -> "asyncio.Future[JobResult]":
        self.asked.append(job)
        future: asyncio.Future[JobResult] = asyncio.get_running_loop().create_future()
        with ThreadPoolExecutor(1) as thread:  # documents are fetched by an event loop
            future.set_result(thread.submit(self.work.result, job).result())
        return future


@asynccontextmanager
async def running(documents: DocumentProcess) -> AsyncIterator[DocumentProcess]:
    tasks = [asyncio.create_task(each) for each in (documents.run(), documents.read())]
    try:
        yield documents
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
