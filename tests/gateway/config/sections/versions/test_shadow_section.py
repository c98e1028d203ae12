"""The shadow of a version: its defaults, and what is written."""

from gateway.core.cutover.differences import Ignored, parse_ignored
from gateway.core.cutover.shadow import Shadow
from gateway.core.versions.version import Version
from tests.gateway.config.sections.versions.served import first_version

KEY = ("person", "1")


def test_defaults() -> None:
    shadow = first_version('shadow: { via: "2" }').shadow
    assert shadow is not None
    assert shadow.rule == Shadow(KEY)
    assert (shadow.route.service.name, shadow.route.service_version) == ("new", Version(2))


def test_what_is_written() -> None:
    shadow = first_version(
        'shadow: { via: "2", percent: 5, ignore: [/a/*/b], headers: [ETag, X-A, etag],'
        " methods: [GET, POST], noise: false, samples: plain, body: 10 }"
    ).shadow
    assert shadow is not None
    assert shadow.rule == Shadow(
        KEY,
        5.0,
        Ignored(frozenset({parse_ignored("/a/*/b")})),
        ("etag", "x-a"),
        frozenset({"GET", "HEAD", "POST"}),
        noise=False,
        plain=True,
        body=10,
    )
