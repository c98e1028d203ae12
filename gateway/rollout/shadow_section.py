"""`shadow` in gateway.yaml: which requests are sent once more via another version, to compare."""

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.headers import OURS, SPOKEN_FOR
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import (
    Bytes,
    FieldName,
    Method,
    NonEmptyText,
    Percent,
    SectionModel,
    Some,
    matching,
)
from gateway.base.overrides import VersionKey
from gateway.rollout.differences import Ignored, parse_ignored
from gateway.rollout.dry_run import DryRun
from gateway.rollout.shadow import Shadow

_WRITES = ("POST", "PUT", "PATCH", "DELETE")


class DryRunConfig(SectionModel):
    """The mark that makes the service of `via` try a write and leave everything as it was."""

    header: FieldName | None = None
    """The request header that marks a dry run, such as Prefer. A dry run is marked by either a
    header or a query parameter."""
    query: NonEmptyText | None = None
    """The query parameter that marks a dry run, such as dryRun."""
    value: Annotated[
        str, matching(r"^[ -~]*$", "not a value of a header or parameter; write printable ASCII")
    ]
    """The value of the header or the query parameter that marks a dry run."""
    methods: Some[Method] = _WRITES
    """The methods of the requests that the service can try. The default is POST, PUT, PATCH,
    DELETE."""
    paths: Some[str] | None = None
    """The endpoints whose requests the service can try, by their paths. Without it, all can be
    tried. A service that does not know the mark would carry the request out."""


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
    dry_run: DryRunConfig | None = None
    """How a write is marked that the service of `via` is to try without effect. Such writes are
    sent once more, and their answers compared. Without it, none is."""
    validate_: Annotated[bool, Field(alias="validate")] = False
    """Whether writes (POST, PUT, PATCH, DELETE) that are not sent once more are converted, and
    validated by the OpenAPI document of the version whose service is asked. The default is
    false."""
    samples: Literal["redacted", "plain"] = "redacted"
    """Whether samples of differences show types and sizes (redacted) or values (plain). The
    default is redacted."""
    body: Bytes = 64 * 1024
    """The largest body that is compared, in bytes. The default is 65536."""


def build_shadow(key: VersionKey, config: ShadowConfig, at: Location, mistakes: Mistakes) -> Shadow:
    """Return the shadow of a version; mistakes go to `mistakes`."""
    places = (
        mistakes.attempt(partial(parse_ignored, text), *at, "ignore", index)
        for index, text in enumerate(config.ignore)
    )
    dry_run = None
    if config.dry_run is not None:
        dry_run = _dry_run(config.dry_run, (*at, "dry_run"), mistakes)
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
        dry_run,
    )


def _dry_run(config: DryRunConfig, at: Location, mistakes: Mistakes) -> DryRun:
    name = config.header or config.query or ""
    if (config.header is None) == (config.query is None):
        mistakes.add("is marked by either a header or a query parameter; write one of the two", *at)
    if config.header is not None and config.header.lower().encode() in SPOKEN_FOR | OURS:
        mistakes.add(
            "says something else already; name the one that the service takes, such as Prefer",
            *at,
            "header",
        )
    return DryRun(
        name,
        config.value,
        config.query is not None,
        frozenset(config.methods),
        None if config.paths is None else frozenset(config.paths),
    )
