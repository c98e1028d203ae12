"""`{ in: host }`: a host name with the version in one label."""

import pytest

from gateway.versions.mechanisms.host import HostReader
from tests.gateway.rules.rules import edited, loaded, report

QUERY = "{ in: query, name: version }"


@pytest.mark.parametrize(
    ("name", "prefix", "suffix"),
    [
        ("v{version}.api.example.com", "v", ".api.example.com"),
        ("API-{version}-eu.Example.com", "api-", "-eu.example.com"),
        ("{version}", "", ""),
        ("api.v{version}", "api.v", ""),
    ],
)
def test_reader(name: str, prefix: str, suffix: str) -> None:
    found = loaded(edited(QUERY, f"{{ in: host, name: '{name}', default: '1' }}")).router.find(
        "/param"
    )
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (HostReader(prefix, suffix),)
    assert str(found[0].selector.default) == "1"
    assert found[0].vary == ()


@pytest.mark.parametrize(
    "name",
    [
        "api.example.com",
        "v{version}.{version}",
        "v{version}.api.example.com:80",
        "https://v{version}.api.example.com",
        "-{version}.api.example.com",
        "v{version}-.api.example.com",
        "v{version}..com",
        ".v{version}.com",
        "v{version}.com.",
        "",
    ],
)
def test_not_a_host_name(name: str) -> None:
    assert report(edited(QUERY, f"{{ in: host, name: '{name}' }}")) == [
        (
            "9:46: apis.person.endpoints[1].version.name: not a host name with one {version} in one"
            " of its labels; write one like v{version}.api.example.com"
        )
    ]


def test_a_version_that_no_label_can_hold() -> None:
    text = edited(QUERY, "{ in: host, name: 'v{version}.test' }")
    text = edited("    upstream_path", "    version_format: semantic\n    upstream_path", text)
    text = text.replace('"1"', '"1.0.0"').replace('"2"', '"2.0.0"')
    assert report(text) == [
        "10:46: apis.person.endpoints[1].version.name: a label of a host name has lower-case"
        f" letters, digits and '-', so that '{label}' would never be found there; read such"
        " versions elsewhere"
        for label in ("1.0.0", "2.0.0")
    ]
