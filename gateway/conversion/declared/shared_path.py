"""Shared paths: a path that two templates match, to tell whether one request can be of both."""

from gateway.base.path_templates import Segment, Template

ANY = "~any~"
"""What stands in a path for a capture. It is no text that a path of the rules has."""


def shared_path(one: Template, other: Template) -> str | None:
    """Return a path that two templates match, as general as it can be; None if there is none."""
    count = max(len(one.segments), len(other.segments))
    segments = _stretched(one, count), _stretched(other, count)
    if len(segments[0]) != len(segments[1]):
        return None
    texts = [_shared_text(*pair) for pair in zip(*segments, strict=True)]
    return None if None in texts else "".join(f"/{text}" for text in texts)


def _stretched(template: Template, count: int) -> tuple[Segment, ...]:
    """Return as many segments of a template as are asked for, where the last takes the rest."""
    *others, last = template.segments
    if not last.tail:
        return template.segments
    return (*others, *[last._replace(tail=False)] * (count - len(others) - 1), last)


def _shared_text(one: Segment, other: Segment) -> str | None:
    """Return a text that two segments match; None if there is none."""
    text = next((each.prefix for each in (one, other) if each.capture is None), None)
    if text is None:
        prefix = max(one.prefix, other.prefix, key=len)
        text = f"{prefix}{ANY}{max(one.suffix, other.suffix, key=len)}"
    return text if _matches(one, text) and _matches(other, text) else None


def _matches(segment: Segment, text: str) -> bool:
    if segment.capture is None:
        return text == segment.prefix
    # A rest may end in a slash.
    return segment.match(text) is not None or (segment.tail and not text)
