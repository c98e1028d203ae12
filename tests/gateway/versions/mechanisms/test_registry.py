"""The registry has a section for every mechanism that can choose a version."""

from gateway.versions.chosen_by import ChosenBy
from gateway.versions.mechanisms.registry import mechanism_names


def test_every_mechanism_can_be_declared() -> None:
    stand_ins = {ChosenBy.PIN, ChosenBy.DEFAULT, ChosenBy.NEWEST}
    assert mechanism_names() == [by.value for by in ChosenBy if by not in stand_ins]
