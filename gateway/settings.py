"""Settings: what belongs to the process and not to the rules, from the environment."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_PREFIX = "GATEWAY_"


class SettingError(Exception):
    """A variable that cannot be used; the text says which, its value, and what would be right."""


class Settings(BaseModel):
    """Where to listen, which rules to load, how long to finish; descriptions say what is right."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", min_length=1, description="an address or a host name")
    port: int = Field(default=8080, ge=0, le=65535, description="a port, or 0 for any that is free")
    admin_host: str = Field(
        default="127.0.0.1", min_length=1, description="an address or a host name"
    )
    admin_port: int = Field(
        default=8090, ge=0, le=65535, description="a port, or 0 for any that is free"
    )
    config: Path = Field(default=Path("gateway.yaml"), description="the path of gateway.yaml")
    workers: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="a number of processes from 1 to 256; without it, as gateway.yaml says",
    )
    grace: float = Field(
        default=10.0,
        ge=0,
        le=86_400,
        description="seconds to finish what is in flight when told to stop",
    )


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings that `GATEWAY_HOST`, `GATEWAY_PORT` and their like make.

    Raises:
        SettingError: a value cannot be used.
    """
    given = {
        name: environment[_PREFIX + name.upper()]
        for name in Settings.model_fields
        if environment.get(_PREFIX + name.upper())
    }
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        right = Settings.model_fields[name].description
        raise SettingError(
            f"{_PREFIX}{name.upper()} is {given[name]!r}; it must be {right}"
        ) from None
