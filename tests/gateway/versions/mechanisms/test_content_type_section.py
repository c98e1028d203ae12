"""`{ in: content_type }`: the media type of bodies with the version in it."""

from gateway.versions.mechanisms.content_type import ContentTypeReader
from tests.gateway.rules.rules import edited, loaded, report

QUERY = "{ in: query, name: version }"


def test_reader() -> None:
    text = edited(QUERY, "{ in: content_type, media_type: 'A/b-v{version}+json', default: '1' }")
    found = loaded(text).router.find("/param")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (ContentTypeReader("a/b-v", "+json"),)
    assert str(found[0].selector.default) == "1"
    assert found[0].vary == ("Content-Type",)


def test_not_a_media_type() -> None:
    assert report(edited(QUERY, "{ in: content_type, media_type: 'a/b' }")) == [
        (
            "9:54: apis.person.endpoints[1].version.media_type: not a media type with one {version}"
            " in its subtype; write one like application/vnd.example-v{version}+json"
        )
    ]
