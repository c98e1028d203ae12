"""While a supervisor takes nothing more, there is a file for the next start."""

from pathlib import Path

from gateway.process.worker import SupervisorWatchdog


def report(watchdog: SupervisorWatchdog, times: int, *, answered: bool) -> None:
    for _ in range(times):
        watchdog.reported()
        if answered:
            watchdog.answered()


def test_it_is_marked_until_what_was_counted_is_taken(tmp_path: Path, events: list[str]) -> None:
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
    report(watchdog, 2, answered=False)  # it stands still again
    report(watchdog, 5, answered=True)
    assert mark.exists()
    assert events == ["supervisor_silent"]
    report(watchdog, 1, answered=True)
    assert not mark.exists()
    assert events == ["supervisor_silent", "supervisor_heard"]


def test_answers_to_all_that_waited_are_one_sign(tmp_path: Path, events: list[str]) -> None:
    """They come at once when it wakes, and before it has handed anything in."""
    mark = tmp_path / "state.db.unheard"
    watchdog = SupervisorWatchdog(mark)
    report(watchdog, 60, answered=False)
    for _ in range(60):
        watchdog.answered()
    assert mark.exists()
    report(watchdog, 6, answered=True)
    assert not mark.exists()


def test_one_that_has_ended_is_not_silent(tmp_path: Path, events: list[str]) -> None:
    """Its successor may have begun, and would take the mark for one against itself."""
    watchdog = SupervisorWatchdog(tmp_path / "mark")
    watchdog.end()
    report(watchdog, 10, answered=False)
    assert not (tmp_path / "mark").exists()
    assert events == []


def test_what_cannot_be_marked_is_logged(tmp_path: Path, events: list[str]) -> None:
    for mark, names in (
        (tmp_path / "absent" / "mark", ["supervisor_silent", "mark_not_kept"]),
        (None, ["supervisor_silent"]),
    ):
        watchdog = SupervisorWatchdog(mark)
        report(watchdog, 5, answered=False)
        report(watchdog, 6, answered=True)
        assert events == [*names, "supervisor_heard"]
        events.clear()
