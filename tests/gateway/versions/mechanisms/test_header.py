"""The mechanism `{ in: header }`: the version is the value of a header."""

import pytest

from gateway.versions.mechanisms.header import HeaderReader
from tests.gateway.rules.rules import edited, loaded, report
from tests.gateway.world import HEADER, head


@pytest.mark.parametrize("name", ["X-API-VERSION", "x-api-version", "X-Api-Version"])
def test_the_name_of_a_header_is_case_insensitive(name: str) -> None:
    assert HEADER.read(head("/", (name, "1")), {}) == ("1",)
    assert HeaderReader(name).read(head("/", ("x-aPI-vERSION", "1")), {}) == ("1",)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("1", "1"),
        (" 1", "1"),
        ("1 \t ", "1"),
        ("\t1", "1"),
        ("", ""),
        ("  ", ""),
        ("1, 2", "1, 2"),
        ("1 2", "1 2"),
        ("X1X", "X1X"),
        ("\x0b1", "\x0b1"),
        ("1\x85", "1\x85"),
        ("\xa01", "\xa01"),
        ('"1"', '"1"'),
    ],
    ids=ascii,
)
def test_only_spaces_and_tabs_are_stripped_from_the_value(line: str, value: str) -> None:
    assert HEADER.read(head("/", ("X-API-VERSION", line)), {}) == (value,)


def test_every_line_of_the_header_is_read() -> None:
    fields = (("X-API-VERSION", "2"), ("Accept", "*/*"), ("x-api-version", " 1 "))
    assert HEADER.read(head("/", *fields), {}) == ("2", "1")


def test_a_header_mechanism_compiles_to_its_reader() -> None:
    text = edited("X-API-VERSION }", 'Api-Version, default: "1" }')
    found = loaded(text).router.find("/header")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (HeaderReader("Api-Version"),)
    assert found[0].vary == ("Api-Version",)


@pytest.mark.parametrize("name", ["Host", "content-type", "Sunset", "X-Request-Id"])
def test_a_reserved_header_cannot_name_the_version(name: str) -> None:
    (line,) = report(edited("X-API-VERSION }", f"{name} }}"))
    assert line.endswith(
        "apis.person.endpoints[2].version.name: is reserved; choose another header,"
        " like X-API-Version"
    )
