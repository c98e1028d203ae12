"""Environment variables in the texts of gateway.yaml, as Compose and the shell write them."""

import re
from collections.abc import Mapping

# What a default may hold: braces in pairs, so that it may hold `/v{version}` or other variables.
_BALANCED = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
_VARIABLE = re.compile(
    rf"\$(?:(?P<dollar>\$)"
    rf"|\{{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<when>:?-)(?P<default>{_BALANCED}))?\}}"
    r"|(?P<broken>\{))"
)


def fill(text: str, environment: Mapping[str, str]) -> str:
    """Return the text with its variables filled in.

    `${NAME}` is a value, `${NAME:-default}` where it is unset or empty the default, and
    `${NAME-default}` only where it is unset; `$$` is a dollar sign. A value is taken as it is.

    Raises:
        ValueError: with a sentence for the operator, when there is no value or no such form.
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
    """Return a message in which what it quotes of a filled text is as the file has it.

    Values may be secrets, and messages go to logs.

    Args:
        message: what is wrong with the text; what it quotes stands in single quotes.
        filled: the text with the values of variables.
        written: the text with their names.
    """
    if "'" in filled:  # where the quotation ends cannot be told
        return re.sub(r"'.*'", lambda _: f"'{written}'", message, flags=re.DOTALL)

    def one(match: re.Match[str]) -> str:
        quoted = match[1]
        return f"'{written if quoted in filled else quoted.replace(filled, written)}'"

    return re.sub(r"'([^']*)'", one, message) if filled else message
