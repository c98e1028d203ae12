"""The parts of URLs, and links with and without the host of the client."""

import pytest

from gateway.base.urls import is_address
from gateway.routing.links import (
    in_form,
    query_and_fragment,
    resolved,
    split_url,
)
from gateway.routing.snapshot import LinkForm

ABSOLUTE, RELATIVE = LinkForm.ABSOLUTE, LinkForm.RELATIVE


@pytest.mark.parametrize(
    ("form", "link", "wanted"),
    [
        (ABSOLUTE, "/orders/7?a=b#c", "https://Api.test/orders/7?a=b#c"),
        (ABSOLUTE, "7", "https://Api.test/v1/7"),
        (ABSOLUTE, "../x", "https://Api.test/x"),
        (ABSOLUTE, "?page=2", "https://Api.test/v1/orders?page=2"),
        (ABSOLUTE, "https://Api.test/a", "https://Api.test/a"),
        (ABSOLUTE, "//other.test/a", "//other.test/a"),
        (ABSOLUTE, "mailto:a@b.c", "mailto:a@b.c"),
        (ABSOLUTE, "#top", "#top"),
        (ABSOLUTE, "", ""),
        (RELATIVE, "https://api.test/orders?a#b", "/orders?a#b"),
        (RELATIVE, "//api.test", "/"),
        (RELATIVE, "https://other.test/a", "https://other.test/a"),
        (RELATIVE, "/a", "/a"),
        (RELATIVE, "mailto:a@b.c", "mailto:a@b.c"),
    ],
)
def test_in_a_form(form: LinkForm, link: str, wanted: str) -> None:
    assert in_form(link, form, "https", "Api.test", "/v1/orders") == wanted
    assert in_form(wanted, form, "https", "Api.test", "/v1/orders") == wanted


def test_parts() -> None:
    assert split_url("http://a:1/b?c#d") == ("http", "a:1", "/b", "c", "#d")
    assert split_url("b") == (None, None, "b", None, "")
    assert query_and_fragment(None, "#d") == "#d"
    assert query_and_fragment("", "#d") == "?#d"


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        *[("", "/a/b"), ("c", "/a/c"), ("/c", "/c"), ("./c/..", "/a/"), ("../../c", "/c")],
        ("/c/./d", "/c/d"),
    ],
)
def test_resolved(path: str, wanted: str) -> None:
    assert resolved("/a/b", path) == wanted
    assert resolved("/a/b", path, absolute=True) == ("/" if not path else wanted)


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("192.0.2.7", True), ("::1", True), ("a.example", False), ("[::1]", False), ("", False)],
)
def test_an_address_is_no_name(host: str, wanted: bool) -> None:
    assert is_address(host) is wanted
