"""Settings: what the environment sets of a process, beside the rules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, ValidationError


class SettingError(ValueError):
    """A variable cannot be used; the text names it, its value and what would be right."""


class Settings(BaseModel, frozen=True):
    """Where to listen, and which rules to load. A field's description completes "must be ..."."""

    host: str = Field(default="127.0.0.1", min_length=1, description="an address or a host name")
    port: int = Field(
        default=8080, ge=0, le=65535, description="a whole number from 0 (any free port) to 65535"
    )
    admin_host: str = Field(
        default="127.0.0.1", min_length=1, description="an address or a host name"
    )
    admin_port: int = Field(
        default=8090, ge=0, le=65535, description="a whole number from 0 (any free port) to 65535"
    )
    admin_hosts: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._, -]*$",
        description="host names of the admin port with commas between them",
    )
    config: Path = Field(default=Path("gateway.yaml"), description="the path of gateway.yaml")
    workers: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="a whole number of processes from 1 to 256",
    )
    grace: float = Field(
        default=10.0,
        ge=0,
        le=86_400,
        description="a number of seconds from 0 to 86400",
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; a variable that is absent or empty leaves its default.

        Raises:
            SettingError: a value cannot be used.
        """
        variables = {field: f"GATEWAY_{field.upper()}" for field in cls.model_fields}
        found = {
            field: environment[name] for field, name in variables.items() if environment.get(name)
        }
        try:
            return cls.model_validate(found)
        except ValidationError as invalid:
            field = str(invalid.errors()[0]["loc"][0])
            right = cls.model_fields[field].description
            raise SettingError(f"{variables[field]}={found[field]!r}: must be {right}") from None
