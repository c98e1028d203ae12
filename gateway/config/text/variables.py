"""Environment variables in the texts of gateway.yaml, in the syntax of Compose and the shell."""

import re
from collections.abc import Iterable, Mapping

# A default may hold pairs of braces, such as `/v{version}` or other variables.
_BALANCED = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
# A shorter value is no secret, and may stand in any message by chance.
_SHORTEST_SECRET = 4
_VARIABLE = re.compile(
    rf"\$(?:(?P<dollar>\$)"
    rf"|\{{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<when>:?-)(?P<default>{_BALANCED}))?\}}"
    r"|(?P<broken>\{))"
)


def fill(text: str, environment: Mapping[str, str]) -> str:
    """Return the text with its variables replaced by their values.

    `${NAME}` is the value of a variable. `${NAME:-default}` is the default if the variable is unset
    or empty, `${NAME-default}` only if it is unset. `$$` is a dollar sign. Values are not parsed.

    Raises:
        ValueError: a variable is not set or not well formed; the message is for the operator.
    """

    def value(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        if match["broken"]:
            raise ValueError(
                "'${' begins no variable; write ${NAME} or ${NAME:-default}, and $${ for the text"
            )
        name, default = match["name"], match["default"]
        found = environment.get(name)
        if found is None or (not found and match["when"] == ":-"):
            if default is None:
                raise ValueError(
                    f"the environment variable {name} is not set; set it, or give a default:"
                    f" ${{{name}:-default}}"
                )
            return fill(default, environment)
        if not found.isascii() and any("\ud800" <= letter <= "\udfff" for letter in found):
            raise ValueError(f"the environment variable {name} is not UTF-8; set it to a text")
        return found

    return _VARIABLE.sub(value, text)


def hide(message: str, filled: str, written: str) -> str:
    """Return a message whose quotes have the names of variables instead of their values.

    Values may be secrets, and messages go to logs.

    Args:
        message: the message; its quotes are in single quotes.
        filled: the text with the values of variables.
        written: the text with the names of variables.
    """
    if "'" in filled:  # the end of the quote is ambiguous
        return re.sub(r"'.*'", lambda _: f"'{written}'", message, flags=re.DOTALL)

    def one(match: re.Match[str]) -> str:
        quoted = match[1]
        return f"'{written if quoted in filled else quoted.replace(filled, written)}'"

    return re.sub(r"'([^']*)'", one, message) if filled else message


def hide_elsewhere(message: str, texts: Iterable[tuple[str, str]]) -> str:
    """Return a message in which no filled text stands as a whole.

    Args:
        message: what is wrong with some other text.
        texts: filled texts, each with the text that has the names of its variables.
    """
    written = {
        filled: text
        for filled, text in texts
        if len(filled) >= _SHORTEST_SECRET and filled in message and text not in message
    }
    if not written:
        return message
    longest_first = sorted(written, key=len, reverse=True)
    found = re.compile("|".join(map(re.escape, longest_first)))
    return found.sub(lambda match: written[match[0]], message)
