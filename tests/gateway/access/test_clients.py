"""Names of clients: the first source that finds a name decides, and names are safe to show."""

from functools import partial
from ipaddress import ip_network

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.clients import ClientNaming, _certificate_name
from gateway.base.addresses import plain_address, trusts
from gateway.base.client_names import ANONYMOUS, LONGEST, Identity, digest
from gateway.rules.load import check
from tests.gateway.access.named import bearer, named, naming
from tests.gateway.rules.rules import RULES, edited, loaded
from tests.gateway.world import LAW, head

BY_HEADER = naming("{ header: X-Client }")
BY_KEY = naming("{ api_key: { header: X-Key, keys: { acme: s3cret } } }")
KEY_OR_HEADER = naming(
    "{ api_key: { header: X-Key, keys: { acme: s3cret } } }, { header: X-Client },"
    " { address: true }"
)
HASHED = naming("{ header: X-Client }", ", hash: pepper")
PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def behind_proxies(address: str = "true") -> ClientNaming:
    trusted = "trusted_proxies: [10.0.0.0/8, fd00::/8]\n"
    found = loaded(f"{trusted}clients: {{ by: [{{ address: {address} }}] }}\n{RULES}").naming
    assert found is not None
    return found


BY_ADDRESS = behind_proxies()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ([("x-client", "acme")], "acme"),
        ([("X-Client", " \tacme ")], "acme"),
        ([("X-Client", "acme"), ("X-Client", "other")], "acme"),
        ([("X-Client", "")], ANONYMOUS),
        ([], ANONYMOUS),
    ],
)
def test_the_first_line_of_a_header_gives_the_name(
    fields: list[tuple[str, str]], name: str
) -> None:
    assert named(BY_HEADER, *fields) == name


@pytest.mark.parametrize(
    ("key", "name"), [("s3cret", "acme"), ("other", digest("other")), ("", ANONYMOUS)]
)
def test_an_api_key_gives_the_name_of_its_owner_or_its_hash(key: str, name: str) -> None:
    assert named(BY_KEY, ("X-Key", key)) == name
    in_query = naming("{ api_key: { query: key, keys: { acme: s3cret } } }")
    assert named(in_query, target=f"/?key={key}&key=more") == name
    assert named(in_query) == ANONYMOUS
    assert "s3cret" not in repr(BY_KEY)


