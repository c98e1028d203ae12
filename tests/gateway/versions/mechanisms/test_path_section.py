"""`{ in: path }`: the path has the version, and so no default."""

from gateway.versions.mechanisms.path import PathReader
from tests.gateway.rules.rules import RULES, edited, loaded, report


def test_reader() -> None:
    found = loaded(RULES).router.find("/v1/person")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (PathReader(),)
    assert found[0].selector.default is None


def test_it_has_no_default() -> None:
    assert report(edited("{ in: path }", '{ in: path, default: "1" }')) == [
        "8:60: apis.person.endpoints[0].version.default: unknown key; known: in"
    ]
