"""`version: { in: accept, media_type: "application/vnd.example-v{version}+json" }`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.versions.mechanisms.accept_reader import AcceptReader
from gateway.versions.mechanisms.mechanism_config import OptionalMechanismConfig
from gateway.versions.mechanisms.media_type_text import parse_media_type
from gateway.versions.version import Version


class AcceptVersion(OptionalMechanismConfig):
    """The version is part of a media type in Accept."""

    in_: Annotated[Literal["accept"], Field(alias="in")]
    media_type: str
    """The media type, with `{version}` where the version stands."""
    response_type: Literal["service", "vendor"] = "service"
    """The Content-Type of JSON responses: that of the service (service), or the media type that
    was asked for (vendor)."""

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> AcceptReader | None:
        """Return the reader."""
        around = parse_media_type(self.media_type, versions, (*at, "media_type"), mistakes)
        vendor = self.response_type == "vendor"
        return None if around is None else AcceptReader(*around, names_response=vendor)
