"""What the environment may set."""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from difflib import get_close_matches
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from sqlalchemy import URL

from . import DEFAULT_PORT, PROGRAM, engine

PREFIX = PROGRAM.removesuffix("_service").upper()
# How alike two names are, up to 1, of which one is taken for the other misspelt; what Kubernetes
# sets for a Service, such as X_SERVICE_PORT beside X_PORT, is less so, or has such a value.
NEAR = 0.85
LINK = ("tcp://", "udp://", "sctp://")


class SettingError(ValueError):
    """A variable is not usable; the text names it, its value and what would be right."""


def _zone(name: object) -> tzinfo:
    if name == "UTC":  # needs no time zone database, so the default works on any machine
        return UTC
    try:
        return ZoneInfo(str(name))
    except (KeyError, OSError) as error:  # unknown; or the name of a folder of the database
        raise ValueError(name) from error


class Settings(BaseModel, frozen=True, arbitrary_types_allowed=True):
    """How to serve, and where users are kept. A field's description completes "must be ..."."""

    host: str = Field("127.0.0.1", min_length=1, description="an address or a host name")
    port: int = Field(
        DEFAULT_PORT, ge=0, le=65535, description="a whole number from 0 (any free port) to 65535"
    )
    grace: float = Field(
        10, gt=0, allow_inf_nan=False, description="a number of seconds greater than 0"
    )
    max_body: int = Field(65536, ge=1, description="a number of bytes greater than 0")
    body_timeout: float = Field(
        30, gt=0, allow_inf_nan=False, description="a number of seconds greater than 0"
    )
    max_depth: int = Field(
        64, ge=1, le=500, description="how deep arrays and objects may nest, from 1 to 500"
    )
    timezone: Annotated[tzinfo, BeforeValidator(_zone)] = Field(
        UTC, description="the IANA name of a time zone, such as Europe/Berlin"
    )
    database_url: Annotated[URL, BeforeValidator(engine.database_url)] = Field(
        engine.database_url("sqlite+aiosqlite:///users.db"),
        repr=False,
        description="an SQLAlchemy URL of an installed asyncio driver and a durable database, "
        "such as sqlite+aiosqlite:///users.db or postgresql://USER:PASSWORD@HOST/DATABASE",
    )
    database_timeout: float = Field(
        5, gt=0, allow_inf_nan=False, description="a number of seconds greater than 0"
    )

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Return the variable of each field."""
        return {field: f"{PREFIX}_{field.upper()}" for field in cls.model_fields}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; a variable that is absent leaves its default.

        Raises:
            SettingError: a value cannot be used.
        """
        variables = cls.variables()
        found = {
            field: environment[name] for field, name in variables.items() if name in environment
        }
        try:
            return cls.model_validate(found)
        except ValidationError as invalid:
            field = str(invalid.errors()[0]["loc"][0])
            # The value of a database URL may hold a password, so it is not repeated.
            value = "" if field == "database_url" else f"={found[field]!r}"
            right = cls.model_fields[field].description
            linked = "; Kubernetes set it: write enableServiceLinks: false"
            hint = linked if field == "port" and found[field].startswith(LINK) else ""
            raise SettingError(f"{variables[field]}{value}: must be {right}{hint}") from None


def misspelt(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set nothing, each with the name that was probably meant."""
    known = Settings.variables().values()
    return {
        name: near
        for name, value in environment.items()
        if name not in known and name.startswith(f"{PREFIX}_")
        if not value.startswith(LINK)
        for near in get_close_matches(name, known, n=1, cutoff=NEAR)
    }
