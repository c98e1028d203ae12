"""The pattern of a media type with the version in it, as mechanisms that read one are given it."""

import re
from collections.abc import Iterable

from gateway.base.mistakes import Location, Mistakes

# A media type (RFC 6838, section 4.2) with one place for the version in its subtype.
_MEDIA_TYPE = re.compile(
    r"([a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9!#$&^_.+-]*)\{version\}([a-z0-9!#$&^_.+-]*)\Z"
)


def parse_media_type(
    text: str, labels: Iterable[str], at: Location, mistakes: Mistakes
) -> tuple[str, str] | None:
    """Return what stands before and after `{version}`, in lower case, or None.

    Args:
        text: such as `application/vnd.example-v{version}+json`.
        labels: of the versions that it is to name.
        at: where the text stands.
        mistakes: collects what is wrong.
    """
    match = _MEDIA_TYPE.match(text.lower())
    if match is None:
        mistakes.add(
            "not a media type with one {version} in its subtype; write one like"
            " application/vnd.example-v{version}+json",
            *at,
        )
        return None
    for label in labels:
        if label != label.lower():
            mistakes.add(
                f"media types are read in lower case, so that '{label}' would never be found"
                " there; write the version in lower case",
                *at,
            )
    return match[1], match[2]
