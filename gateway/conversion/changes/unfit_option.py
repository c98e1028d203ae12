"""`unfit` in gateway.yaml: what happens to values that a change cannot convert."""

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from gateway.base.model import SectionModel
from gateway.conversion.unfit import Unfit, UnfitPolicy

_Choice = Literal["refuse", "keep", "omit"]


class UnfitByMessage(SectionModel):
    """What happens to unfit values, separately for requests and responses."""

    requests: _Choice = "refuse"
    """What happens in requests: `refuse`, `keep` or `omit`. The default is refuse."""
    responses: _Choice = "refuse"
    """What happens in responses: `refuse`, `keep` or `omit`. The default is refuse."""


def _form(value: object) -> str:
    return "for all messages" if isinstance(value, str) else "by message"


UnfitOption = Annotated[
    Annotated[_Choice, Tag("for all messages")] | Annotated[UnfitByMessage, Tag("by message")],
    Discriminator(_form),
]


def policy_of(option: _Choice | UnfitByMessage, name: str) -> UnfitPolicy:
    if isinstance(option, str):
        return UnfitPolicy(Unfit(option), Unfit(option), name)
    return UnfitPolicy(Unfit(option.requests), Unfit(option.responses), name)
