"""Settings: what the environment sets of a process, beside the rules."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, ValidationError


class SettingError(ValueError):
    """A variable cannot be used; the text names it, its value and what would be right."""


class Settings(BaseModel, frozen=True):
    """Where to listen, which rules to load, and how commands ask the admin port.

    A field's description completes "must be ...".
    """

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
    admin_token: str = Field(default="", description="a token of the admin port")
    admin_token_file: Path | None = Field(
        default=None, description="the path of a file with a token of the admin port"
    )
    admin_ca: str = Field(
        default="",
        description="the path of a file with the certificates of authorities, or 'system'",
    )
    config: Path = Field(default=Path("gateway.yaml"), description="the path of gateway.yaml")
    workers: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="a whole number of processes from 1 to 256",
    )
    replica: str = Field(
        default_factory=lambda: socket.gethostname()[:63],
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:-]{0,62})$",
        description="a name of up to 63 letters, digits and the characters ._:-",
    )
    overrides_file: Path = Field(
        default=Path("gateway-overrides.json"), description="the path of a file"
    )
    grace: float = Field(
        default=10.0,
        ge=0,
        le=86_400,
        description="a number of seconds from 0 to 86400",
    )
    shadow_load: float = Field(
        default=0.8, ge=0, le=1, description="a share of a processor from 0 to 1"
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
