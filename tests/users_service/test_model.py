"""The contract's constraints of a user."""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from users_service.model import (
    BIRTH_DATE_FORMAT,
    BIRTH_DATE_PAST,
    NAME_LENGTH,
    NAME_NULL,
    NewUser,
    User,
)
from users_service.violations import violations

TODAY = date(2024, 2, 29)


def _make(**fields: Any) -> NewUser | dict[str, str]:
    value = {"name": "Bob", "birthDate": "2000-01-01"} | fields
    try:
        return NewUser.model_validate(value, context={"today": TODAY})
    except ValidationError as error:
        return violations(error, "user")


def test_the_messages_are_the_contracts() -> None:
    assert NAME_LENGTH == "Name must be more than 2 characters."
    assert BIRTH_DATE_PAST == "Birth date should be in past."


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_a_name_has_3_to_20_code_points_whichever_these_are(name: str) -> None:
    made = _make(name=name)
    if 3 <= len(name) <= 20:
        assert isinstance(made, NewUser)
        assert made.name == name
    else:
        assert made == {"name": NAME_LENGTH}


@given(st.dates())
def test_a_birth_date_is_any_day_before_today(day: date) -> None:
    made = _make(birthDate=day.isoformat())
    if day < TODAY:
        assert isinstance(made, NewUser)
        assert made.birth_date == day
    else:
        assert made == {"birthDate": BIRTH_DATE_PAST}


@pytest.mark.parametrize(("days", "past"), [(-1, True), (0, False), (1, False)])
def test_today_is_not_past(days: int, past: bool) -> None:
    made = _make(birthDate=(TODAY + timedelta(days)).isoformat())
    assert isinstance(made, NewUser) == past


@given(st.one_of(st.text(), st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), st.integers()))
def test_nothing_else_is_a_birth_date(value: object) -> None:
    made = _make(birthDate=value)
    if isinstance(made, NewUser):
        assert made.birth_date.isoformat() == value
    else:
        assert made in ({"birthDate": BIRTH_DATE_FORMAT}, {"birthDate": BIRTH_DATE_PAST})


def test_both_fields_can_be_violated_at_once() -> None:
    assert _make(name="Bo", birthDate="2024-02-29") == {
        "name": NAME_LENGTH,
        "birthDate": BIRTH_DATE_PAST,
    }


def test_no_name_has_a_null_character() -> None:
    """PostgreSQL could not store it, and both engines answer alike."""
    assert _make(name="Bob\0") == {"name": NAME_NULL}
    assert _make(name="\0") == {"name": NAME_LENGTH}


def test_id_and_unknown_fields_are_ignored() -> None:
    assert _make(id="no number", admin=True, birth_date=1) == _make()


def test_a_user_is_written_with_the_names_of_the_contract() -> None:
    user = User(id=1, name="Bób\0", birth_date=date(1, 2, 3))
    expected = '{"id":1,"name":"Bób\\u0000","birthDate":"0001-02-03"}'
    assert user.model_dump_json(by_alias=True) == expected
