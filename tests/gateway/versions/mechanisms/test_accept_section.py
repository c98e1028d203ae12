"""`{ in: accept }`: a media type with the version in it."""

from gateway.versions.mechanisms.accept import AcceptReader
from tests.gateway.rules.rules import edited, loaded, report


def test_reader() -> None:
    found = loaded(edited('"a/b-v{version}+json"', '"A/b-{version}"')).router.find("/accept")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (AcceptReader("a/b-", ""),)
    assert found[0].vary == ("Accept",)


def test_not_a_media_type() -> None:
    (line,) = report(edited('"a/b-v{version}+json"', "a/b"))
    assert "apis.person.endpoints[3].version.media_type: not a media type" in line
