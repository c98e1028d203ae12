"""Clients: the first source that says something names who asks, safely."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.clients import (
    AddressName,
    ClaimName,
    ClientNaming,
    ClientSource,
    HeaderName,
    KeyName,
    Proof,
    QueryName,
    digest,
)
from gateway.base.addresses import plain_address, trusts
from gateway.base.client_names import ANONYMOUS, LONGEST
from gateway.base.request import RequestHead
from tests.gateway.world import LAW, head

CLIENT = HeaderName("X-Client")
KEY = b"k" * 32


def named(*sources: ClientSource, asked: RequestHead, peer: str = "", key: bytes = b"") -> str:
    """Return the name of who asks."""
    return ClientNaming(sources, key).name(asked, peer)


class TestSources:
    """What each source says."""

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
    def test_a_header(self, fields: list[tuple[str, str]], name: str) -> None:
        assert named(CLIENT, asked=head("/", *fields)) == name

    @pytest.mark.parametrize(
        ("target", "name"),
        [("/?key=a%20b&key=c", "a b"), ("/?key=", ANONYMOUS), ("/", ANONYMOUS)],
    )
    def test_a_query_parameter(self, target: str, name: str) -> None:
        assert named(QueryName("key"), asked=head(target)) == name

    def test_an_api_key_is_its_owner_or_a_hash(self) -> None:
        source = KeyName(CLIENT, {digest("s3cret"): "acme"})
        assert named(source, asked=head("/", ("X-Client", "s3cret"))) == "acme"
        unknown = named(source, asked=head("/", ("X-Client", "other")))
        assert unknown == digest("other") != digest("s3cret")
        assert named(source, asked=head("/")) == ANONYMOUS
        assert named(source, asked=head("/", ("X-Client", ""))) == ANONYMOUS
        assert "s3cret" not in repr(source)

    @pytest.mark.parametrize(
        ("sent", "name"),
        [
            ("Bearer good", "bob"),
            ("bearer  good", "bob"),
            ("good", "bob"),
            ("Basic good", ANONYMOUS),
            ("Bearer bad", ANONYMOUS),
            ("Bearer", ANONYMOUS),
            ("", ANONYMOUS),
        ],
    )
    def test_a_claim(self, sent: str, name: str) -> None:
        source = ClaimName(CLIENT, "sub", {"good": {"sub": "bob"}}.get)
        assert named(source, asked=head("/", ("X-Client", sent))) == name

    @pytest.mark.parametrize(
        ("value", "name"),
        [("bob", "bob"), (7, "7"), (True, ""), (None, ""), (["bob"], ""), (1.5, ""), ("", "")],
    )
    def test_a_claim_is_a_text_or_a_whole_number(self, value: object, name: str) -> None:
        source = ClaimName(CLIENT, "sub", lambda _: {"sub": value})
        assert named(source, asked=head("/", ("X-Client", "token"))) == name
        assert named(source, asked=head("/")) == ANONYMOUS


PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


class TestAddress:
    """Of the peer, or of the one behind the proxies that are trusted."""

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
    def test_of_the_peer(self, peer: str, name: str) -> None:
        liar = head("/", ("X-Forwarded-For", "1.2.3.4"))
        assert named(AddressName(), asked=liar, peer=peer) == name

    @pytest.mark.parametrize(
        ("peer", "name"),
        [("192.0.2.7", "192.0.2.0/24"), ("2001:db8:1:2:3::1", "2001:db8:1:2::/64")],
    )
    def test_of_its_network(self, peer: str, name: str) -> None:
        assert named(AddressName(24, 64), asked=head("/"), peer=peer) == name

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
    def test_of_who_a_trusted_proxy_asks_for(self, field: str, value: str, name: str) -> None:
        asked = head("/", (field, value))
        source = AddressName(trusted=PROXIES)
        assert named(source, asked=asked, peer="10.0.0.1") == name
        assert named(source, asked=asked, peer="198.51.100.1") == "198.51.100.1"

    def test_several_lines_are_one_list(self) -> None:
        lines = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-For", "192.0.2.7, 10.0.0.2")]
        source = AddressName(trusted=PROXIES)
        assert named(source, asked=head("/", *lines), peer="10.0.0.1") == "192.0.2.7"

    @pytest.mark.parametrize(
        ("given", "forwarded", "name"),
        [
            ("6.6.6.6, 192.0.2.7", "for=192.0.2.7", "192.0.2.7"),
            ("6.6.6.6", "for=192.0.2.7", "10.0.0.1"),  # one of the two is a client's own
            ("192.0.2.7", "for=6.6.6.6, for=192.0.2.7:80", "192.0.2.7"),
            ("192.0.2.7, 10.0.0.2", "for=9.9.9.9, for=10.0.0.2", "10.0.0.2"),
            ("192.0.2.7, _x", "for=192.0.2.7, for=_x", "10.0.0.1"),
        ],
    )
    def test_two_fields_count_as_far_as_they_agree(
        self, given: str, forwarded: str, name: str
    ) -> None:
        asked = head("/", ("X-Forwarded-For", given), ("Forwarded", forwarded))
        assert named(AddressName(trusted=PROXIES), asked=asked, peer="10.0.0.1") == name


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
def test_whose_word_is_believed(peer: str, trusted: bool) -> None:
    """On an IPv6 socket, an IPv4 proxy has an address of both kinds."""
    assert trusts(PROXIES, peer) is trusted
    assert not trusts((), peer)


class TestProof:
    """A name that is only claimed never stands for the client that proved it."""

    PROVEN = KeyName(HeaderName("X-Key"), {digest("s3cret"): "acme"})

    def test_a_claim_is_marked_where_credentials_are_checked(self) -> None:
        sources = (self.PROVEN, CLIENT, AddressName())
        assert named(*sources, asked=head("/", ("X-Key", "s3cret"), ("X-Client", "b"))) == "acme"
        assert named(*sources, asked=head("/", ("X-Client", "acme"))) == "unverified:acme"
        assert named(*sources, asked=head("/"), peer="192.0.2.7") == "192.0.2.7"
        assert named(CLIENT, AddressName(), asked=head("/", ("X-Client", "acme"))) == "acme"

    def test_a_key_of_an_unknown_owner_proves_itself_alone(self) -> None:
        source = KeyName(HeaderName("X-Key"), {})
        assert source.proof is Proof.POSSESSION
        assert named(source, CLIENT, asked=head("/", ("X-Client", "acme"))) == "acme"
        assert named(source, CLIENT, asked=head("/", ("X-Key", "k"))) == digest("k")

    def test_a_token_without_a_key_is_a_claim(self) -> None:
        token = ClaimName(HeaderName("X-Token"), "sub", lambda _: {"sub": "acme"}, Proof.CLAIM)
        asked = head("/", ("X-Token", "t"))
        assert named(token, asked=asked) == "acme"
        assert named(self.PROVEN, token, asked=asked) == "unverified:acme"

    def test_no_claim_looks_like_what_it_is_not(self) -> None:
        hashed = digest("other")
        for sources in ((CLIENT,), (self.PROVEN, CLIENT)):
            for claimed in (hashed, "unverified:acme"):
                name = named(*sources, asked=head("/", ("X-Client", claimed)))
                assert name.removeprefix("unverified:") == digest(claimed)

    def test_an_operator_may_mean_the_client_that_only_claims(self) -> None:
        naming = ClientNaming((self.PROVEN, CLIENT))
        assert naming.known_as("acme") == "acme"
        assert naming.known_as("unverified:acme") == "unverified:acme"
        keyed = ClientNaming((self.PROVEN, CLIENT), KEY)
        claimed = keyed.name(head("/", ("X-Client", "acme")), "")
        assert keyed.known_as("unverified:acme") == claimed == f"unverified:{digest('acme', KEY)}"


def test_the_first_that_says_something_names_the_client() -> None:
    both = (CLIENT, AddressName())
    assert named(*both, asked=head("/", ("X-Client", "acme")), peer="192.0.2.7") == "acme"
    assert named(*both, asked=head("/", ("X-Client", "")), peer="192.0.2.7") == "192.0.2.7"
    blank = QueryName("key")
    assert named(blank, CLIENT, asked=head("/?key=%20", ("X-Client", "acme"))) == "acme"
    assert named(*both, asked=head("/")) == ANONYMOUS


@pytest.mark.parametrize(
    "name",
    [
        "a\u115f",
        "a\ufe0f",
        "a\u2800",
        "\u3164",
        "a\u200b",
        "a\ud800",
        "a\x1b[31m",
        "a\nb",
        "a\0",
        "a\u202eb",
        "\u2028",
        "n" * (LONGEST + 1),
        "(anonymous)",
        "(others)",
    ],
    ids=lambda name: ascii(name)[:12],
)
def test_what_would_spoil_a_line_or_a_table_is_hashed(name: str) -> None:
    shown = named(CLIENT, asked=head("/", ("X-Client", name)))
    assert shown == digest(name)
    assert len(shown) == 17


def test_with_a_key_every_name_is_a_hash_that_only_the_key_gives() -> None:
    asked = head("/", ("X-Client", "acme"))
    shown = named(CLIENT, asked=asked, key=KEY)
    assert shown == digest("acme", KEY) != digest("acme")
    assert named(CLIENT, asked=asked, key=b"other") != shown
    assert "kkk" not in repr(ClientNaming((), KEY))


@pytest.mark.parametrize("key", [b"", KEY], ids=["plain", "hashed"])
def test_an_operator_may_write_the_name_or_what_is_shown_for_it(key: bytes) -> None:
    naming = ClientNaming((CLIENT,), key)
    shown = naming.name(head("/", ("X-Client", "acme")), "")
    assert naming.known_as("acme") == shown
    assert naming.known_as(shown) == shown


@LAW
@given(st.text(st.characters(codec=None), max_size=80), st.binary(max_size=64))
def test_a_name_is_short_and_printable(text: str, key: bytes) -> None:
    shown = named(CLIENT, asked=head("/", ("X-Client", text)), key=key)
    assert len(shown) <= LONGEST
    assert shown.isprintable()
    assert bool(shown) == bool(text.strip(" \t").strip(" "))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::ffff:1", "2001:db8::ffff:1"),
        ("::ffff:0:1", "::ffff:0:1"),
    ],
)
def test_a_mapped_address_is_that_of_ipv4(text: str, address: str) -> None:
    assert plain_address(text) == address
