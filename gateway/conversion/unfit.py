"""Unfit values: values that a change cannot convert, and what happens to them."""

from collections.abc import Callable
from contextvars import ContextVar
from enum import StrEnum
from typing import NamedTuple, TypeVar


class Unfit(StrEnum):
    REFUSE = "refuse"
    KEEP = "keep"
    OMIT = "omit"


class UnfitPolicy(NamedTuple):
    """The treatment of unfit values of a change, in requests and in responses.

    Attributes:
        name: The change, as metrics and the log name it.
    """

    requests: Unfit = Unfit.REFUSE
    responses: Unfit = Unfit.REFUSE
    name: str = ""

    @property
    def refuses(self) -> bool:
        return self.requests is self.responses is Unfit.REFUSE

    def of(self, of_request: bool) -> Unfit:
        return self.requests if of_request else self.responses


REFUSE_UNFIT = UnfitPolicy()


class UnfitKey(NamedTuple):
    change: str
    message: str
    result: str


class UnfitValues:
    """The unfit values of one request and its response that were kept or omitted.

    Parts that `additional` drops count as unfit values. `sample` describes the first of them all.
    """

    __slots__ = ("counts", "current", "sample")

    def __init__(self) -> None:
        self.counts: dict[UnfitKey, int] = {}
        self.sample = ""
        self.current: UnfitKey | None = None

    def add(self, reason: str) -> None:
        if self.current is not None:
            self.note(self.current, reason)

    def note(self, key: UnfitKey, reason: str, count: int = 1) -> None:
        self.counts[key] = self.counts.get(key, 0) + count
        self.sample = self.sample or f"{key.change}: {reason}"


UNFIT: ContextVar[UnfitValues | None] = ContextVar("unfit", default=None)
"""The unfit values of the message that the current task converts; None if they are not counted."""


def count_unfit(reason: str) -> None:
    values = UNFIT.get()
    if values is not None:
        values.add(reason)


T = TypeVar("T")


def counting(policy: UnfitPolicy, of_request: bool, call: Callable[..., T]) -> Callable[..., T]:
    key = UnfitKey(policy.name, "request" if of_request else "response", policy.of(of_request))

    def counted(*arguments: object) -> T:
        values = UNFIT.get()
        if values is None:
            return call(*arguments)
        values.current = key
        try:
            return call(*arguments)
        finally:
            values.current = None

    return counted
