"""The content coding that a client prefers, by Accept-Encoding (RFC 9110, section 12.5.3)."""

import re
from collections.abc import Sequence
from functools import lru_cache

CODINGS = ("zstd", "gzip", "br")
"""The codings of answers, the preferred one first where a client has no preference."""

_MEMBER = re.compile(
    r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:[ \t]*;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?\Z"
)
# The longest list that is read, in characters. Clients send less; one of 64 KiB takes 20 ms.
_LONGEST = 1024


def accepted_coding(values: Sequence[str]) -> str | None:
    """Return the coding that a client prefers, or None where it wants none, or names none.

    A list that is too long gets no coding, which every client has to take.
    """
    text = ",".join(values)
    return _preferred(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=256)  # clients send few different values
def _preferred(text: str) -> str | None:
    weights: dict[str, float] = {}
    for member in text.split(","):
        match = _MEMBER.match(member.strip(" \t"))
        if match is not None:
            name = match[1].lower()
            weights.setdefault("gzip" if name == "x-gzip" else name, float(match[2] or 1))
    other = weights.get("*", 0.0)
    best = max(CODINGS, key=lambda coding: weights.get(coding, other))
    weight = weights.get(best, other)
    # Without being named, identity is acceptable, and no better than any coding.
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None
