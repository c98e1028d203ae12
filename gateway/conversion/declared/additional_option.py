"""`additional` in gateway.yaml: what happens to parts that the older version's document lacks."""

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from gateway.base.model import SectionModel
from gateway.conversion.additional import Additional, AdditionalPolicy

_Choice = Literal["pass", "drop", "refuse"]


class AdditionalByMessage(SectionModel):
    """What happens to additional parts, separately for requests and responses."""

    requests: _Choice = "pass"
    """What happens in requests: `pass`, `drop` or `refuse`. The default is pass."""
    responses: _Choice = "pass"
    """What happens in responses: `pass`, `drop` or `refuse`. The default is pass."""


def _form(value: object) -> str:
    return "for all messages" if isinstance(value, str) else "by message"


AdditionalOption = Annotated[
    Annotated[_Choice, Tag("for all messages")] | Annotated[AdditionalByMessage, Tag("by message")],
    Discriminator(_form),
]


def additional_policy(option: _Choice | AdditionalByMessage, name: str) -> AdditionalPolicy:
    if isinstance(option, str):
        return AdditionalPolicy(Additional(option), Additional(option), name)
    return AdditionalPolicy(Additional(option.requests), Additional(option.responses), name)
