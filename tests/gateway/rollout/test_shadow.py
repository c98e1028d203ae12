"""The requests that a shadow repeats or validates, and the mark of dry runs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.differences import IgnoredPlaces, parse_ignored
from gateway.rollout.shadow import DryRunMark, ShadowMode, VersionShadow
from gateway.versions.version import Version
from tests.gateway.lifecycle.served import first_version
from tests.gateway.world import LAW


@pytest.mark.parametrize(
    ("method", "percent", "draw", "expected"),
    [
        ("GET", 100.0, 0.999, True),
        ("HEAD", 100.0, 0.0, True),
        ("POST", 100.0, 0.0, False),
        ("GET", 0.0, 0.0, False),
        ("GET", 25.0, 0.2499, True),
        ("GET", 25.0, 0.25, False),
    ],
)
def test_method_and_draw_decide_whether_a_request_is_compared(
    method: str, percent: float, draw: float, expected: bool
) -> None:
    assert VersionShadow(("person", "1"), percent).selects(method, "/p", draw) is expected


TRIED = DryRunMark("Prefer", "dry-run", methods=frozenset({"POST", "PUT"}), paths=frozenset({"/p"}))


@pytest.mark.parametrize(
    ("more", "method", "path", "expected"),
    [
        ({}, "GET", "/p", "send"),
        ({}, "POST", "/p", None),
        ({"document": "v2.json"}, "POST", "/p", "validate"),
        ({"document": "v2.json"}, "DELETE", "/p", "validate"),
        ({"document": "v2.json"}, "GET", "/p", "send"),
        ({"document": "v2.json"}, "OPTIONS", "/p", None),
        ({"dry_run": TRIED}, "PUT", "/p", "dry_run"),
        ({"dry_run": TRIED}, "PUT", "/q", None),
        ({"dry_run": TRIED}, "PATCH", "/p", None),
        ({"dry_run": TRIED, "document": "v2.json"}, "POST", "/p", "dry_run"),
        ({"dry_run": TRIED, "document": "v2.json"}, "POST", "/q", "validate"),
        # A request that supports dry runs is never sent without the mark, even if `methods` has its
        # method.
        ({"dry_run": TRIED, "methods": frozenset({"POST"})}, "POST", "/p", "dry_run"),
        ({"dry_run": TRIED, "methods": frozenset({"POST"})}, "POST", "/q", "send"),
    ],
)
def test_the_mode_of_a_shadow_depends_on_method_path_and_configuration(
    more: dict[str, Any], method: str, path: str, expected: ShadowMode | None
) -> None:
    shadow = VersionShadow(("person", "1"), **more)
    assert shadow.mode(method, path) is expected
    assert shadow.selects(method, path, 0.0) is (expected is not None)


KEY = ("person", "1")


def test_a_shadow_without_settings_has_the_defaults() -> None:
    shadow = first_version('shadow: { via: "2" }').shadow
    assert shadow is not None
    assert shadow.rule == VersionShadow(KEY)
    assert (shadow.route.service.name, shadow.route.service_version) == ("new", Version(2, "2"))


def test_the_configured_shadow_is_compiled() -> None:
    shadow = first_version(
        'shadow: { via: "2", percent: 5, ignore: [/a/*/b], headers: [ETag, X-A, etag],'
        " methods: [GET, POST], noise: false, samples: plain, body: 10 }"
    ).shadow
    assert shadow is not None
    assert shadow.rule == VersionShadow(
        KEY,
        5.0,
        IgnoredPlaces(frozenset({parse_ignored("/a/*/b")})),
        ("etag", "x-a"),
        frozenset({"GET", "HEAD", "POST"}),
        noise=False,
        plain=True,
        body=10,
    )


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ('header: Prefer, value: "handling=dry-run"', DryRunMark("Prefer", "handling=dry-run")),
        (
            'query: dryRun, value: "", methods: [PUT], paths: [/param]',
            DryRunMark("dryRun", "", True, frozenset({"PUT"}), frozenset({"/param"})),
        ),
    ],
)
def test_a_dry_run_is_compiled(written: str, built: DryRunMark) -> None:
    shadow = first_version(f'shadow: {{ via: "2", dry_run: {{ {written} }} }}').shadow
    assert shadow is not None
    assert shadow.rule.dry_run == built


def test_writes_are_validated_against_the_document_of_the_other_version() -> None:
    shadow = first_version('shadow: { via: "2", validate: true }').shadow
    assert shadow is not None
    assert shadow.rule.document == "http://127.0.0.1:8002/openapi.json"


HEADER = DryRunMark("Prefer", "dry-run")
QUERY = DryRunMark("dry run", "a&b", in_query=True)


@pytest.mark.parametrize(
    ("target", "marked"),
    [
        ("/p", "/p?dry%20run=a%26b"),
        ("/p?", "/p?dry%20run=a%26b"),
        ("/p?q=1&r", "/p?q=1&r&dry%20run=a%26b"),
        ("/p?dry%20run=no&q=1&dry+run&%64ry%20run=", "/p?q=1&dry%20run=a%26b"),
        ("/p?Dry%20run=no", "/p?Dry%20run=no&dry%20run=a%26b"),
    ],
)
def test_a_query_mark_replaces_parameters_of_the_client_with_the_same_name(
    target: str, marked: str
) -> None:
    assert QUERY.target(target) == marked
    assert HEADER.target(target) == target


def test_a_header_mark_replaces_fields_of_the_client_with_the_same_name() -> None:
    fields = [(b"A", b"b"), (b"prefer", b"respond-async"), (b"Preferred", b"c")]
    assert HEADER.fields(fields) == [(b"A", b"b"), (b"Preferred", b"c"), (b"Prefer", b"dry-run")]
    assert QUERY.fields(fields) == fields


@LAW
@given(st.text("dry run=&%20+?abc", max_size=30))
def test_marking_a_marked_query_again_changes_nothing(query: str) -> None:
    mark = DryRunMark("dry", "yes", in_query=True)
    marked = mark.target(f"/p?{query}")
    assert marked.endswith("dry=yes")
    assert mark.target(marked) == marked


@pytest.mark.parametrize(
    ("method", "path", "applies"),
    [("POST", "/a", True), ("GET", "/a", False), ("DELETE", "/b", True)],
)
def test_a_dry_run_applies_to_its_methods_and_paths(method: str, path: str, applies: bool) -> None:
    assert HEADER.applies(method, path) is applies
    here = DryRunMark("Prefer", "dry-run", paths=frozenset({"/a"}))
    assert here.applies(method, path) is (applies and path == "/a")
