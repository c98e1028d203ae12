"""What the environment may set."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Self

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from . import DEFAULT_PORT, PROGRAM

Part = Annotated[str, StringConstraints(strip_whitespace=True)]

# How alike two names are, up to 1, of which one is taken for the other misspelt; what Kubernetes
# sets for a Service, such as X_SERVICE_PORT beside X_PORT, is less so, or has such a value.
NEAR = 0.85
LINK = ("tcp://", "udp://", "sctp://")


class SettingError(ValueError):
    """A variable is not usable; the text names it, its value and what would be right."""


class Settings(BaseModel, frozen=True):
    """How to serve, and whom. A field's description completes "must be ..."."""

    host: str = Field("127.0.0.1", min_length=1, description="an address or a host name")
    port: int = Field(
        DEFAULT_PORT, ge=0, le=65535, description="a whole number from 0 (any free port) to 65535"
    )
    grace: float = Field(
        10, gt=0, allow_inf_nan=False, description="a number of seconds greater than 0"
    )
    first_name: Part = Field("Bob", description="text in UTF-8")
    last_name: Part = Field("Charlie", description="text in UTF-8")

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Return the variable of each field.

        Those of the person's parts start with PERSON, those of the rest with the program.
        """
        return {
            field: f"{'PERSON' if field.endswith('_name') else PROGRAM.upper()}_{field.upper()}"
            for field in cls.model_fields
        }

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
            right = cls.model_fields[field].description
            linked = "; Kubernetes set it: write enableServiceLinks: false"
            hint = linked if field == "port" and found[field].startswith(LINK) else ""
            said = f"{variables[field]}={found[field]!r}: must be {right}{hint}"
            raise SettingError(said) from None


def misspelt(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set nothing, each with the name that was probably meant."""
    known = Settings.variables().values()
    return {
        name: near
        for name, value in environment.items()
        if name not in known and name.startswith((f"{PROGRAM.upper()}_", "PERSON_"))
        if not value.startswith(LINK)
        for near in get_close_matches(name, known, n=1, cutoff=NEAR)
    }
