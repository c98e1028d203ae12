"""A media type with one place for the version in its subtype."""

import pytest

from gateway.base.mistakes import Mistakes
from gateway.versions.mechanisms.media_type import parse_media_type


@pytest.mark.parametrize(
    ("text", "around"),
    [
        ("a/b-v{version}+json", ("a/b-v", "+json")),
        ("App/X{version}", ("app/x", "")),
        ("a/{version}.b", ("a/", ".b")),
        ("a/b", None),
        ("a{version}/b", None),
        ("a/b{version}{version}", None),
        ("a/b{version};q=1", None),
        ("a/b{version}\n", None),
    ],
)
def test_pattern(text: str, around: tuple[str, str] | None) -> None:
    mistakes = Mistakes()
    assert parse_media_type(text, ["1"], ("here",), mistakes) == around
    assert [mistake.location for mistake in mistakes.found] == ([] if around else [("here",)])


def test_a_version_that_is_never_found() -> None:
    mistakes = Mistakes()
    parse_media_type("a/b{version}", ["1.0.0", "1.0.0-RC"], ("here",), mistakes)
    (mistake,) = mistakes.found
    assert "so that '1.0.0-RC' would never be found there" in mistake.text
