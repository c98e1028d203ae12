"""While a supervisor takes nothing more, there is a file for the next start."""

from pathlib import Path

from gateway.process.silence import Silence


def report(silence: Silence, times: int, *, answered: bool) -> None:
    for _ in range(times):
        silence.reported()
        if answered:
            silence.answered()


def test_it_is_marked_until_what_was_counted_is_taken(tmp_path: Path, events: list[str]) -> None:
    mark = tmp_path / "state.db.unheard"
    silence = Silence(mark)
    report(silence, 20, answered=True)
    report(silence, 2, answered=False)
    silence.answered()
    report(silence, 2, answered=False)
    assert not mark.exists()
    report(silence, 10, answered=False)
    assert mark.stat().st_mode & 0o777 == 0o600
    report(silence, 5, answered=True)
    report(silence, 2, answered=False)  # it stands still again
    report(silence, 5, answered=True)
    assert mark.exists()
    assert events == ["supervisor_silent"]
    report(silence, 1, answered=True)
    assert not mark.exists()
    assert events == ["supervisor_silent", "supervisor_heard"]


def test_answers_to_all_that_waited_are_one_sign(tmp_path: Path, events: list[str]) -> None:
    """They come at once when it wakes, and before it has handed anything in."""
    mark = tmp_path / "state.db.unheard"
    silence = Silence(mark)
    report(silence, 60, answered=False)
    for _ in range(60):
        silence.answered()
    assert mark.exists()
    report(silence, 6, answered=True)
    assert not mark.exists()


def test_one_that_has_ended_is_not_silent(tmp_path: Path, events: list[str]) -> None:
    """Its successor may have begun, and would take the mark for one against itself."""
    silence = Silence(tmp_path / "mark")
    silence.end()
    report(silence, 10, answered=False)
    assert not (tmp_path / "mark").exists()
    assert events == []


def test_what_cannot_be_marked_is_logged(tmp_path: Path, events: list[str]) -> None:
    for mark, names in (
        (tmp_path / "absent" / "mark", ["supervisor_silent", "mark_not_kept"]),
        (None, ["supervisor_silent"]),
    ):
        silence = Silence(mark)
        report(silence, 5, answered=False)
        report(silence, 6, answered=True)
        assert events == [*names, "supervisor_heard"]
        events.clear()
