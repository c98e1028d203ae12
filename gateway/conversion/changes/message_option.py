"""`unfit` and `additional`: one choice for all messages, or one for requests and for responses."""

from typing import Literal

from gateway.base.model import SectionModel, TextOr
from gateway.conversion.additional import Additional, AdditionalPolicy
from gateway.conversion.unfit import Unfit, UnfitPolicy

_Unfit = Literal["refuse", "keep", "omit"]
_Additional = Literal["pass", "drop", "refuse"]


class UnfitByMessage(SectionModel):
    """The treatment of unfit values, separately for requests and responses."""

    requests: _Unfit = "refuse"
    """The treatment of unfit values in requests: `refuse`, `keep` or `omit`. The default is refuse.
    """
    responses: _Unfit = "refuse"
    """The treatment of unfit values in responses: `refuse`, `keep` or `omit`. The default is
    refuse."""


class AdditionalByMessage(SectionModel):
    """The treatment of additional parts, separately for requests and responses."""

    requests: _Additional = "pass"
    """The treatment of additional parts in requests: `pass`, `drop` or `refuse`. The default is
    pass."""
    responses: _Additional = "pass"
    """The treatment of additional parts in responses: `pass`, `drop` or `refuse`. The default is
    pass."""


UnfitOption = TextOr[_Unfit, UnfitByMessage]
AdditionalOption = TextOr[_Additional, AdditionalByMessage]


def unfit_policy(option: UnfitOption, name: str) -> UnfitPolicy:
    requests, responses = map(Unfit, _choices(option))
    return UnfitPolicy(requests, responses, name)


def additional_policy(option: AdditionalOption, name: str) -> AdditionalPolicy:
    requests, responses = map(Additional, _choices(option))
    return AdditionalPolicy(requests, responses, name)


def _choices(option: str | UnfitByMessage | AdditionalByMessage) -> tuple[str, str]:
    return (option, option) if isinstance(option, str) else (option.requests, option.responses)
