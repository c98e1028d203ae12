"""API keys in gateway.yaml: where they are, and the names of their owners."""

import pytest

from gateway.access.clients import digest
from tests.gateway.access.named import naming
from tests.gateway.world import head


@pytest.mark.parametrize(("place", "target"), [("header: K", "/"), ("query: K", "/?K=s3cret")])
def test_a_listed_key_has_the_name_of_its_owner(place: str, target: str) -> None:
    names = naming(f"{{ api_key: {{ {place}, keys: {{ acme: s3cret }} }} }}")
    fields = [("K", "s3cret")] if target == "/" else []
    assert names.name(head(target, *fields), "192.0.2.7") == "acme"


def test_another_key_has_its_hash_for_a_name() -> None:
    names = naming("{ api_key: { header: K, keys: { acme: s3cret } } }")
    assert names.name(head("/", ("K", "other")), "192.0.2.7") == digest("other")
    assert names.name(head("/"), "192.0.2.7") == ""
