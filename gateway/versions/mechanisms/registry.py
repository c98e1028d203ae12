"""The mechanisms there are: the one list that a new one is added to."""

from typing import Annotated, get_args

from pydantic import Field

from gateway.versions.mechanisms.accept_section import AcceptVersion
from gateway.versions.mechanisms.content_type_section import ContentTypeVersion
from gateway.versions.mechanisms.header_section import HeaderVersion
from gateway.versions.mechanisms.host_section import HostVersion
from gateway.versions.mechanisms.path_section import PathVersion
from gateway.versions.mechanisms.query_section import QueryVersion

ReaderConfig = Annotated[
    PathVersion | QueryVersion | HeaderVersion | AcceptVersion | HostVersion | ContentTypeVersion,
    Field(discriminator="in_"),
]


def mechanism_names() -> list[str]:
    """Return what `in` may be."""
    models = get_args(get_args(ReaderConfig)[0])
    return [get_args(model.model_fields["in_"].annotation)[0] for model in models]
