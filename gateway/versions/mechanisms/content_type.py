"""`version: { in: content_type, media_type: "application/vnd.example-v{version}+json" }`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.request import RequestHead
from gateway.versions.mechanisms.media_type import MediaTypeReader, parse_media_type, version_in
from gateway.versions.mechanisms.media_type_parameter import (
    ParameterReader,
    names_parameter,
    parse_parameter,
    parsed_ranges,
)
from gateway.versions.reader import OptionalMechanism, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class ContentTypeReader(MediaTypeReader):
    """Reads the version from the Content-Type header, which it compares with a media type pattern.

    The field has one media type without a weight, so several lines must agree (RFC 9110, sections
    5.3 and 8.3). It does not affect the media type of the response.
    """

    mechanism = "content_type"
    # The media type of the request body is not supported (RFC 9110, section 15.5.16).
    refusal_status = 415
    vary = ("Content-Type",)

    @property
    def place(self) -> str:
        return f"the header Content-Type, as {self.forms}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions in the media type of the body; parameters are ignored.

        A media type that does not match the pattern names no version. Without a body, the field has
        no meaning (RFC 9110, section 8.3) and is ignored.
        """
        lines = head.fields.getall("Content-Type", ())
        if not lines or not _has_body(head):
            return ()
        essences = (line.partition(";")[0].strip(" \t").lower() for line in lines)
        found = (version_in(essence, self.patterns) for essence in essences)
        return tuple(named[0] for named in found if named is not None)

    def address(self, version: Version) -> VersionAddress:
        return VersionAddress(header=f"Content-Type: {self.media_type(version)}")


@dataclass(frozen=True, slots=True)
class ContentTypeParameterReader(ParameterReader):
    header = "Content-Type"
    mechanism = "content_type"
    # As for a version in the subtype.
    refusal_status = 415

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        lines = head.fields.getall("Content-Type", ())
        if not lines or not _has_body(head):
            return ()
        return tuple(version for version, _ in self.versions(parsed_ranges(*lines)))

    def address(self, version: Version) -> VersionAddress:
        return VersionAddress(header=f"Content-Type: {self.media_type(version)}")


def _has_body(head: RequestHead) -> bool:
    # Either field announces a body (RFC 9112, section 6). An empty body does not count.
    if head.fields.getall("Transfer-Encoding", ()):
        return True
    return any(length.strip("0 \t") for length in head.fields.getall("Content-Length", ()))


class ContentTypeVersion(OptionalMechanism):
    """The version is part of the media type of the request body, in Content-Type."""

    in_: Annotated[Literal["content_type"], Field(alias="in")]
    media_type: str
    """The media type with `{version}` in place of the version, also as the value of a parameter:
    `application/json; v={version}`."""

    def compile(
        self, versions: Mapping[str, Version], mistakes: Mistakes
    ) -> ContentTypeReader | ContentTypeParameterReader | None:
        if names_parameter(self.media_type):
            place = parse_parameter(self.media_type, mistakes.below("media_type"))
            return None if place is None else ContentTypeParameterReader(*place)
        around = parse_media_type(self.media_type, versions, mistakes.below("media_type"))
        return None if around is None else ContentTypeReader(*around)
