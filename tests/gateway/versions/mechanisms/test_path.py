"""The mechanism `{ in: path }`: the path always has a version, so a default is invalid."""

import pytest

from gateway.versions.mechanisms.path import PathReader
from tests.gateway.rules.rules import RULES, edited, loaded, report
from tests.gateway.world import PATH, head


@pytest.mark.parametrize("raw", ["1", "01", "1.0", "%31", "\u0660", "1%2F2", "a b"])
def test_the_version_in_the_path_is_not_decoded(raw: str) -> None:
    assert PATH.read(head("/"), {"version": raw}) == (raw,)


def test_a_path_mechanism_compiles_to_its_reader() -> None:
    found = loaded(RULES).router.find("/v1/person")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (PathReader(),)
    assert found[0].selector.default is None


def test_a_default_for_a_path_mechanism_is_a_mistake() -> None:
    assert report(edited("{ in: path }", '{ in: path, default: "1" }')) == [
        "8:60: apis.person.endpoints[0].version.default: unknown key; known: in"
    ]
