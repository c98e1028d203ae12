"""The check that a version in a request is configured."""

import pytest

from gateway.findings.operator import check_known
from tests.gateway.rules.rules import RULES, loaded


def test_a_known_version_is_accepted() -> None:
    check_known(("person", "2"), loaded(RULES))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("persn", "1"), "no API is called 'persn'; did you mean 'person'?"),
        (("person", "3"), "person has no version '3'; known: 1, 2"),
        (("users", "1"), "users has no version '1'; known: none"),
    ],
)
def test_an_unknown_version_is_refused_with_a_suggestion(key: tuple[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=r"known|mean") as caught:
        check_known(key, loaded(RULES))
    assert str(caught.value) == said
