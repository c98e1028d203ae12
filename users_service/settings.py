"""Settings from environment variables."""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

POSTGRESQL = "postgresql+asyncpg"
DATABASE_URL = "sqlite+aiosqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE"
SECONDS = "a number of seconds greater than 0"
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, description=SECONDS)]


def _time_zone(name: object) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(str(name))  # UTC needs no time zone database
    except (KeyError, OSError) as error:  # unknown, or a folder of the time zone database
        raise ValueError("unknown") from error


def _database_url(text: object) -> URL:
    try:
        url = make_url(str(text))
    except ArgumentError as error:
        raise ValueError("no URL") from error
    if url.drivername in ("postgres", "postgresql", POSTGRESQL):
        query = {"ssl" if name == "sslmode" else name: value for name, value in url.query.items()}
        if "@" not in f"{url.database}":  # "@" there means an unescaped slash in the password
            return url.set(drivername=POSTGRESQL, query=query)
    durable = url.database not in (None, "", ":memory:") and not (url.query or url.host)
    if url.drivername == "sqlite+aiosqlite" and durable:
        return url
    raise ValueError("not a durable database")


class Settings(BaseModel, frozen=True, arbitrary_types_allowed=True):
    """The settings, one field for each environment variable.

    The description of a field completes the error message "must be ...".
    """

    host: str = Field("127.0.0.1", min_length=1, description="an address or a host name")
    port: int = Field(8003, ge=0, le=65535, description="a whole number from 0 to 65535")
    grace: Seconds = 10
    max_body: int = Field(65536, ge=1, description="a number of bytes greater than 0")
    body_timeout: Seconds = 30
    max_depth: int = Field(64, ge=1, le=500, description="a depth from 1 to 500")
    timezone: Annotated[tzinfo, BeforeValidator(_time_zone)] = Field(
        UTC, description="the IANA name of a time zone, such as Europe/Berlin"
    )
    database_url: Annotated[URL, BeforeValidator(_database_url)] = Field(
        make_url("sqlite+aiosqlite:///users.db"), description=DATABASE_URL
    )
    database_timeout: Seconds = 5

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; raise ValueError for an invalid value."""
        names = {field: f"USERS_{field.upper()}" for field in cls.model_fields}
        given = {field: environment[name] for field, name in names.items() if name in environment}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            field = str(error.errors()[0]["loc"][0])
            value = "" if field == "database_url" else f"={given[field]!r}"  # may hold a password
            right = cls.model_fields[field].description
            raise ValueError(f"{names[field]}{value}: must be {right}") from None
