"""What maps and types say, wherever they stand: in bodies, queries and header fields."""

from gateway.config.changes import conversion_section as model
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.conversion.document import Number
from gateway.core.conversion.values import Scalar


def scalar(word: object) -> Scalar:
    """Return a word of a map as documents have it."""
    return word if isinstance(word, str | bool) else Number(str(word))


def spelt(word: Scalar) -> str:
    """Return a word as a text."""
    if isinstance(word, bool):
        return "true" if word else "false"
    return word.digits if isinstance(word, Number) else word


def way_back(config: model.MapConfig, at: Location, mistakes: Mistakes) -> dict[Scalar, Scalar]:
    """Return what the older version's words are in the newer one."""
    back: dict[Scalar, list[str]] = {}
    for newer, known in config.values.items():
        back.setdefault(scalar(known), []).append(newer)
    words: dict[Scalar, Scalar] = {
        word: names[0] for word, names in back.items() if len(names) == 1
    }
    for text, known in config.back.items():
        # A key is a text in YAML, whatever it is in documents.
        word = next((word for word in back if spelt(word) == text), text)
        words[word] = scalar(known)
    for word, names in back.items():
        if word not in words:
            mistakes.add(
                f"{' and '.join(names)} become the same; say what that becomes on the way back:"
                f" back: {{ {spelt(word)}: {names[0]} }}",
                *at,
                "values",
            )
    return words


def checked_scale(config: model.TypeConfig, at: Location, mistakes: Mistakes) -> int | None:
    """Return how many places an integer scales by, 0 without one, or None after a mistake."""
    sides = (config.newer, config.older)
    if config.newer == config.older:
        mistakes.add("is the type that it has already; remove the change", *at, "older")
        return None
    if "integer" not in sides:
        if config.scale is not None:
            mistakes.add("goes with an integer, which counts the last place", *at, "scale")
        return 0
    if config.scale is None or "boolean" in sides:
        mistakes.add(
            "an integer counts the smallest unit of a text or a number; add scale, such as"
            " scale: 2 for cents, or write number",
            *at,
        )
        return None
    return config.scale
