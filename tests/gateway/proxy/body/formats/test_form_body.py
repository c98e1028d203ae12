"""Forms: converted by the changes of JSON bodies, as objects of texts."""

import pytest

from gateway.core.conversion.document import ConversionError
from gateway.proxy.body.formats.form_body import convert_form
from tests.gateway.proxy.body.formats.rules import conversion

ADDED = "channel=web&tries=3"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("", ""),
        ("title=Ada", "name=Ada"),
        ("title=Ada+K%C3%B6nig%26Co", "name=Ada+K%C3%B6nig%26Co"),
        ("other=&x=1&x=2", "other=&x=1&x=2"),
        ("size=1.50", "size=1.50"),
        ("cents=12.50", "cents=1250"),
        ("state=1", "state=OPEN"),
        ("kind=false", "kind=B"),
        ("archived=true", "active=false"),
        ("full=Ada+King", "first=Ada&last=King"),
    ],
)
def test_an_upgrade(older: str, newer: str) -> None:
    expected = f"{newer}&{ADDED}" if newer else ADDED
    assert convert_form(older.encode(), conversion()).decode() == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"title=%ff", "the body: not a form in UTF-8"),
        ("title=ä".encode(), "the body: not a form in UTF-8"),
        (b"state=7", "/state: a string that is not in the map"),
        (b"archived=maybe", "/active: expected a boolean, found a string"),
        (b"cents=a", "/cents: "),
        (b"email=a", "/customer: an object, which a form cannot hold"),
    ],
)
def test_what_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(ConversionError) as error:
        convert_form(body, conversion())
    assert str(error.value).startswith(message)
