"""The setting `state`: memory, a file, or a database."""

import pytest

from tests.gateway.rules.rules import RULES, loaded, report

DATABASE = "postgresql://ann:s3cret@db:5432/state?sslmode=require"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", None),
        (" ", None),
        ("state.db", "state.db"),
        ("/var/lib/gateway/state.db", "/var/lib/gateway/state.db"),
        ("sqlite:///state.db", "state.db"),
        ("sqlite:////var/lib/a%20b.db", "/var/lib/a b.db"),
        (DATABASE, DATABASE),
        ("postgres://db/state", "postgres://db/state"),
    ],
)
def test_state_accepts_a_path_or_the_url_of_a_database(written: str, expected: str | None) -> None:
    assert loaded(f"state: '{written}'\n{RULES}").state == expected


@pytest.mark.parametrize(
    "written",
    [
        "mysql://ann:s3cret@db/state",
        "postgresql+asyncpg://ann:s3cret@db/state",
        "postgresql://ann:s3cret@db",
        "postgresql://ann:s3cret@db:x/state",
        "postgresql://ann:s3c@ret@db/state",
        "postgresql://ann:s3c/ret@db/state",
        "postgresql://ann:s3c@ret/1@db/state",
        "postgresql://ann:12/ret@db/state",
        "postgresql://ann:s3c#ret@db/state",
        "postgresql://ann:s3c?ret@db/state",
        "postgresql:///state",
        "postgresql:/ann:s3cret@db/state",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/state.db",
        "sqlite:///state.db?mode=ro",
    ],
)
def test_a_location_that_is_neither_a_file_nor_a_database_is_refused(written: str) -> None:
    for text, environment in ((written, {}), ("${STATE}", {"STATE": written})):
        (found,) = report(f"state: '{text}'\n{RULES}", **environment)
        advice = (
            "write a path, sqlite:///PATH, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with"
            " %40 for an @ in the password, %2F for a slash, %23 for a # and %3F for a ?"
        )
        if environment:  # the value of a variable is hidden everywhere in a message
            advice = advice.replace(written, "${STATE}")
        assert found == f"1:1: state: not a location of state; {advice}"


@pytest.mark.parametrize("written", [":memory:", "sqlite:///:memory:"])
def test_an_sqlite_memory_location_is_refused(written: str) -> None:
    (found,) = report(f"state: '{written}'\n{RULES}")
    assert found == "1:1: state: is not a file; omit state to keep it in memory"


@pytest.mark.parametrize(
    ("fleet", "seconds"),
    [("", 604_800), ("fleet: { forget_after: 90s }", 90), ("fleet: { forget_after: 2d }", 172_800)],
)
def test_forget_after_is_converted_to_seconds(fleet: str, seconds: float) -> None:
    assert loaded(f"{fleet}\n{RULES}").forget_after == seconds
