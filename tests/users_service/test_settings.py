"""Settings from environment variables, and the errors for invalid values."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from users_service.settings import Settings


def test_settings_without_variables_have_their_defaults() -> None:
    settings = Settings.from_environment({"PORT": "1", "USERS_OTHER": "x"})
    assert settings.database_url.render_as_string() == "sqlite+aiosqlite:///users.db"
    assert settings.model_dump(exclude={"database_url"}) == {
        "host": "127.0.0.1",
        "port": 8003,
        "grace": 10,
        "max_body": 65536,
        "body_timeout": 30,
        "max_depth": 64,
        "timezone": UTC,
        "database_timeout": 5,
    }


def test_every_setting_can_be_set_by_its_variable() -> None:
    settings = Settings.from_environment(
        {
            "USERS_HOST": "::1",
            "USERS_PORT": "0",
            "USERS_GRACE": "0.5",
            "USERS_MAX_BODY": "10",
            "USERS_BODY_TIMEOUT": "1",
            "USERS_MAX_DEPTH": "500",
            "USERS_TIMEZONE": "Europe/Berlin",
            "USERS_DATABASE_URL": "sqlite+aiosqlite:////data/u.db",
            "USERS_DATABASE_TIMEOUT": "2",
        }
    )
    assert settings.database_url.database == "/data/u.db"
    assert settings.model_dump(exclude={"database_url"}) == {
        "host": "::1",
        "port": 0,
        "grace": 0.5,
        "max_body": 10,
        "body_timeout": 1,
        "max_depth": 500,
        "timezone": ZoneInfo("Europe/Berlin"),
        "database_timeout": 2,
    }


@pytest.mark.parametrize(
    ("variable", "values", "right"),
    [
        ("USERS_HOST", [""], "an address or a host name"),
        ("USERS_PORT", ["abc", "", "-1", "65536", "80.5"], "a whole number from 0"),
        ("USERS_GRACE", ["0", "-1", "inf", "nan", "soon"], "a number of seconds"),
        ("USERS_MAX_BODY", ["0", "64k"], "a number of bytes"),
        ("USERS_BODY_TIMEOUT", ["0", "nan"], "a number of seconds"),
        ("USERS_MAX_DEPTH", ["0", "501"], "a depth from 1 to 500"),
        ("USERS_TIMEZONE", ["", "Mars/Base", "Europe", "../UTC", "/etc"], "IANA name"),
        ("USERS_DATABASE_TIMEOUT", ["0", "inf"], "a number of seconds"),
    ],
)
def test_the_error_for_a_wrong_value_describes_valid_values(
    variable: str, values: list[str], right: str
) -> None:
    for value in values:
        with pytest.raises(ValueError, match=f"{variable}={value!r}: must be .*{right}"):
            Settings.from_environment({variable: value})


@pytest.mark.parametrize(
    "url",
    [
        *("", "users.db", "postgresql+nodriver://bob:s3cret@host/users", "sqlite:///s3cret.db"),
        *("sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:"),
        "sqlite+aiosqlite:///s3cret.db?mode=memory&uri=true",
        "sqlite+aiosqlite:///s3cret.db?timeout=soon",
        "sqlite+aiosqlite://bob:s3cret@host/users.db",
        "sqlite+aiosqlite://bob:s3cret@host:port/users.db",
        "postgresql://bob:s3@cret/1@host/users",
    ],
)
def test_a_wrong_database_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="USERS_DATABASE_URL: must be sqlite") as caught:
        Settings.from_environment({"USERS_DATABASE_URL": url})
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_utc_needs_no_time_zone_database() -> None:
    assert Settings.from_environment({"USERS_TIMEZONE": "UTC"}).timezone is UTC


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("postgresql://ann:s3cret@db/users", {}),
        ("postgres://ann:s3cret@db/users?sslmode=require", {"ssl": "require"}),
        ("postgresql+asyncpg://ann:s3cret@db/users?ssl=prefer", {"ssl": "prefer"}),
    ],
)
def test_a_postgresql_url_gets_the_asyncio_driver(url: str, options: dict[str, str]) -> None:
    found = Settings.from_environment({"USERS_DATABASE_URL": url}).database_url
    assert (found.drivername, found.database) == ("postgresql+asyncpg", "users")
    assert dict(found.query) == options
    assert "s3cret" not in repr(found)
