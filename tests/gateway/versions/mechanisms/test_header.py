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


LISTED = HeaderReader("OpenAI-Beta", "assistants=v", "")


@pytest.mark.parametrize(
    ("line", "versions"),
    [
        ("assistants=v1", ("1",)),
        ("realtime=v1, assistants=v2", ("2",)),
        ("assistants=v1,assistants=v2", ("1", "2")),
        ("realtime=v1", ()),
        ("assistants=v", ()),
        ("1", ()),
    ],
)
def test_a_member_of_a_list_names_the_version(line: str, versions: tuple[str, ...]) -> None:
    assert LISTED.read(head("/", ("openai-beta", line)), {}) == versions


def test_only_the_member_with_the_version_is_rewritten() -> None:
    fields = [(b"openai-beta", b"realtime=v1, assistants=v1"), (b"X-A", b"assistants=v1")]
    made = LISTED.rewrite_fields(fields, "2", lambda _: True)
    assert made == [(b"openai-beta", b"realtime=v1, assistants=v2"), fields[1]]


def test_a_member_is_added_to_a_list_without_a_version() -> None:
    fields = [(b"OpenAI-Beta", b"realtime=v1")]
    added = [*fields, (b"OpenAI-Beta", b"assistants=v2")]
    assert LISTED.add_to_fields(fields, "2") == added
    assert LISTED.add_to_fields(added, "1") == added


def test_a_value_without_a_version_is_refused() -> None:
    (line,) = report(edited("X-API-VERSION }", "X-A, value: v1 }"))
    assert line.endswith(
        "apis.person.endpoints[2].version.value: not a value with one {version}; write one like"
        " assistants=v{version}"
    )
