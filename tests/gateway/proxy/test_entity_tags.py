"""Entity tags of converted responses: for the client, back for the service, and in conditions."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import FaultError
from gateway.proxy.message_rewriting import (
    client_tag,
    current_tag,
    service_conditions,
    service_tags,
)
from gateway.routing.endpoint import tag_key
from tests.gateway.world import LAW

KEY = tag_key(("1", "2", "rules"))
OTHER = tag_key(("2", "3", "rules"))
OPAQUE = st.binary(max_size=6).filter(
    lambda text: not set(text) - set(b"!#$(),-./09AZ^_az~\x80\xff")
)
CODINGS = st.sampled_from([None, "gzip", "br", "zstd"])


def test_the_key_of_entity_tags_depends_only_on_its_parts() -> None:
    """The test contains the key literally, because it must be equal in all workers and releases."""
    assert KEY == b".1b8ea6cd925c"
    parts = [("1", "2", "rules"), ("2", "1", "rules"), ("12", "rules"), ("1", "2", "rule"), ()]
    assert len({tag_key(each) for each in parts}) == 5


@pytest.mark.parametrize(
    ("tag", "coding", "strong", "weak"),
    [
        (b'"a"', None, b'"a%b"', b'W/"a%b.w"'),
        (b'W/"a"', None, b'W/"a%b"', b'W/"a%b"'),
        (b' ""\t', "gzip", b'"%b.gzip"', b'W/"%b.w.gzip"'),
        (b'W/"a,b"', "br", b'W/"a,b%b.br"', b'W/"a,b%b.br"'),
    ],
)
def test_a_tag_for_the_client_ends_with_the_key_and_the_coding(
    tag: bytes, coding: str | None, strong: bytes, weak: bytes
) -> None:
    assert client_tag(KEY, tag, coding) == strong % KEY
    assert client_tag(KEY, tag, coding, weak=True) == weak % KEY


@pytest.mark.parametrize("tag", [b"a", b"", b'"a', b'w/"a"', b'"a b"', b'"a", "b"', b"*"])
def test_a_malformed_tag_of_the_service_is_dropped(tag: bytes) -> None:
    assert client_tag(KEY, tag, None) is None


@LAW
@given(OPAQUE, st.sampled_from([b"", b"W/"]), CODINGS, st.booleans())
def test_a_tag_of_the_client_converts_back_to_the_tag_of_the_service(
    opaque: bytes, prefix: bytes, coding: str | None, weak: bool
) -> None:
    tag = b'%b"%b"' % (prefix, opaque)
    given_tag = client_tag(KEY, tag, coding, weak=weak)
    assert given_tag is not None
    assert service_tags(KEY, given_tag) == tag
    assert service_tags(OTHER, given_tag) == b""


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"*", b"*"),
        (b" * ", b"*"),
        (b'"a%b", W/"b%b.gzip" ,"c,%b"', b'"a", W/"b", "c,"'),
        (b'"a", "b%b", "c%b.x", x', b'"b"'),
        (b'"a%b.w", "b%bx"', b""),
        (b"a%b", b""),
        (b'"a"', b""),
        (b"", b""),
    ],
)
def test_unknown_tags_are_not_sent_to_the_service(value: bytes, wanted: bytes) -> None:
    assert service_tags(KEY, value.replace(b"%b", KEY)) == wanted


def test_a_tag_made_weak_for_the_client_is_only_accepted_as_weak() -> None:
    assert service_tags(KEY, b'"a%b.w"' % KEY) == b""
    assert service_tags(KEY, b'W/"a%b.w"' % KEY) == b'"a"'
    assert service_tags(KEY, b'W/"a%b"' % KEY) == b'W/"a"'


def test_conditions_beyond_the_size_limit_are_refused() -> None:
    half = b'"",' * 1366  # 4,098 bytes
    fields = [(b"If-None-Match", half), (b"If-Match", half[:-4])]
    assert [name for name, _ in service_conditions(KEY, fields)] == [b"If-Match"]
    with pytest.raises(FaultError, match="headers_too_large"):
        service_conditions(KEY, [(b"If-None-Match", half), (b"if-match", half)])


def test_conditions_keep_their_meaning_without_a_known_tag() -> None:
    since, other = (b"If-Modified-Since", b"then"), (b"If-Unmodified-Since", b"then")
    ours, none = b'"a%b"' % KEY, b'"none%b"' % KEY
    conditions = partial(service_conditions, KEY)
    assert conditions([(b"If-Match", ours), since]) == [(b"If-Match", b'"a"'), since]
    assert conditions([(b"if-match", b'"a"'), other]) == [(b"if-match", none), other]
    assert conditions([(b"If-None-Match", b'"a"'), since, other]) == [other]
    assert conditions([(b"If-None-Match", b'"a"'), (b"IF-NONE-MATCH", ours), since]) == [
        (b"IF-NONE-MATCH", b'"a"'),
        since,
    ]
    assert conditions([(b"If-None-Match", b"*"), (b"X", b"y")]) == [
        (b"If-None-Match", b"*"),
        (b"X", b"y"),
    ]
    date = (b"If-Range", b"Sun, 01 Nov 2026 00:00:00 GMT")
    assert conditions([date, (b"Range", b"bytes=0-9")]) == [date, (b"Range", b"bytes=0-9")]
    assert conditions([(b"if-range", ours)]) == [(b"if-range", b'"a"')]
    for value in (b'"a"', b"W/" + ours):
        assert conditions([(b"If-Range", value)]) == [(b"If-Range", none)]


def test_a_304_has_the_tag_that_the_client_sent() -> None:
    given_tags = [b'"b%b"' % KEY, b'"a", W/"a%b.gzip", "a%b"' % (KEY, KEY)]
    assert current_tag(KEY, b'"a"', given_tags, None) == b'"a%b.gzip"' % KEY
    assert current_tag(KEY, b'"a"', given_tags, None, weak=True) == b'W/"a%b.gzip"' % KEY
    assert current_tag(KEY, b'W/"a"', given_tags, None) == b'W/"a%b.gzip"' % KEY
    assert current_tag(KEY, b'"c"', given_tags, "br") == b'"c%b.br"' % KEY
    assert current_tag(KEY, b'"c"', [], None) == b'"c%b"' % KEY
