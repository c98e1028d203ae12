"""Settings of a process from environment variables, apart from gateway.yaml."""

import re
import socket
from collections.abc import Container, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, ValidationError

from gateway.base.mistakes import printable

_PREFIX = "GATEWAY_"
# Variables that Kubernetes and Docker links set for a service named `gateway` or `gateway-…`. They
# are recognized by name, or by value, since `GATEWAY_PORT` is also a setting.
_LINK = re.compile(
    r"\w+(_SERVICE_(HOST|PORT(_\w+)?)=|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?=|_ENV_|_NAME=/"
    r"|=(tcp|udp|sctp)://)"
)


class SettingError(ValueError):
    """A variable has an invalid value; the message has its name, its value and the valid values."""


class Settings(BaseModel, frozen=True):
    """The addresses of the gateway, its configuration file, and the settings of commands.

    A field's `description` completes the phrase "must be ...".
    """

    host: str = Field(default="127.0.0.1", min_length=1, description="an address or a host name")
    """The address or host name on which `python -m gateway` listens."""
    port: int = Field(
        default=8080, ge=0, le=65535, description="a whole number from 0 (any free port) to 65535"
    )
    """The port on which `python -m gateway` listens; 0 selects a free port."""
    admin_host: str = Field(
        default="127.0.0.1", min_length=1, description="an address or a host name"
    )
    """The address or host name of the admin port. Commands also connect to it."""
    admin_port: int = Field(
        default=8090, ge=0, le=65535, description="a whole number from 0 (any free port) to 65535"
    )
    """The admin port. Commands also connect to it. 0 selects a free port."""
    admin_hosts: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._, -]*$",
        description="host names of the admin port with commas between them",
    )
    """Further host names of the admin port, separated by commas."""
    admin_token: str = Field(default="", description="a token of the admin port")
    """The token that commands send to the admin port."""
    admin_token_file: Path | None = Field(
        default=None, description="the path of a file with a token of the admin port"
    )
    """The file that contains this token. GATEWAY_ADMIN_TOKEN takes precedence."""
    admin_ca: str = Field(
        default="",
        description="the path of a file with the certificates of authorities, or 'system'",
    )
    """The certificate authorities that commands trust, which makes them use HTTPS: a file, or
    `system`. Without it, commands use HTTP."""
    config: Path = Field(default=Path("gateway.yaml"), description="the path of gateway.yaml")
    """The path of the configuration file."""
    workers: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="a whole number of processes from 1 to 256",
    )
    """The number of worker processes. It overrides `workers` in the configuration."""
    replica: str = Field(
        default_factory=lambda: socket.gethostname()[:63],
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:-]{0,62})$",
        description="a name of up to 63 letters, digits and the characters ._:-",
    )
    """The name of the gateway in a fleet. The default is the host name of the machine."""
    overrides_file: Path = Field(
        default=Path("gateway-overrides.json"), description="the path of a file"
    )
    """The file in which a replica stores the overrides, so that it can start while the database is
    unreachable."""
    grace: float = Field(
        default=10.0,
        ge=0,
        le=86_400,
        description="a number of seconds from 0 to 86400",
    )
    """The longest time that a shutdown waits for responses, in seconds."""
    shadow_load: float = Field(
        default=0.8, ge=0, le=1, description="a share of a processor from 0 to 1"
    )
    """The processor load above which a worker pauses shadows, from 0 to 1; with 1, never."""

    docs: str = Field(
        default="",
        pattern=r"^https?://[!#-;=?-Z\[\]_a-z~]+/$",
        description="a URL that ends with a slash",
    )
    """The URL of your copy of the documentation. Without it, the page of the admin port names the
    files in `docs/` and does not link to them."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; an unset or empty variable leaves the default."""
        variables = {field: _PREFIX + field.upper() for field in cls.model_fields}
        found = {
            field: environment[name] for field, name in variables.items() if environment.get(name)
        }
        try:
            return cls.model_validate(found)
        except ValidationError as invalid:
            field = str(invalid.errors()[0]["loc"][0])
            right = cls.model_fields[field].description
            linked = _LINK.match(f"{variables[field]}={found[field]}")
            raise SettingError(
                f"{variables[field]}={found[field]!r}: must be {right}"
                + ("; Kubernetes set it: write enableServiceLinks: false" if linked else "")
            ) from None


def unknown_variables(environment: Mapping[str, str], used: Container[str]) -> dict[str, str]:
    """Return the variables that begin like settings but have no effect, each with a hint."""
    fields = [field.upper() for field in Settings.model_fields]
    hints = {}
    for name, value in environment.items():
        field = name.removeprefix(_PREFIX)
        if field == name or field in fields or name in used or _LINK.match(f"{name}={value}"):
            continue
        known = [_PREFIX + near for near in get_close_matches(field, fields, n=1) or fields]
        hint = f"did you mean {known[0]}?" if len(known) == 1 else f"known: {', '.join(known)}"
        hints[printable(name)] = (
            f"no setting has this name, and the configuration does not use it; {hint}"
        )
    return hints
