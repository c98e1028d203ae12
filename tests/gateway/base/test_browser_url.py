"""URLs as browsers read them."""

import pytest

from gateway.base.urls import browser_authority, is_address, without_authority


def test_browser_authority_finds_what_a_browser_finds() -> None:
    assert browser_authority("\0\\/h:1\\x") == "h:1"
    assert browser_authority("/x//y") is None


def test_a_path_gets_a_dot_segment_if_a_browser_would_find_an_authority() -> None:
    assert without_authority("/\t/x") == "/./\t/x"
    assert without_authority("/x") == "/x"


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("192.0.2.7", True), ("::1", True), ("a.example", False), ("[::1]", False), ("", False)],
)
def test_an_ip_address_is_distinguished_from_a_host_name(host: str, wanted: bool) -> None:
    assert is_address(host) is wanted