class TestAddress:
    """The address of the connection, or the address that trusted proxies forward."""

    @pytest.mark.parametrize(
        ("peer", "name"),
        [
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("", ANONYMOUS),
            ("somewhere", ANONYMOUS),
            ("1" * 65, ANONYMOUS),
            ("fe80::1%eth0", "fe80::1%eth0"),
        ],
    )
    def test_no_proxy_is_trusted_by_default(self, peer: str, name: str) -> None:
        names = naming("{ address: true }")
        assert named(names, ("X-Forwarded-For", "1.2.3.4"), peer=peer) == name

    @pytest.mark.parametrize(
        ("peer", "name"),
        [("192.0.2.7", "192.0.2.0/24"), ("2001:db8:1:2:3::1", "2001:db8:1:2::/64")],
    )
    def test_a_prefix_gives_the_network(self, peer: str, name: str) -> None:
        assert named(behind_proxies("{ ipv4: 24, ipv6: 64 }"), peer=peer) == name

    @pytest.mark.parametrize(
        ("field", "value", "name"),
        [
            ("X-Forwarded-For", "192.0.2.7", "192.0.2.7"),
            ("X-Forwarded-For", "6.6.6.6, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
            ("X-Forwarded-For", "6.6.6.6, 192.0.2.7:4711", "192.0.2.7"),
            ("X-Forwarded-For", "[2001:db8::1]:4711", "2001:db8::1"),
            ("X-Forwarded-For", "2001:db8::1, [fd00::1]", "2001:db8::1"),
            ("X-Forwarded-For", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("X-Forwarded-For", "192.0.2.7, unknown, 10.0.0.2", "10.0.0.2"),
            ("X-Forwarded-For", "", "10.0.0.1"),
            ("Forwarded", "for=192.0.2.7;proto=https", "192.0.2.7"),
            ("Forwarded", 'for=6.6.6.6, For="[2001:db8::1]:4711"', "2001:db8::1"),
            ("Forwarded", "for=192.0.2.7, for=_hidden", "10.0.0.1"),
            ("Forwarded", "proto=https", "10.0.0.1"),
        ],
    )
    def test_a_trusted_proxy_forwards_the_address(self, field: str, value: str, name: str) -> None:
        assert named(BY_ADDRESS, (field, value), peer="10.0.0.1") == name
        assert named(BY_ADDRESS, (field, value), peer="198.51.100.1") == "198.51.100.1"

    def test_several_lines_are_one_list(self) -> None:
        lines = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-For", "192.0.2.7, 10.0.0.2")]
        assert named(BY_ADDRESS, *lines, peer="10.0.0.1") == "192.0.2.7"

    @pytest.mark.parametrize(
        ("listed", "forwarded", "name"),
        [
            ("6.6.6.6, 192.0.2.7", "for=192.0.2.7", "192.0.2.7"),
            ("6.6.6.6", "for=192.0.2.7", "10.0.0.1"),  # one of the two is the client's own
            ("192.0.2.7", "for=6.6.6.6, for=192.0.2.7:80", "192.0.2.7"),
            ("192.0.2.7, 10.0.0.2", "for=9.9.9.9, for=10.0.0.2", "10.0.0.2"),
            ("192.0.2.7, _x", "for=192.0.2.7, for=_x", "10.0.0.1"),
        ],
    )
    def test_two_fields_count_up_to_the_first_difference(
        self, listed: str, forwarded: str, name: str
    ) -> None:
        fields = ("X-Forwarded-For", listed), ("Forwarded", forwarded)
        assert named(BY_ADDRESS, *fields, peer="10.0.0.1") == name

    @pytest.mark.parametrize(
        ("peer", "trusted"),
        [
            ("10.1.2.3", True),
            ("::ffff:10.1.2.3", True),
            ("fd00::1", True),
            ("192.0.2.7", False),
            ("::ffff:192.0.2.7", False),
            ("", False),
            ("somewhere", False),
        ],
    )
    def test_mapped_addresses_count_as_ipv4(self, peer: str, trusted: bool) -> None:
        """An IPv6 socket shows IPv4 proxies as mapped addresses."""
        assert trusts(PROXIES, peer) is trusted
        assert not trusts((), peer)
        assert plain_address(peer) == peer.removeprefix("::ffff:")

    @pytest.mark.parametrize(("by", "name"), [("client", "192.0.2.7"), ("request", None)], ids=str)
    def test_a_cutover_that_is_sticky_by_client_needs_addresses(
        self, by: str, name: str | None
    ) -> None:
        cutover = f'service: old, cutover: {{ via: "2", percent: 25, sticky_by: {by} }} }}'
        snapshot, warnings = check(edited("service: old }", cutover).encode(), "gateway.yaml", {})
        assert name == (snapshot.naming and named(snapshot.naming, peer="192.0.2.7"))
        warned = [issue.place for issue in warnings if "clients" in issue.text]
        assert warned == (["apis.person.versions.1.cutover"] if name else [])


class TestProof:
    """A name that is only claimed never stands for the client that proved it."""

    def test_a_claim_is_marked_where_credentials_are_checked(self) -> None:
        claim = ("X-Client", "acme")
        assert named(KEY_OR_HEADER, ("X-Key", "s3cret"), claim) == "acme"
        assert named(KEY_OR_HEADER, ("X-Key", "other"), claim) == digest("other")
        assert named(KEY_OR_HEADER, claim) == "unverified:acme"
        assert named(KEY_OR_HEADER, peer="192.0.2.7") == "192.0.2.7"
        assert named(BY_HEADER, claim) == "acme"

    def test_a_key_without_listed_owners_does_not_mark_other_names(self) -> None:
        names = naming("{ api_key: { header: X-Key } }, { header: X-Client }")
        assert named(names, ("X-Client", "acme")) == "acme"
        assert named(names, ("X-Key", "k")) == digest("k")

    def test_an_unverified_token_is_a_claim(self) -> None:
        token = jwt.encode({"sub": "acme"}, "s" * 32, "HS256")
        sources = "{ jwt: { claim: sub } }, { address: { ipv4: 24 } }"
        assert bearer(naming(sources), token) == "acme"
        both = naming(f"{{ api_key: {{ query: key, keys: {{ acme: s }} }} }}, {sources}")
        assert bearer(both, token) == "unverified:acme"
        assert bearer(both, "no token") == "192.0.2.0/24"

    @pytest.mark.parametrize("claimed", [digest("other"), "unverified:acme"])
    @pytest.mark.parametrize("names", [BY_HEADER, KEY_OR_HEADER], ids=["header", "key or header"])
    def test_a_claim_that_looks_like_a_hash_or_a_mark_is_hashed(
        self, names: ClientNaming, claimed: str
    ) -> None:
        found = named(names, ("X-Client", claimed))
        assert found.removeprefix("unverified:") == digest(claimed)

    @pytest.mark.parametrize(
        ("by", "places"),
        [
            ("{ header: X-Client }", []),
            ("{ api_key: { query: key } }, { header: X-Client }", []),
            ("{ api_key: { query: key, keys: { acme: s3cret } } }, { address: true }", []),
            (
                "{ api_key: { query: key, keys: { acme: s3cret } } }, { header: X-Client }",
                ["clients.by[1]"],
            ),
            ("{ jwt: { claim: sub } }", ["clients.by[0].jwt"]),
            (
                "{ api_key: { query: key, keys: { acme: s3cret } } }, { jwt: { claim: sub } }",
                ["clients.by[1]"],
            ),
        ],
    )
    def test_check_warns_of_names_that_anybody_can_claim(self, by: str, places: list[str]) -> None:
        text = f"clients: {{ by: [{by}] }}\n{RULES}"
        _, warnings = check(text.encode(), "gateway.yaml", {})
        assert [issue.place for issue in warnings if issue.place.startswith("clients.")] == places


def test_the_next_source_counts_where_one_finds_no_name() -> None:
    names = naming("{ header: X-Client }, { address: true }")
    for value, name in (("acme", "acme"), ("", "192.0.2.7"), (" \N{NO-BREAK SPACE}", None)):
        found = named(names, ("X-Client", value), peer="192.0.2.7")
        assert found == (digest("\N{NO-BREAK SPACE}") if name is None else name)
    assert named(names) == ANONYMOUS
    assert loaded(RULES).naming is None


def test_header_fields_that_could_be_read_as_a_name_are_withheld_from_services() -> None:
    by = (
        "{ header: X-Client }, { api_key: { header: X-Key } }, { jwt: { claim: sub, header: X-J } }"
    )
    rules = loaded(f"clients: {{ by: [{by}] }}\n{RULES}")
    assert {b"x_client", b"x_key", b"x_j"} <= rules.withheld
    assert not {b"x-client", b"x-key", b"x-j"} & rules.withheld


@pytest.mark.parametrize(
    "name",
    [
        *("a\u115f", "a\ufe0f", "a\u2800", "\u3164", "a\u200b", "a\ud800", "a\x1b[31m", "a\nb"),
        *("a\0", "a\u202eb", "\u2028", "n" * (LONGEST + 1), "(anonymous)", "(others)"),
    ],
    ids=lambda name: ascii(name)[:12],
)
def test_a_name_that_would_break_a_line_or_a_table_is_hashed(name: str) -> None:
    shown = named(BY_HEADER, ("X-Client", name))
    assert shown == digest(name)
    assert len(shown) == 17


def test_a_secret_hashes_all_names() -> None:
    other = naming("{ header: X-Client }", f", hash: {'p' * 500}")
    names = {named(each, ("X-Client", "acme")) for each in (BY_HEADER, HASHED, other)}
    assert len(names) == 3
    assert names & {"acme", digest("acme")} == {"acme"}
    assert repr(HASHED.key) not in repr(HASHED)


@pytest.mark.parametrize("names", [BY_HEADER, HASHED], ids=["plain", "hashed"])
def test_an_operator_may_write_a_name_or_its_hash(names: ClientNaming) -> None:
    shown = named(names, ("X-Client", "acme"))
    assert names.known_as("acme") == shown
    assert names.known_as(shown) == shown


def test_an_operator_may_write_the_name_of_a_client_that_only_claims() -> None:
    by = "{ api_key: { query: key, keys: { acme: s3cret } } }, { header: X-Client }"
    for names in (naming(by), naming(by, ", hash: pepper")):
        claimed = named(names, ("X-Client", "acme"))
        assert names.known_as("unverified:acme") == claimed
        assert claimed == f"unverified:{names.known_as('acme')}"


@LAW
@given(st.text(st.characters(codec=None), max_size=80), st.sampled_from((BY_HEADER, HASHED)))
def test_a_name_is_short_and_printable(text: str, names: ClientNaming) -> None:
    shown = named(names, ("X-Client", text))
    assert len(shown) <= LONGEST
    assert shown.isprintable()
    assert bool(shown) == bool(text.strip(" \t").strip(" "))


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("subject", "CN=a\\, b+UID=7,O=Example,C=DE"),
        ("dns", "a.test"),
        ("uri", "spiffe://a/b"),
        ("email", None),
    ],
)
def test_a_certificate_gives_a_proven_name(part: str, name: str | None) -> None:
    certificate = {
        "subject": (
            (("countryName", "DE"),),
            (("organizationName", "Example"),),
            (("commonName", "a, b"), ("userId", "7")),
        ),
        "subjectAltName": (("DNS", "a.test"), ("DNS", "b.test"), ("URI", "spiffe://a/b")),
    }
    read = partial(_certificate_name, part, str, head("/"), "")
    found = read(certificate)
    assert found is not None
    if name is None:
        assert found.rejection is not None
        assert found.rejection.reason == "has no email"
    else:
        assert found == Identity(name, "certificate")
    assert read(None) is None


