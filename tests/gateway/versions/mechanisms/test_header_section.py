"""`{ in: header }`: a header that means nothing else."""

import pytest

from gateway.versions.mechanisms.header import HeaderReader
from tests.gateway.rules.rules import edited, loaded, report


def test_reader() -> None:
    text = edited("X-API-VERSION }", 'Api-Version, default: "1" }')
    found = loaded(text).router.find("/header")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.readers == (HeaderReader("Api-Version"),)
    assert found[0].vary == ("Api-Version",)


@pytest.mark.parametrize("name", ["Host", "content-type", "Sunset", "X-Request-Id"])
def test_a_header_that_means_something_else(name: str) -> None:
    (line,) = report(edited("X-API-VERSION }", f"{name} }}"))
    assert line.endswith(
        "apis.person.endpoints[2].version.name: has a meaning of its own already;"
        " choose another, like X-API-Version"
    )
