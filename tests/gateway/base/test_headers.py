"""Header fields of forwarded messages are removed, added or replaced, but never reordered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base import headers
from gateway.base.headers import (
    FieldNames,
    HeaderFields,
    end_to_end,
    filtered,
    forwarded_node,
    forwarding,
    is_final_recipient,
    lookalikes,
    retype,
    unforwarded_names,
    watching_filter,
    with_fewer_forwards,
    with_vary,
)
from tests.gateway.world import LAW, head


def lines(*texts: str) -> HeaderFields:
    parts = (text.encode().partition(b": ") for text in texts)
    return [(name, value) for name, _, value in parts]


class TestEndToEnd:
    """Fields that are not forwarded (RFC 9110, section 7.6.1)."""

    @pytest.mark.parametrize(
        "name",
        [
            *("Connection", "connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection"),
            *("Proxy-Authorization", "TE", "te", "Trailer", "Transfer-Encoding", "Upgrade"),
        ],
    )
    def test_hop_by_hop_fields_are_dropped(self, name: str) -> None:
        fields = lines("A: 1", f"{name}: x", "B: 2", f"{name.upper()}: y")
        assert end_to_end(fields, frozenset()) == lines("A: 1", "B: 2")

    def test_other_fields_keep_order_case_and_number(self) -> None:
        fields = lines("b: 1", "A: ", "B: \xe9", "b: 1", "Cookie: x", "Close: 1", "X-Te: 2", ": ")
        assert end_to_end(fields, frozenset()) == fields

    @pytest.mark.parametrize(
        ("connection", "kept"),
        [
            (["close"], ["X-A", "X-B", "Close"]),
            (["keep-alive"], ["X-A", "X-B", "Close"]),
            ([""], ["X-A", "X-B", "Close"]),
            (["x-a"], ["X-B", "Close"]),
            (["X-A, x-b"], ["Close"]),
            (["close ,\tX-B ,"], ["X-A"]),
            (["x-a", "keep-alive, X-b"], ["Close"]),
            (["x-"], ["X-A", "X-B", "Close"]),
        ],
    )
    def test_fields_named_by_connection_are_dropped(
        self, connection: list[str], kept: list[str]
    ) -> None:
        fields = lines("X-A: 1", *(f"Connection: {value}" for value in connection), "X-B: 2")
        fields += lines("Close: 3")
        assert [name.decode() for name, _ in end_to_end(fields, frozenset())] == kept

    def test_listed_fields_are_dropped(self) -> None:
        fields = lines("Host: a", "HOST: b", "Hosts: c", "Connection: X-A", "x-a: 1")
        assert end_to_end(fields, frozenset({b"host"})) == lines("Hosts: c")

    def test_connection_cannot_drop_content_length(self) -> None:
        fields = lines("Connection: Content-Length, A", "content-length: 1", "A: 2")
        assert end_to_end(fields, frozenset()) == lines("content-length: 1")

    def test_fields_may_be_any_iterable(self) -> None:
        fields = lines("A: 1", "Connection: A", "B: 2")
        assert end_to_end(iter(fields), frozenset()) == lines("B: 2")

    @pytest.mark.parametrize(
        "names",
        [headers.HOP_BY_HOP, headers.BYTE_FIELDS, headers.SELECTION_FIELDS, headers.FORWARDING],
        ids=["hop", "bytes", "asks", "forwarding"],
    )
    def test_the_tables_are_in_lower_case(self, names: frozenset[bytes]) -> None:
        assert all(name == name.lower() for name in names)

    @pytest.mark.parametrize(
        "name",
        ["Accept-Ranges", "Content-Length", "Content-Digest", "Repr-Digest", "Content-Encoding"],
    )
    def test_fields_about_the_bytes_are_dropped(self, name: str) -> None:
        assert end_to_end(lines(f"{name}: x", "A: 1"), headers.BYTE_FIELDS) == lines("A: 1")

    def test_only_ranges_of_bytes_are_dropped_with_their_condition(self) -> None:
        for fields, kept in (
            (("Range: bytes=0-1", 'If-Range: "a"', "A: 1"), ("A: 1",)),
            (('If-Range: "a"',), ()),
            (("Range: items=0-1", 'If-Range: "a"'), ("Range: items=0-1", 'If-Range: "a"')),
            (("RANGE: 0-9", "Range:  BYTES=1-"), ("RANGE: 0-9",)),
            (("Range: bytesize=1",), ("Range: bytesize=1",)),
            (("Content-Range: bytes */9", "Accept-Ranges: none"), ()),
            (("Content-Range: posts 0-24/319",), ("Content-Range: posts 0-24/319",)),
        ):
            assert headers.without_byte_ranges(lines(*fields)) == lines(*kept)


names = st.sampled_from([b"A", b"b", b"Connection", b"connection", b"TE", b"Host", b"Close"])
values = st.sampled_from([b"a", b"A, b", b"close", b"host ,", b"", b"connection, te"])


@LAW
@given(
    st.lists(st.tuples(names, values), max_size=6), st.frozensets(st.sampled_from([b"a", b"host"]))
)
def test_forwarded_fields_follow_the_rules_of_http(
    fields: HeaderFields, drop: frozenset[bytes]
) -> None:
    options = {
        option.strip(b" \t").lower()
        for name, value in fields
        if name.lower() == b"connection"
        for option in value.split(b",")
    }
    kept = end_to_end(fields, drop)
    gone = headers.HOP_BY_HOP | drop | (options - {b"close", b"keep-alive"})
    assert [line for line in kept if line[0] != b"Close"] == [
        line for line in fields if line[0].lower() not in gone and line[0] != b"Close"
    ]
    assert end_to_end(kept, drop) == kept


class TestFiltered:
    """Each field name is examined only once, and the cache of names is bounded."""

    def test_watched_fields_are_reported(self) -> None:
        actions = watching_filter(frozenset({b"expect"}))
        fields = lines("VARY: a", "Expect: b", "date: c", "Connection: Close", "X: d")
        kept = lines("VARY: a", "date: c", "X: d")
        for _ in range(2):
            assert filtered(fields, actions) == (kept, [b"vary", b"date", b"connection"])

    def test_fields_with_links_are_watched_by_one_name(self) -> None:
        fields = lines("Location: /a", "content-location: /b", "Link: </c>")
        assert filtered(fields, watching_filter(frozenset())) == (fields, [headers.LINK] * 3)

    def test_ordinary_options_of_connection_are_not_reported(self) -> None:
        fields = lines("Connection: close", "connection: keep-alive", "Connection: Keep-Alive")
        assert filtered(fields, watching_filter(frozenset())) == ([], [])

    def test_each_name_is_examined_once(self) -> None:
        actions = watching_filter(frozenset({b"a"}))
        filtered(lines("A: 1", "b: 2", "TE: 3", "Vary: 4"), actions)
        assert actions.known == {b"A": b"", b"b": None, b"TE": b"", b"Vary": b"vary"}

    def test_long_names_are_not_cached(self) -> None:
        actions = watching_filter(frozenset())
        fields = lines(f"{'a' * 64}: 1", f"{'a' * 65}: 2")
        assert filtered(fields, actions)[0] == fields
        assert list(actions.known) == [b"a" * 64]

    def test_the_cache_of_names_is_bounded(self) -> None:
        actions = watching_filter(frozenset({b"x-1999"}))
        fields = lines(*(f"X-{number}: 1" for number in range(2000)))
        assert filtered(fields, actions)[0] == fields[:-1]
        assert len(actions.known) == 1024


class TestForwarding:
    """The fields Forwarded (RFC 7239) and X-Forwarded-*."""

    @pytest.mark.parametrize(
        ("address", "node"),
        [
            (b"192.0.2.1", b"192.0.2.1"),
            (b"::1", b'"[::1]"'),
            (b"2001:db8::7", b'"[2001:db8::7]"'),
            (b"::ffff:192.0.2.1", b'"[::ffff:192.0.2.1]"'),
            (b"[::1]:80", b'"[::1]:80"'),
            (b"192.0.2.1:80", b'"192.0.2.1:80"'),
            (b"unknown", b"unknown"),
            (b'a";b', b'"a\\";b"'),
        ],
    )
    def test_a_node_that_is_no_token_is_quoted(self, address: bytes, node: bytes) -> None:
        assert forwarded_node(address) == node

    def test_an_untrusted_peer_is_the_client(self) -> None:
        assert forwarding("192.0.2.1", "http", "api.example:8080", ()) == (
            (b"Forwarded", b'for=192.0.2.1;host="api.example:8080";proto=http'),
            (b"X-Forwarded-For", b"192.0.2.1"),
            (b"X-Forwarded-Host", b"api.example:8080"),
            (b"X-Forwarded-Proto", b"http"),
        )

    def test_the_scheme_of_the_client_is_named(self) -> None:
        (_, value), *_, (_, proto) = forwarding("192.0.2.1", "https", "api.example", ())
        assert (value, proto) == (b'for=192.0.2.1;host="api.example";proto=https', b"https")

    def test_an_ipv6_client_is_named_in_brackets(self) -> None:
        assert forwarding("::1", "http", "[::1]:8080", ()) == (
            (b"Forwarded", b'for="[::1]";host="[::1]:8080";proto=http'),
            (b"X-Forwarded-For", b"::1"),
            (b"X-Forwarded-Host", b"[::1]:8080"),
            (b"X-Forwarded-Proto", b"http"),
        )

    def test_a_host_cannot_leave_its_quotes(self) -> None:
        (_, value), *_ = forwarding("192.0.2.1", "http", 'a";for=x\\', ())
        assert value == b'for=192.0.2.1;host="a\\";for=x\\\\";proto=http'

    def test_fields_of_a_trusted_proxy_are_extended(self) -> None:
        inherited = lines(
            "FORWARDED: for=203.0.113.7;proto=https",
            "x-forwarded-for: 203.0.113.7",
            "X-Forwarded-Host: shop.example",
            "X-Forwarded-Proto: https",
        )
        assert forwarding("10.0.0.1", "http", "gateway:8080", tuple(inherited)) == (
            (
                b"Forwarded",
                b'for=203.0.113.7;proto=https, for=10.0.0.1;host="gateway:8080";proto=http',
            ),
            (b"X-Forwarded-For", b"203.0.113.7, 10.0.0.1"),
            (b"X-Forwarded-Host", b"shop.example"),
            (b"X-Forwarded-Proto", b"https"),
        )

    def test_forwarded_is_derived_from_the_other_fields_of_a_trusted_proxy(self) -> None:
        """Spring and Rack prefer Forwarded, which would otherwise name the proxy and its scheme."""
        origin, own = ("https", "shop.example"), b'for=10.0.0.1;host="g";proto=http'
        for fields, derived in (
            ((), b'for=10.0.0.1;host="shop.example";proto=https'),
            (("X-Forwarded-For: ::7",), b'for="[::7]";host="shop.example";proto=https, ' + own),
            (
                ("X-Forwarded-For: 192.0.2.1, , unknown", "X-Forwarded-For: 192.0.2.2:5"),
                b'for=192.0.2.1;host="shop.example";proto=https, for=unknown,'
                b' for="192.0.2.2:5", ' + own,
            ),
            (
                ("X-Forwarded-For: " + "192.0.2.1," * 64,),
                b'for=10.0.0.1;host="shop.example";proto=https',
            ),
        ):
            inherited = tuple(lines(*fields, "X-Forwarded-Proto: https"))
            said = dict(forwarding("10.0.0.1", "http", "g", inherited, origin))
            assert said[b"Forwarded"] == derived
            assert said[b"X-Forwarded-Proto"] == b"https"

    def test_the_other_fields_are_derived_from_forwarded_of_a_trusted_proxy(self) -> None:
        chain = 'for="[::7]:80";proto=https;host=shop.example, For=192.0.2.1'
        inherited = tuple(lines(f"Forwarded: {chain}"))
        said = forwarding("10.0.0.1", "http", "g", inherited, ("https", "shop.example"))
        assert said == (
            (b"Forwarded", chain.encode() + b', for=10.0.0.1;host="g";proto=http'),
            (b"X-Forwarded-For", b"[::7]:80, 192.0.2.1, 10.0.0.1"),
            (b"X-Forwarded-Host", b"shop.example"),
            (b"X-Forwarded-Proto", b"https"),
        )

    def test_several_lines_of_a_trusted_proxy_are_one_list(self) -> None:
        inherited = lines(
            "X-Forwarded-For: 203.0.113.7",
            "Forwarded: for=a",
            "x-forwarded-for: 198.51.100.1, 198.51.100.2",
            "forwarded: for=b, for=c",
        )
        said = dict(forwarding("10.0.0.1", "http", "g", tuple(inherited)))
        assert said[b"X-Forwarded-For"] == (b"203.0.113.7, 198.51.100.1, 198.51.100.2, 10.0.0.1")
        assert said[b"Forwarded"] == b'for=a, for=b, for=c, for=10.0.0.1;host="g";proto=http'

    def test_empty_forwarding_fields_are_ignored(self) -> None:
        inherited = lines(
            "X-Forwarded-For: ", "Forwarded: ", "X-Forwarded-Host: ", "X-Forwarded-Proto: "
        )
        assert forwarding("10.0.0.1", "http", "g", tuple(inherited)) == forwarding(
            "10.0.0.1", "http", "g", ()
        )

    def test_other_forwarding_fields_of_a_trusted_proxy_are_forwarded(self) -> None:
        inherited = lines("X-Forwarded-Prefix: /shop", "x-forwarded-PORT: 443")
        said = forwarding("10.0.0.1", "http", "g", tuple(inherited))
        assert said == (*forwarding("10.0.0.1", "http", "g", ()), *inherited)


class TestVary:
    """Additions to Vary (RFC 9110, section 12.5.5)."""

    @pytest.mark.parametrize(
        ("before", "names", "after"),
        [
            ([], (), []),
            ([], ("Accept",), ["Vary: Accept"]),
            ([], ("X-API-VERSION", "Accept"), ["Vary: X-API-VERSION, Accept"]),
            (["A: 1"], ("Accept",), ["A: 1", "Vary: Accept"]),
            (["Vary: Accept"], ("Accept",), ["Vary: Accept"]),
            (["vary: x,\taccept ,y"], ("Accept",), ["vary: x,\taccept ,y"]),
            (["Vary: Accept-Encoding"], ("Accept",), ["Vary: Accept-Encoding", "Vary: Accept"]),
            (["Vary: Accept"], ("Accept", "X"), ["Vary: Accept", "Vary: X"]),
            (["Vary: X", "Vary: accept"], ("Accept", "X"), ["Vary: X", "Vary: accept"]),
            (["Vary: *"], ("Accept",), ["Vary: *"]),
            (["Vary: "], ("Accept",), ["Vary: ", "Vary: Accept"]),
            (["Vary: Origin"], (), ["Vary: Origin"]),
        ],
    )
    def test_vary_lists_each_name_once(
        self, before: list[str], names: tuple[str, ...], after: list[str]
    ) -> None:
        assert with_vary(lines(*before), names) == lines(*after)

    def test_the_given_fields_are_not_changed(self) -> None:
        fields = lines("Vary: Origin")
        with_vary(fields, ("Accept",))
        assert fields == lines("Vary: Origin")


class TestRetype:
    """Responses get the vendor media type with which the client selected the version."""

    VENDOR = "application/vnd.comp.app-v1+json"

    @pytest.mark.parametrize(
        "given",
        [
            *("application/json", "APPLICATION/JSON", "application/json; charset=utf-8"),
            *(
                "application/json ;x=y",
                "application/other+json",
                "application/vnd.comp.app-v2+json",
            ),
        ],
    )
    def test_json_gets_the_requested_media_type(self, given: str) -> None:
        fields = lines("A: 1", f"content-TYPE: {given}", "B: 2")
        retype(fields, self.VENDOR)
        assert fields == lines("A: 1", f"content-TYPE: {self.VENDOR}", "B: 2")

    @pytest.mark.parametrize(
        "given",
        [
            *("text/html", "application/xml", "application/vnd.comp.app-v1+xml", "text/json"),
            *("application/jsonp", "application/octet-stream", "", "application/x; a=b+json"),
        ],
    )
    def test_other_media_types_are_unchanged(self, given: str) -> None:
        fields = lines(f"Content-Type: {given}")
        retype(fields, self.VENDOR)
        assert fields == lines(f"Content-Type: {given}")

    def test_a_missing_content_type_is_not_added(self) -> None:
        fields = lines("A: application/json")
        retype(fields, self.VENDOR)
        assert fields == lines("A: application/json")


def test_an_upgrade_has_only_connection_and_upgrade() -> None:
    fields = [(b"Connection", b"upgrade"), (b"UPGRADE", b"websocket"), (b"X", b"y")]
    assert headers.upgrade(fields) == [(b"Connection", b"Upgrade"), (b"UPGRADE", b"websocket")]


class TestTrailers:
    """Trailer fields (RFC 9110, section 6.5)."""

    @pytest.mark.parametrize(
        "values",
        [["trailers"], ["gzip;q=0.5, Trailers"], ["gzip", "trailers ;q=0.1"]],
        ids=["alone", "among others", "in a second line"],
    )
    def test_te_accepts_trailers(self, values: list[str]) -> None:
        assert headers.accepts_trailers(values)

    @pytest.mark.parametrize("values", [[], [""], ["gzip"], ["trailer"], ["trailers2"]], ids=str)
    def test_te_does_not_accept_trailers(self, values: list[str]) -> None:
        assert not headers.accepts_trailers(values)

    def test_forbidden_trailer_fields_are_dropped(self) -> None:
        fields = lines("X-A: 1", "content-LENGTH: 2", "Set-Cookie: c", "TE: x", "X-A: 2")
        assert headers.trailer_fields(fields) == lines("X-A: 1", "X-A: 2")


def test_lookalikes_are_the_names_that_cgi_maps_to_one_variable() -> None:
    assert lookalikes(frozenset({b"a-b_c", b"d"})) == {b"a-b-c", b"a_b-c", b"a_b_c"}
    assert lookalikes(frozenset({b"a-b", b"a_b"})) == set()


def test_a_name_of_many_dashes_has_bounded_lookalikes() -> None:
    name = b"-" * 1000
    found = lookalikes(frozenset({name}))
    assert name.replace(b"-", b"_") in found
    assert len(found) <= 1025


def test_read_fields_are_forwarded_but_not_their_lookalikes() -> None:
    assert unforwarded_names(["X-Api-Version"]) - unforwarded_names() == {
        b"x_api_version",
        b"x_api-version",
        b"x-api_version",
    }
    assert {
        b"host",
        b"x-forwarded-for",
        b"x_forwarded_for",
        b"content_length",
    } <= unforwarded_names()


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([], b"private"),
        ([b"public, max-age=60"], b"private, max-age=60"),
        ([b"Public", b"S-MaxAge = 9,must-revalidate"], b"private, must-revalidate"),
        ([b'private="set-cookie, x", max-age=1'], b"private, max-age=1"),
        ([b'no-cache="a,b", , x="\\",public"'], b'private, no-cache="a,b", x="\\",public"'),
        ([b"no-store, s-maxage=1"], b"no-store"),
        ([b"publicly"], b"private, publicly"),
    ],
)
def test_a_response_without_shared_caching_is_private(given: list[bytes], left: bytes) -> None:
    own = [(b"ETag", b'"1"')]
    others = [
        (b"Vary", b"Accept"),
        (b"CDN-Cache-Control", b"max-age=1"),
        (b"Cloudflare-CDN-Cache-Control", b"max-age=1"),
        (b"surrogate-control", b"max-age=1"),
        (b"X-Accel-Expires", b"1"),
    ]
    fields = [*own, *((b"cache-control", value) for value in given), *others]
    assert headers.without_shared_caching(fields) == [
        *own,
        (b"Cache-Control", left),
        (b"Vary", b"*"),
    ]


def test_field_names_are_case_insensitive() -> None:
    names = FieldNames({b"content-length"})
    for _ in range(2):
        assert names.examine(b"Content-Length") == b"content-length"
        assert names.examine(b"CONTENT-LENGTH") == b"content-length"
        assert names.examine(b"Content-Type") is None
    assert names.known == {
        b"Content-Length": b"content-length",
        b"CONTENT-LENGTH": b"content-length",
        b"Content-Type": None,
    }


def test_the_cache_of_field_names_is_bounded() -> None:
    names = FieldNames({b"a"})
    for number in range(5000):
        assert names.examine(b"x-%d" % number) is None
    assert len(names.known) == 1024
    names = FieldNames({b"a" * 65})
    assert names.examine(b"A" * 65) == b"a" * 65
    assert not names.known


def header_lines(*values: str) -> HeaderFields:
    bounds = [(b"max-FORWARDS", value.encode("latin-1")) for value in values]
    return [(b"X-A", b"1"), *bounds, (b"X-B", b"2")]


@pytest.mark.parametrize("values", [("0",), ("000",)])
def test_max_forwards_of_zero_forbids_forwarding(values: tuple[str, ...]) -> None:
    assert is_final_recipient(head("/", *(("max-forwards", value) for value in values)).fields)


ODD = [(), ("",), ("-1",), ("+0",), ("0.0",), ("0, 0",), ("0", "0"), ("x",), ("\xb2",), ("0_0",)]


@pytest.mark.parametrize("values", ODD)
def test_an_invalid_max_forwards_is_unchanged(values: tuple[str, ...]) -> None:
    assert not is_final_recipient(head("/", *(("Max-Forwards", value) for value in values)).fields)
    assert with_fewer_forwards(header_lines(*values)) == header_lines(*values)


@given(st.integers(1, 10**30), st.integers(0, 9))
def test_max_forwards_is_counted_down(number: int, zeros: int) -> None:
    text = "0" * zeros + str(number)
    assert not is_final_recipient(head("/", ("Max-Forwards", text)).fields)
    assert with_fewer_forwards(header_lines(text)) == header_lines(str(min(number - 1, 10**9)))


def test_a_max_forwards_with_many_digits_is_reduced_to_the_maximum() -> None:
    assert with_fewer_forwards(header_lines("9" * 100_000)) == header_lines(str(10**9))


def test_max_forwards_is_never_negative() -> None:
    assert with_fewer_forwards(header_lines("0")) == header_lines("0")