def test_a_header_of_proxies_names_a_client_only_from_trusted_proxies() -> None:
    by = "clients: { by: [{ header: X-Forwarded-User }] }\n"
    trusted = loaded(f"trusted_proxies: [10.0.0.0/8]\n{by}{RULES}").naming
    assert trusted is not None
    for peer, name in (("10.0.0.1", "ann"), ("192.0.2.7", ""), ("", "")):
        assert named(trusted, ("X-Forwarded-User", "ann"), peer=peer) == name
    _, warnings = check((by + RULES).encode(), "gateway.yaml", {})
    assert [issue.place for issue in warnings if "trusted" in issue.text] == [
        "clients.by[0].header"
    ]


class TestSeveralCredentials:
    """The first valid credential applies; an invalid one is remembered."""

    NAMES = naming(
        "{ api_key: { header: X-Key, keys: { acme: s3cret } } },"
        " { api_key: { header: X-Key, keys: { other: t0p } } },"
        " { api_key: { query: key, keys: { beta: b } } }, { header: X-Client }"
    )

    @pytest.mark.parametrize(
        ("key", "target", "name", "proof", "rejected"),
        [
            ("s3cret", "/?key=b", "acme", "api_key", False),
            ("t0p", "/", "other", "api_key", False),
            ("wrong", "/?key=b", "beta", "api_key", True),
            ("wrong", "/", digest("wrong"), None, True),
            ("wrong", "/?key=wrong", digest("wrong"), None, True),
        ],
    )
    def test_a_rejection_stays_unless_the_same_credential_is_valid(
        self, key: str, target: str, name: str, proof: str | None, rejected: bool
    ) -> None:
        asked = head(target, ("X-Key", key), ("X-Client", "c"))
        found = self.NAMES.identify(asked, "")
        assert (found.name, found.proof) == (name, proof)
        assert (found.rejection is not None) is rejected

    def test_check_warns_if_no_access_requires_the_credentials(self) -> None:
        by = "clients: { by: [{ api_key: { header: X-Key, keys: { acme: s3cret } } }] }\n"
        for access, warned in (("", ["clients"]), ("access: {}\n", []), ("access: open\n", [])):
            _, warnings = check((access + by + RULES).encode(), "gateway.yaml", {})
            assert [one.place for one in warnings if one.place == "clients"] == warned
