"""The document process: its bounds, its restarts, and the queue in front of it."""

import json
from pathlib import Path

import pytest

from gateway.observe import log
from gateway.rules.load import load
from gateway.verify.live import document_process as module
from gateway.verify.live.document_jobs import DocumentedEndpoint, FileCheck, JobQueue, MessageCheck
from gateway.verify.live.document_process import DocumentProcess
from tests.gateway.documents import ignore, running
from tests.gateway.talk import soon
from tests.gateway.verify.loans import document, written

ENDPOINT = DocumentedEndpoint("/v{version}/loans", "/lendings", None, serves=True)


def message(location: str = "v1.json", body: bytes = b"", method: str = "GET") -> MessageCheck:
    fields = [(b"Content-Type", b"application/json")]
    return MessageCheck(location, ENDPOINT, "1", method, "/lendings", fields, body, 200)


def folder(at: Path) -> Path:
    written(at, document(lendings="get"), document(lendings="get"))
    return at


@pytest.mark.usefixtures("forked_processes")
async def test_a_message_is_validated_in_another_process(tmp_path: Path) -> None:
    async with running(DocumentProcess(folder(tmp_path), ignore)) as documents:
        result = await documents.ask(message(body=b'{"id":1}'))
        assert result.found == [("/id", "type", "")]


async def test_a_killed_process_is_replaced_and_its_job_is_done(
    tmp_path: Path, events: list[str]
) -> None:
    async with running(DocumentProcess(folder(tmp_path), ignore)) as documents:
        await documents.ask(message())
        killed = documents._process
        assert killed is not None
        killed.kill()
        assert (await documents.ask(message(body=b'{"id":1}'))).found == [("/id", "type", "")]
        assert documents._process not in (None, killed)
    assert events == ["document_process_ended"]
    assert documents.problems == {}
    assert documents._process is None  # none is left behind


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("MOST_MEMORY = 90_000_000", "v1.json: needs more than 512 MB of memory; remove"),
        ("LONGEST = 1e-3", "v1.json: takes more than 60 s of processor time; name a"),
    ],
    ids=["memory", "time"],
)
async def test_a_document_that_exceeds_a_bound_is_refused_after_two_attempts(
    bound: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    limited = "import gateway.verify.live.document_jobs as jobs\njobs."
    program = module._PROGRAM.replace("from", f"{limited}{bound}\nfrom", 1)
    monkeypatch.setattr(module, "_PROGRAM", program)
    many = document(lendings="get") | {"info": [{"a": [number]} for number in range(300_000)]}
    written(tmp_path, many, document(lendings="get"))
    async with running(DocumentProcess(tmp_path, ignore)) as documents:
        for _ in range(3):
            assert not (await documents.ask(message())).done
    assert documents.problems["v1.json"].startswith(reason)
    assert events == ["document_process_ended", "document_process_ended", "check_failed"]


@pytest.mark.usefixtures("forked_processes")
async def test_a_document_that_cannot_be_used_is_a_problem_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    _, rules = written(tmp_path, document(lendings="get"), document(lendings="get"))
    whole = (tmp_path / "v1.json").read_text()
    (tmp_path / "v1.json").unlink()
    async with running(DocumentProcess(tmp_path, ignore)) as documents:
        documents.follow(rules)
        await soon(lambda: documents.problems)
        assert documents.problems == {
            "v1.json": "'v1.json' cannot be read: No such file or directory; name a file beside"
            " this one, or a URL"
        }
        (tmp_path / "v1.json").write_text(whole)
        await soon(lambda: not documents.problems)
        (tmp_path / "v1.json").write_text(json.dumps(document(lendings="post")))
        documents.follow(rules)
        # The changed document lacks the operation.
        assert (await documents.ask(message(body=b'{"id":1}'))).found is None
    assert events == ["check_failed"]


@pytest.mark.usefixtures("forked_processes")
async def test_a_problem_is_logged_once_without_the_password_of_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[object] = []
    monkeypatch.setattr(log, "event", lambda *_, **fields: lines.append(fields))
    path, _ = written(tmp_path, document(lendings="get"), document(lendings="get"))
    location = "http://User:secret@127.0.0.1:1/v1?key=secret"
    text = path.read_text().replace("v1.json", f'"{location}", check: {{ percent: 1 }}')
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    documents = DocumentProcess(tmp_path, ignore)
    async with running(documents):
        documents.follow(load(text.encode(), "gateway.yaml", {}))
        for _ in range(2):
            assert not (await documents.ask(message(location))).done
    assert documents.problems[location].startswith("http://127.0.0.1:1/v1: cannot be loaded")
    assert len(lines) == 1
    assert "secret" not in str((lines, [*documents.problems.values()]))


async def test_writes_and_reads_share_a_full_queue_and_take_turns() -> None:
    queue = JobQueue()
    reads = [queue.ask(message()) for _ in range(64)]
    assert not any(each.done() for each in reads)
    assert queue.ask(message()).done()
    writes = [queue.ask(message(method="PUT"), urgent=True) for _ in range(40)]
    assert [each.done() for each in reads] == [False] * 32 + [True] * 32
    assert [each.done() for each in writes] == [False] * 32 + [True] * 8
    check = queue.ask(FileCheck("v1.json"))  # this job has no client
    taken = [(await queue.next())[1] for _ in range(65)]
    turns = [one for both in zip(writes, reads, strict=False) for one in both if not one.done()]
    assert taken == [*turns, check]


async def test_the_bytes_in_a_queue_are_bounded() -> None:
    queue = JobQueue()
    assert queue.ask(message(body=b" " * (1024 * 1024 + 1))).done()
    large = [queue.ask(message(body=b" " * 900_000)) for _ in range(3)]
    assert [each.done() for each in large] == [False, False, True]
    await queue.next()
    assert not queue.ask(message(body=b" " * 900_000)).done()
