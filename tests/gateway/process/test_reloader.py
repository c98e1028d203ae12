"""The reloader: the configuration in force stays until the file is valid again."""

import asyncio
import errno
import gc
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import pytest

from gateway.base.files import MAX_BYTES, Stamp
from gateway.base.mistakes import ConfigError
from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import GroupUse
from gateway.observe import log
from gateway.process import reloader as reloader_module
from gateway.process.reloader import Loaded, Reloader
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load_file
from tests.gateway.kit import rules
from tests.gateway.talk import soon

PAUSED = '"1": { service: s, brownout: { windows: [{ percent: 1, minutes: [] }] } }'
ENDED = '"1": { service: s, lifecycle: { sunset: "9999-12-31T23:59:59-23:59" } }'


@pytest.fixture
def rejected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    issues: list[str] = []

    def event(name: str, level: str = "info", **fields: object) -> None:
        assert (name, level) == ("config_rejected", "error")
        issues.append(str(fields["issue"]))

    monkeypatch.setattr(log, "event", event)
    return issues


@asynccontextmanager
async def reloading(path: Path) -> AsyncIterator[Reloader]:
    put(path, rules(1))
    reloader = Reloader(path, {"SECRET": "hunter2-hunter2"}, 0.02)

    async def follow() -> None:
        async for _ in reloader.changes():
            pass

    following = asyncio.create_task(follow())
    try:
        yield reloader
        loaded = reloader.loaded
        put(path, rules(2))
        await soon(lambda: reloader.loaded > loaded)
    finally:
        following.cancel()


