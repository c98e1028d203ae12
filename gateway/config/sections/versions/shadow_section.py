"""`shadow` in gateway.yaml: which requests are sent once more via another version, to compare."""

from functools import partial
from typing import Literal

from gateway.config.shape import Bytes, FieldName, Method, Percent, SectionModel, Some
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.cutover.differences import Ignored, parse_ignored
from gateway.core.cutover.shadow import Shadow
from gateway.core.overrides import VersionKey


class ShadowConfig(SectionModel):
    """Requests are sent once more via another version, in the background, to compare answers."""

    via: str
    """The version whose service gets the shadow requests, through the conversions between the
    two."""
    percent: Percent = 100.0
    """The percentage of requests that is sent once more. The default is 100."""
    ignore: tuple[str, ...] = ()
    """The places in the body that may differ, as JSON Pointers, with `*` for every element of an
    array and every member of an object. By default, there are none."""
    headers: tuple[FieldName, ...] = ()
    """The response headers that are compared. By default, there are none."""
    methods: Some[Method] = ("GET",)
    """The methods of the requests that are sent once more; HEAD is included with GET. The default
    is GET."""
    noise: bool = True
    """Whether the version's own service is asked once more as well, to find the values that
    differ between any two answers. The default is true."""
    samples: Literal["redacted", "plain"] = "redacted"
    """Whether samples of differences show types and sizes (redacted) or values (plain). The
    default is redacted."""
    body: Bytes = 64 * 1024
    """The largest body that is compared, in bytes. The default is 65536."""


def build_shadow(key: VersionKey, config: ShadowConfig, at: Location, mistakes: Mistakes) -> Shadow:
    """Return the shadow of a version; mistakes go to `mistakes`.

    Args:
        key: the API and the version.
        config: the shadow as configured.
        at: the location of the shadow.
        mistakes: collects the mistakes.
    """
    places = (
        mistakes.attempt(partial(parse_ignored, text), *at, "ignore", index)
        for index, text in enumerate(config.ignore)
    )
    methods = {*config.methods, *(("HEAD",) if "GET" in config.methods else ())}
    return Shadow(
        key,
        config.percent,
        Ignored(frozenset(place for place in places if place is not None)),
        tuple(dict.fromkeys(name.lower() for name in config.headers)),
        frozenset(methods),
        config.noise,
        config.samples == "plain",
        config.body,
    )
