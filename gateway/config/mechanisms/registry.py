"""The mechanisms there are: the one list that a new one is added to."""

from typing import Annotated, get_args

from pydantic import Field

from gateway.config.mechanisms.accept_section import AcceptVersion
from gateway.config.mechanisms.content_type_section import ContentTypeVersion
from gateway.config.mechanisms.header_section import HeaderVersion
from gateway.config.mechanisms.host_section import HostVersion
from gateway.config.mechanisms.path_section import PathVersion
from gateway.config.mechanisms.query_section import QueryVersion

ReaderConfig = Annotated[
    PathVersion | QueryVersion | HeaderVersion | AcceptVersion | HostVersion | ContentTypeVersion,
    Field(discriminator="in_"),
]


def mechanism_names() -> list[str]:
    """Return what `in` may be."""
    models = get_args(get_args(ReaderConfig)[0])
    return [get_args(model.model_fields["in_"].annotation)[0] for model in models]
