"""`version: { in: content_type, media_type: "application/vnd.example-v{version}+json" }`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.versions.mechanisms.content_type_reader import ContentTypeReader
from gateway.versions.mechanisms.mechanism_config import OptionalMechanismConfig
from gateway.versions.mechanisms.media_type_text import parse_media_type
from gateway.versions.version import Version


class ContentTypeVersion(OptionalMechanismConfig):
    """The version is part of the media type of the request's body, in Content-Type."""

    in_: Annotated[Literal["content_type"], Field(alias="in")]
    media_type: str
    """The media type, with `{version}` where the version stands."""

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> ContentTypeReader | None:
        """Return the reader."""
        around = parse_media_type(self.media_type, versions, (*at, "media_type"), mistakes)
        return None if around is None else ContentTypeReader(*around)
