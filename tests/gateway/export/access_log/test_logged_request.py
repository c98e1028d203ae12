"""Lines of the access log, as Envoy writes them by the configuration that `export` gives it."""

import json

import pytest

from gateway.core.clients import AddressName, ClientNaming, HeaderName
from gateway.export.access_log.logged_request import LoggedRequest, read_line

LINE = {
    "flags": "-",
    "method": "GET",
    "milliseconds": 250,
    "path": "/v1/person",
    "route": "straight person 1 /v{version}/person",
    "status": 200,
    "time": "1970-01-01T00:00:02.500Z",
}
FOUND = LoggedRequest("person", "1", "/v{version}/person", "", failed=False, at=2.5, seconds=0.25)


def line(**changed: object) -> bytes:
    return json.dumps(LINE | changed).encode()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, FOUND),
        ({"route": "straight person  /person"}, FOUND._replace(version="", endpoint="/person")),
        ({"milliseconds": None}, FOUND._replace(seconds=None)),
        ({"status": 503, "flags": "UF"}, FOUND._replace(failed=True)),
        ({"status": 0, "flags": "DC"}, FOUND._replace(failed=True)),
        ({"status": 404}, FOUND),
        ({"fields": {"x-client": "acme"}, "address": "192.0.2.7"}, FOUND),
        ({"route": "everything else"}, None),
        ({"route": None}, None),
    ],
)
def test_a_line(changed: dict[str, object], found: LoggedRequest | None) -> None:
    assert read_line(line(**changed), None) == found


NAMING = ClientNaming((HeaderName("X-Client"), AddressName()))


@pytest.mark.parametrize(
    ("changed", "client"),
    [
        ({"fields": {"x-client": "acme"}, "address": "192.0.2.7"}, "acme"),
        ({"fields": {"x-client": None}, "address": "192.0.2.7"}, "192.0.2.7"),
        ({"address": "::ffff:192.0.2.7"}, "192.0.2.7"),
        ({"fields": {}}, ""),
    ],
)
def test_a_client_is_named_by_the_rules(changed: dict[str, object], client: str) -> None:
    found = read_line(line(**changed), NAMING)
    assert found is not None
    assert found.client == client


def test_what_is_not_utf_8_is_read_all_the_same() -> None:
    found = read_line(line(fields={"x-client": "AB"}).replace(b"AB", b"A\xff"), NAMING)
    assert found is not None
    assert found.client == "A\ufffd"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "Input data was truncated"),
        (line()[:40], "Input data was truncated"),
        (line() + line(), "JSON is malformed"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field"),
        (line(status="200"), "Expected `int`"),
        (line(time="yesterday"), "Invalid isoformat"),
        (b'{"a":' * 100_000, "recursion"),
    ],
)
def test_what_is_no_entry_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_line(text, None)