def put(path: Path, content: str) -> None:
    fresh = path.with_suffix(".fresh")
    fresh.write_text(content)
    fresh.replace(path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    path.rename(path.with_suffix(".folder"))
    path.symlink_to(path.with_suffix(".folder"))


def enormous(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(2 * 2**30)


def mistaken(path: Path) -> None:
    put(path, "services: {}\napis:\n" + "".join(f"  a{n}: {{}}\n" for n in range(20_000)))


# The change of the file, and the expected log line after the file name.
BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "a FIFO": (pipe, "cannot be read: not a regular file; is the path right?"),
    "a folder": (folder, "cannot be read: Is a directory; is the path right?"),
    "gone": (Path.unlink, "cannot be read: No such file or directory; is the path right?"),
    "2 GB": (enormous, f"cannot be read: larger than {MAX_BYTES // 2**20} MiB; is the path right?"),
    "20,000 mistakes": (mistaken, "20000 values are wrong; the first 1000 are explained"),
    "an empty list": (
        lambda path: put(path, rules(1).replace('"1": { service: s }', PAUSED)),
        "minutes: expected 2 elements",
    ),
    "a date past all years": (
        lambda path: put(path, rules(1).replace('"1": { service: s }', ENDED)),
        "a date must be between the years 1 and 9999",
    ),
    "a secret": (
        lambda path: put(
            path, rules(1).replace("  plain:", '  "plain": &p {service: "${SECRET}"}\n  other:')
        ),
        "",
    ),
}


@pytest.mark.parametrize(("edit", "text"), BROKEN.values(), ids=BROKEN)
async def test_an_unusable_file_is_rejected_and_the_next_valid_one_is_loaded(
    tmp_path: Path, rejected: list[str], edit: Callable[[Path], None], text: str
) -> None:
    path = tmp_path / "gateway.yaml"
    async with reloading(path) as reloader:
        in_force = reloader.latest
        await asyncio.to_thread(edit, path)
        await soon(lambda: reloader.rejected)
        assert reloader.latest is in_force
        assert text in rejected[0]
        assert len(rejected) <= 101
        assert "hunter2" not in "".join(rejected)


@pytest.mark.parametrize("error", [MemoryError(), KeyError("minItems"), RecursionError("deep")])
async def test_an_unexpected_error_rejects_the_configuration(
    tmp_path: Path, rejected: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    path = tmp_path / "gateway.yaml"

    def fail(*_: object, **__: object) -> None:
        raise error

    async with reloading(path) as reloader:
        with monkeypatch.context() as patch:
            patch.setattr(reloader_module, "load", fail)
            reloader.reload()
            await soon(lambda: reloader.rejected)
        assert rejected == [
            f"{path}: cannot be loaded: {type(error).__name__}: {error}; undo the last change"
        ]


async def test_a_load_that_never_ends_is_rejected(
    tmp_path: Path, rejected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.yaml"
    monkeypatch.setattr(reloader_module, "_LONGEST_LOAD", 0.2)
    async with reloading(path) as reloader:
        in_force = reloader.latest
        with monkeypatch.context() as patch:
            patch.setattr(reloader_module, "load", lambda *_, **__: Event().wait())
            reloader.reload()
            await soon(lambda: reloader.rejected)
        assert reloader.latest is in_force
        assert gc.isenabled()
        (issue,) = rejected
        assert issue.startswith(f"{path}: is not loaded after 0.2 s; a module or file that it")
        monkeypatch.setattr(reloader_module, "_LONGEST_LOAD", 60.0)


async def test_an_unreadable_file_is_read_again(
    tmp_path: Path, rejected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.yaml"
    reads: list[Path] = []

    def fail(file: Path) -> bytes:
        reads.append(file)
        raise OSError(errno.EIO, "Input/output error")

    async with reloading(path) as reloader:
        with monkeypatch.context() as patch:
            patch.setattr("gateway.rules.load.read_regular", fail)
            reloader.reload()
            await soon(lambda: len(reads) == 3)
            assert rejected == [f"{path}: cannot be read: Input/output error; is the path right?"]
            refused = reloader.refused
            assert refused
        await soon(lambda: reloader.loaded)
        assert (reloader.rejected, reloader.refused) == (1, None)


async def test_a_hanging_disk_is_reported_and_blocks_no_request(
    tmp_path: Path, rejected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example is a network file system without its server. The file is read when it responds."""
    path = tmp_path / "gateway.yaml"
    answers, stat = Event(), Path.stat
    looks: list[Path] = []

    def hang(file: Path, **options: bool) -> os.stat_result:
        if file == path:
            looks.append(file)
            answers.wait(60)
        return stat(file, **options)

    monkeypatch.setattr(reloader_module, "_LONGEST_LOOK", 0.1)
    async with reloading(path) as reloader:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "stat", hang)
            await soon(lambda: reloader.refused)
            (issue,) = rejected
            assert issue.startswith(
                f"{path}: has not responded for 0.1 s, like a file on a network file system"
            )
            await asyncio.sleep(0.2)
            assert len(looks) == 1  # no further thread is started
            answers.set()
            await soon(lambda: reloader.loaded)
        assert (reloader.rejected, reloader.refused) == (1, None)


async def test_a_worker_never_checks_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.yaml"
    reloader = Reloader(path, {}, None, Loaded(rules(1).encode(), {}))
    monkeypatch.setattr(reloader, "_stamps", lambda: pytest.fail("its supervisor does"))
    reloader.reload(Loaded(rules(2).encode(), {}))
    async for snapshot in reloader.changes():
        assert snapshot is reloader.latest
        break
    assert reloader.content == rules(2).encode()


async def test_a_changed_file_mode_reloads_the_file(tmp_path: Path) -> None:
    """A chmod changes neither the content nor the modification time."""
    path = tmp_path / "gateway.yaml"
    async with reloading(path) as reloader:
        loaded = reloader.loaded
        path.chmod(0o600)
        await soon(lambda: reloader.loaded > loaded)


async def test_a_change_with_an_older_modification_time_is_loaded(tmp_path: Path) -> None:
    """`cp --preserve` and `rsync --times --inplace` make such changes."""
    path = tmp_path / "gateway.yaml"
    async with reloading(path) as reloader:
        before = path.stat()
        path.write_text(rules(3))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        await soon(lambda: reloader.content == rules(3).encode())


async def test_a_half_written_file_is_not_loaded(tmp_path: Path, rejected: list[str]) -> None:
    """An editor may write a file in place, a little at a time."""
    path = tmp_path / "gateway.yaml"
    content = rules(3)
    async with reloading(path) as reloader:
        with path.open("w") as file:
            for begin in range(0, len(content), 64):
                file.write(content[begin : begin + 64])
                file.flush()
                await asyncio.sleep(0.01)
        await soon(lambda: reloader.loaded)
        assert "http://127.0.0.1:3" in reloader.content.decode()
        assert rejected == []


async def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, rejected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first version that was read is also valid, but lacks the second service."""
    path = tmp_path / "gateway.yaml"
    read: list[bytes] = []

    def read_slowly(file: Path) -> tuple[bytes, dict[Path, Stamp]]:
        content = file.read_bytes()
        if not read:
            file.write_text(rules(3) + "# whole\n")
        read.append(content)
        return content, {}

    async with reloading(path) as reloader:
        monkeypatch.setattr(reloader_module, "read_files", read_slowly)
        path.write_text(rules(2))
        await soon(lambda: reloader.loaded)
        assert reloader.content == read[1] == path.read_bytes()
        assert rejected == []


async def test_added_changed_and_removed_included_files_are_reloaded(
    tmp_path: Path, rejected: list[str]
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(f"include: [teams/*.yaml]\n{rules(1)}")
    (tmp_path / "teams").mkdir()
    service = "services: {{ {0}: {{ targets: [http://127.0.0.1:{1}] }} }}"
    put(tmp_path / "teams/a.yaml", service.format("a", 1))
    reloader = Reloader(path, {}, 0.02)

    async def follow() -> None:
        async for _ in reloader.changes():
            pass

    def served() -> list[str]:
        services = reloader.latest.services
        return [name for name in services if name in ("a", "b", "c")]

    following = asyncio.create_task(follow())
    try:
        assert served() == ["a"]
        put(tmp_path / "teams/b.yaml", service.format("b", 1))
        await soon(lambda: served() == ["a", "b"])
        put(tmp_path / "teams/b.yaml", "services: [")
        await soon(lambda: rejected)
        assert rejected[0].startswith(f"{tmp_path}/teams/b.yaml:2:1: not YAML")
        put(tmp_path / "teams/b.yaml", service.format("c", 1))
        await soon(lambda: served() == ["a", "c"])
        (tmp_path / "teams/b.yaml").unlink()
        await soon(lambda: served() == ["a"])
    finally:
        following.cancel()
    assert len(rejected) == 1  # an unchanged mistake is not logged again


def test_a_configuration_is_loaded_without_reading_its_documents(tmp_path: Path) -> None:
    content = rules(1).replace('"2": { service: s }', '"2": { service: s, schema: gone.json }')
    path = tmp_path / "gateway.yaml"
    path.write_text(content)
    assert Reloader(path, {}).latest.labels["person"] == ["1", "2"]
    with pytest.raises(ConfigError, match=r"gone\.json"):
        load_file(path, {})


async def test_no_full_garbage_collection_runs_during_a_reload_of_a_large_configuration(
    tmp_path: Path,
) -> None:
    """With 10,000 endpoints, it would block every request for half a second."""
    paths = "".join(f"      - {{ path: /plain/{number} }}\n" for number in range(3000))
    many = f"apis:\n  many:\n    service: s\n    endpoints:\n{paths}"
    large = rules(1).replace("apis:\n", many)
    assert len(large) > reloader_module._SMALL
    longest, began = 0.0, 0.0

    def measure(phase: str, _: dict[str, int]) -> None:
        nonlocal longest, began
        now = time.process_time()
        longest, began = (longest, now) if phase == "start" else (max(longest, now - began), began)

    path = tmp_path / "gateway.yaml"
    async with reloading(path) as reloader:
        gc.callbacks.append(measure)
        try:
            put(path, large)
            await soon(lambda: reloader.loaded == 1)
            gc.collect()
        finally:
            gc.callbacks.remove(measure)
        assert len([*reloader.latest.router]) > 3000
        assert longest < 0.02


NESTED = """
services: { s: { targets: ["http://127.0.0.1:8002"] } }
apis:
  tree:
    endpoints: [ { path: "/v{version}/tree", version: { in: path } } ]
    versions: { "1": { via: "2" }, "2": { service: s } }
    groups:
      node: [ rename: { field: name, to: title }, use: { group: node, at: ["children[]"] } ]
    conversions:
      - between: ["1", "2"]
        changes: [ use: { group: node, at: [root] } ]
"""


def live(*kinds: type[object]) -> Counter[type[object]]:
    return Counter(type(each) for each in gc.get_objects() if type(each) in kinds)


@pytest.mark.usefixtures("collecting")
async def test_reloads_of_a_large_configuration_free_the_previous_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes groups that use themselves, which only a garbage collection can free."""
    monkeypatch.setattr(reloader_module, "_SMALL", 0)
    monkeypatch.setattr(reloader_module, "_RELOADS_A_COLLECTION", 2)  # a collection at 2 or 3
    async with reloading(tmp_path / "gateway.yaml") as reloader:
        groups, snapshots = [], []
        for loaded in range(1, 6):
            reloader.reload(Loaded(NESTED.encode() + b"# %d" % loaded, {}))
            await soon(lambda loaded=loaded: reloader.loaded == loaded)  # type: ignore[misc]
            gc.unfreeze()
            found = live(GroupUse, Snapshot)
            gc.freeze()
            groups.append(found[GroupUse])
            snapshots.append(found[Snapshot])
        reloader.reload()  # reload the file
        assert {*snapshots} == {snapshots[0]}
        assert max(groups) <= 4 * groups[0]
        assert min(groups[1:]) == groups[0]


async def test_replaced_conversions_are_freed_without_a_garbage_collection(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    put(path, rules(1, via=True, changes="- rename: { field: name, to: title }"))
    gc.collect()
    gc.disable()
    try:
        before = live(BodyConversion).total()
        snapshot = load_file(path, {})
        assert live(BodyConversion).total() > before
        del snapshot
        assert live(BodyConversion).total() == before
    finally:
        gc.enable()
