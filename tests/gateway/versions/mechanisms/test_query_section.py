"""`{ in: query }`: a parameter by any name that is not empty."""

from gateway.versions.mechanisms.query import QueryReader
from tests.gateway.rules.rules import edited, loaded, report


def test_reader() -> None:
    text = edited("{ in: query, name: version }", '{ in: query, name: "api v", default: "2" }')
    found = loaded(text).router.find("/param")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (QueryReader("api v"),)
    assert str(found[0].selector.default) == "2"


def test_a_name_that_is_empty() -> None:
    (line,) = report(edited("{ in: query, name: version }", '{ in: query, name: "" }'))
    assert line.endswith("apis.person.endpoints[1].version.name: must not be empty")
