"""The shadow of a version: its defaults, and what is written."""

import pytest

from gateway.rollout.differences import Ignored, parse_ignored
from gateway.rollout.dry_run import DryRun
from gateway.rollout.shadow import Shadow
from gateway.versions.version import Version
from tests.gateway.lifecycle.served import first_version

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


@pytest.mark.parametrize(
    ("written", "built"),
    [
        (
            'header: Prefer, value: "handling=dry-run"',
            DryRun("Prefer", "handling=dry-run"),
        ),
        (
            'query: dryRun, value: "", methods: [PUT], paths: [/param]',
            DryRun("dryRun", "", True, frozenset({"PUT"}), frozenset({"/param"})),
        ),
    ],
)
def test_dry_runs(written: str, built: DryRun) -> None:
    shadow = first_version(f'shadow: {{ via: "2", dry_run: {{ {written} }} }}').shadow
    assert shadow is not None
    assert shadow.rule.dry_run == built


def test_writes_are_validated_by_the_document_of_the_version_that_is_asked() -> None:
    shadow = first_version('shadow: { via: "2", validate: true }').shadow
    assert shadow is not None
    assert shadow.rule.document == "http://127.0.0.1:8002/openapi.json"
