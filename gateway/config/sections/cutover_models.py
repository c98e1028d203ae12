"""The models of what moves clients from one version's service to another: shadow and cutover."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.shape import (
    DURATION,
    FACTOR,
    SHARE,
    Bytes,
    FieldName,
    Method,
    Percent,
    PositiveInt,
    SectionModel,
    Some,
)

Share = Annotated[str, Field(pattern=SHARE)]
Factor = Annotated[str, Field(pattern=FACTOR)]
Duration = Annotated[str, Field(pattern=DURATION)]


class ShadowConfig(SectionModel):
    """Another version's service is asked as well, in the background, and its answer compared."""

    via: str
    """The version whose service is asked, through the conversions between the two."""
    percent: Percent = 100.0
    """Of the requests are asked once more."""
    ignore: tuple[str, ...] = ()
    """Known differences: places in the body, as JSON Pointers with `*` for every
    element of an array and every member of an object."""
    headers: tuple[FieldName, ...] = ()
    """The response headers to compare."""
    methods: Some[Method] = ("GET",)
    """The methods that may be asked again; HEAD comes with GET."""
    noise: bool = True
    """Whether the own service is asked once more, to tell apart what is never twice the same."""
    samples: Literal["redacted", "plain"] = "redacted"
    """Whether samples of differences show types and sizes, or the values."""
    body: Bytes = 64 * 1024
    """Of a larger body, in bytes, nothing is compared."""


class GatesConfig(SectionModel):
    """How good the new way has to be, and what happens if it is not."""

    differences: Share | None = None
    """The share of the compared answers that may differ, such as 0.1%."""
    errors: Share | None = None
    """By how much the share of failed requests may exceed that of the old way, such as 1%."""
    latency: Factor | None = None
    """How many times as long as the old way a request may take on average, such as 1.5x."""
    window: Duration = "5m"
    """How far back the evidence reaches: 30s, 5m, 1h."""
    minimum: PositiveInt = 100
    """How many answers there must be before a share of them says anything."""
    then: Literal["roll_back", "hold"] = "roll_back"
    """What happens when one of them is passed."""


class CutoverConfig(SectionModel):
    """A share of the clients is served via another version already."""

    via: str
    """The version whose service answers them, through the conversions between the two."""
    percent: Percent | None = None
    """How many of them."""
    steps: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = None
    """Percentages to climb one after the other, instead of one."""
    every: Duration = "10m"
    """How long each step lasts at least."""
    sticky_by: Literal["client", "request"] = "client"
    """What goes the new way as a whole: all requests of a client, or each by itself."""
    gates: GatesConfig | None = None
    """What holds the cutover, or rolls it back."""
