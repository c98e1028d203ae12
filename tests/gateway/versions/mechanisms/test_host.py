"""The mechanism `{ in: host }`: the version is part of one label of the host name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import FaultCode
from gateway.base.request import RequestHead
from gateway.routing.plan import Plan, Refusal, plan
from gateway.versions.mechanisms.host import HostReader
from gateway.versions.reader import VersionAddress, VersionRewrite
from tests.gateway.rules.rules import edited, loaded, report
from tests.gateway.world import HEADER, HOST, LAW, PATH, V1, V2, head, person, snapshot


def asked(authority: str, target: str = "/", method: str = "GET") -> RequestHead:
    return head(target, method=method)._replace(authority=authority)


@pytest.mark.parametrize(
    ("authority", "values"),
    [
        ("v1.api.example.com", ("1",)),
        ("V1.API.Example.COM", ("1",)),
        ("v1.api.example.com:8080", ("1",)),
        ("v1.api.example.com:", ("1",)),
        ("v1.api.example.com.", ("1",)),
        ("v01.api.example.com", ("01",)),
        ("v2026-01-31.api.example.com", ("2026-01-31",)),
        ("vx.api.example.com", ("x",)),
        ("v.api.example.com", ()),
        ("1.api.example.com", ()),
        ("api.example.com", ()),
        ("v1.api.example.com.evil.test", ()),
        ("x.v1.api.example.com", ()),
        ("v1.x.api.example.com", ()),
        ("v1.api.example.org", ()),
        ("[::1]:80", ()),
        ("", ()),
    ],
)
def test_the_version_is_read_from_one_host_label(authority: str, values: tuple[str, ...]) -> None:
    assert HOST.read(asked(authority), {}) == values


def test_prefix_and_suffix_do_not_overlap() -> None:
    assert HostReader("a1", "1b").read(asked("a1b"), {}) == ()
    assert HostReader("a1", "1b").read(asked("a1x1b"), {}) == ("x",)


def test_the_reader_has_the_properties_of_its_mechanism() -> None:
    assert HOST.place == "the host name, as v<version>.api.example.com"
    assert (HOST.mechanism, HOST.refusal_status, HOST.vary) == ("host", 404, ())
    assert HOST.address(V2) == VersionAddress(host="v2.api.example.com")


@pytest.mark.parametrize(
    ("authority", "told"),
    [
        ("v1.api.example.com", "v2.api.example.com"),
        ("V1.api.example.com:8080", "v2.api.example.com:8080"),
        ("api.example.com:80", "api.example.com:80"),
        ("[::1]:80", "[::1]:80"),
    ],
)
def test_the_rewritten_host_names_the_version_of_the_service(authority: str, told: str) -> None:
    rewrite = VersionRewrite.of((PATH, HOST), "2")
    assert rewrite is not None
    assert rewrite.authority(authority) == told
    assert (rewrite.query("v=1"), rewrite.fields([])) == ("v=1", [])


@LAW
@given(st.integers(0, 10**9))
def test_a_reader_reads_the_version_in_its_own_host_name(version: int) -> None:
    address = HOST.address(V1._replace(label=str(version)))
    assert address.host is not None
    assert HOST.read(asked(address.host), {}) == (str(version),)


WORLD = snapshot([person("/person", HOST), person("/any", HOST, HEADER, vary=HEADER.vary)])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_request_gets_the_version_in_its_host_name(method: str) -> None:
    outcome = plan(WORLD, asked("v2.api.example.com", "/person", method))
    assert isinstance(outcome, Plan)
    assert (outcome.version, outcome.chosen_by) == (V2, "host")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("api.example.com", FaultCode.VERSION_MISSING),
        ("v3.api.example.com", FaultCode.VERSION_UNKNOWN),
        ("vx.api.example.com", FaultCode.VERSION_MALFORMED),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_hosts_without_a_known_version_get_a_404(host: str, code: FaultCode, method: str) -> None:
    outcome = plan(WORLD, asked(host, "/person", method))
    assert isinstance(outcome, Refusal)
    assert (outcome.fault.status, outcome.fault.code) == (404, code)


def test_different_versions_in_host_and_header_are_a_conflict() -> None:
    request = head("/any", ("X-API-VERSION", "1"))
    outcome = plan(WORLD, request._replace(authority="v2.api.example.com"))
    assert isinstance(outcome, Refusal)
    assert (outcome.fault.status, outcome.fault.code) == (400, FaultCode.VERSION_CONFLICT)
    outcome = plan(WORLD, request._replace(authority="v1.api.example.com"))
    assert isinstance(outcome, Plan)
    assert outcome.version == V1


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
def test_a_host_mechanism_compiles_to_its_reader(name: str, prefix: str, suffix: str) -> None:
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
def test_a_pattern_that_is_not_a_host_name_is_a_mistake(name: str) -> None:
    assert report(edited(QUERY, f"{{ in: host, name: '{name}' }}")) == [
        (
            "9:46: apis.person.endpoints[1].version.name: not a host name with one {version} in one"
            " of its labels; write one like v{version}.api.example.com"
        )
    ]


def test_a_version_that_is_not_a_valid_host_label_is_a_mistake() -> None:
    text = edited(QUERY, "{ in: host, name: 'v{version}.test' }")
    text = edited("    upstream_path", "    version_format: semantic\n    upstream_path", text)
    text = text.replace('"1"', '"1.0.0"').replace('"2"', '"2.0.0"')
    assert report(text) == [
        "10:46: apis.person.endpoints[1].version.name: a label of a host name has lower-case"
        f" letters, digits and '-', so '{label}' is never found there; read such"
        " versions elsewhere"
        for label in ("1.0.0", "2.0.0")
    ]
