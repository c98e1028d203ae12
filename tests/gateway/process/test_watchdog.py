"""While a supervisor hangs, a file exists for the next start: counts may be lost."""

from pathlib import Path

from gateway.process.worker import SupervisorWatchdog


def report(watchdog: SupervisorWatchdog, times: int, *, answered: bool) -> None:
    for _ in range(times):
        watchdog.reported()
        if answered:
            watchdog.answered()


def test_the_file_exists_until_the_delayed_counts_are_stored(
    tmp_path: Path, events: list[str]
) -> None:
    mark = tmp_path / "state.db.unheard"
    watchdog = SupervisorWatchdog(mark)
    report(watchdog, 20, answered=True)
    report(watchdog, 2, answered=False)
    watchdog.answered()
    report(watchdog, 2, answered=False)
    assert not mark.exists()
    report(watchdog, 10, answered=False)
    assert mark.stat().st_mode & 0o777 == 0o600
    report(watchdog, 5, answered=True)
    report(watchdog, 2, answered=False)  # the supervisor hangs again
    report(watchdog, 5, answered=True)
    assert mark.exists()
    assert events == ["supervisor_silent"]
    report(watchdog, 1, answered=True)
    assert not mark.exists()
    assert events == ["supervisor_silent", "supervisor_heard"]


def test_late_replies_to_many_heartbeats_do_not_remove_the_file(
    tmp_path: Path, events: list[str]
) -> None:
    """They all arrive when the supervisor wakes, before it has stored any counts."""
    mark = tmp_path / "state.db.unheard"
    watchdog = SupervisorWatchdog(mark)
    report(watchdog, 60, answered=False)
    for _ in range(60):
        watchdog.answered()
    assert mark.exists()
    report(watchdog, 6, answered=True)
    assert not mark.exists()


def test_a_supervisor_that_has_ended_does_not_count_as_hanging(
    tmp_path: Path, events: list[str]
) -> None:
    """A new supervisor may have started, and would find a file that does not concern it."""
    watchdog = SupervisorWatchdog(tmp_path / "mark")
    watchdog.end()
    report(watchdog, 10, answered=False)
    assert not (tmp_path / "mark").exists()
    assert events == []


def test_a_file_that_cannot_be_created_is_logged(tmp_path: Path, events: list[str]) -> None:
    for mark, names in (
        (tmp_path / "absent" / "mark", ["supervisor_silent", "mark_not_kept"]),
        (None, ["supervisor_silent"]),
    ):
        watchdog = SupervisorWatchdog(mark)
        report(watchdog, 5, answered=False)
        report(watchdog, 6, answered=True)
        assert events == [*names, "supervisor_heard"]
        events.clear()
