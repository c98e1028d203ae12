"""The shape of an endpoint in gateway.yaml, and of the places in a request that name a version."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from gateway.config.shape import Bytes, FieldName, Method, SectionModel, Some


class PathVersion(SectionModel):
    """The version is the `{version}` of the path."""

    in_: Annotated[Literal["path"], Field(alias="in")]


class QueryVersion(SectionModel):
    """The version is a query parameter."""

    in_: Annotated[Literal["query"], Field(alias="in")]
    name: Annotated[str, Field(min_length=1)]
    """The name of the parameter, case-sensitive."""
    default: str | None = None
    """The version to serve when the request names none; without it, such a request is refused."""


class HeaderVersion(SectionModel):
    """The version is a request header."""

    in_: Annotated[Literal["header"], Field(alias="in")]
    name: FieldName
    """The name of the header, case-insensitive."""
    default: str | None = None
    """The version to serve when the request names none; without it, such a request is refused."""


class AcceptVersion(SectionModel):
    """The version is part of a media type in Accept."""

    in_: Annotated[Literal["accept"], Field(alias="in")]
    media_type: str
    """The media type, with `{version}` where the version stands."""
    default: str | None = None
    """The version to serve when the request names none; without it, such a request is refused."""


ReaderConfig = Annotated[
    PathVersion | QueryVersion | HeaderVersion | AcceptVersion, Field(discriminator="in_")
]


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


class EndpointConfig(SectionModel):
    """A public path of an API, and how a version is chosen there."""

    path: str
    """The public path; `{name}` captures a segment or a part of one, `{name*}` all that follows."""
    version: (
        Annotated[
            Annotated[ReaderConfig, Tag("one")] | Annotated[Some[ReaderConfig], Tag("several")],
            Discriminator(_one_or_several),
        ]
        | None
    ) = None
    """The place in a request that names the version, or a list of places. All that name one must
    name the same."""
    methods: Some[Method] | None = None
    """The methods that the endpoint accepts; HEAD is included with GET. Without it, all methods
    pass to the service."""
    upstream_path: str | None = None
    """The path that the service is asked for here. Without it, upstream_path of the API counts."""
    max_body: Bytes | None = None
    """The largest request body of the endpoint, in bytes. Without it, limits.body counts."""

    @property
    def readers(self) -> tuple[ReaderConfig, ...]:
        """Return the places that name the version, always as a tuple."""
        if self.version is None:
            return ()
        return self.version if isinstance(self.version, tuple) else (self.version,)
