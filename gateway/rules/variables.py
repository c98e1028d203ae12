"""Environment variables in strings of gateway.yaml, in the syntax of Compose and the shell."""

import re
from collections.abc import Iterable, Mapping

# A default may contain pairs of braces, such as `/v{version}` or other variables.
_BALANCED = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")
# Shorter values are not treated as secrets, since they may occur in messages by chance.
_SHORTEST_SECRET = 4
_VARIABLE = re.compile(
    rf"\$(?:(?P<dollar>\$)"
    rf"|\{{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<when>:?-)(?P<default>{_BALANCED}))?\}}"
    r"|(?P<broken>\{))"
)


class UnsetVariablesError(ValueError):
    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.reasons = [
            f"the environment variable {name} is not set; set it, or give a default:"
            f" ${{{name}:-default}}"
            for name in self.names
        ]
        super().__init__("; ".join(self.reasons))


def fill(text: str, environment: Mapping[str, str]) -> str:
    """Return a string with its variables replaced by their values.

    `${NAME}` is the value of a variable. `${NAME:-default}` is the default if the variable is unset
    or empty. `${NAME-default}` is the default only if the variable is unset. `$$` is a dollar sign.
    Variables within values are not replaced.

    Raises:
        UnsetVariablesError: variables are not set. The error has all their names.
        ValueError: a variable is malformed. The message is for the operator.
    """
    unset: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        if match["broken"]:
            raise ValueError(
                "'${' does not begin a variable; write ${NAME} or ${NAME:-default}, and $${ for a "
                "literal ${"
            )
        name, default = match["name"], match["default"]
        found = environment.get(name)
        if found is None or (not found and match["when"] == ":-"):
            if default is None:
                unset.append(name)
                return ""
            try:
                return fill(default, environment)
            except UnsetVariablesError as error:
                unset.extend(error.names)
                return ""
        if not found.isascii() and any("\ud800" <= letter <= "\udfff" for letter in found):
            raise ValueError(f"the environment variable {name} is not UTF-8; set it to UTF-8 text")
        return found

    filled = _VARIABLE.sub(value, text)
    if unset:
        raise UnsetVariablesError(unset)
    return filled


def names(texts: Iterable[str]) -> dict[str, bool]:
    """Return the names of the variables in strings, in order, and whether each may be unset."""
    found: dict[str, bool] = {}
    for text in texts:
        for match in _VARIABLE.finditer(text):
            if match["name"]:
                default = match["default"]
                found[match["name"]] = found.get(match["name"], True) and default is not None
                for inner in names([default or ""]):
                    found.setdefault(inner, True)
    return found


def hide(message: str, filled: str, written: str) -> str:
    """Return a message whose quoted parts show variables instead of their values.

    Args:
        filled: a string of the configuration with the values, which may be secrets.
        written: the same string with the variables.
    """
    if "'" in filled:  # the closing quote is ambiguous
        return re.sub(r"'.*'", lambda _: f"'{written}'", message, flags=re.DOTALL)

    def one(match: re.Match[str]) -> str:
        quoted = match[1]
        return f"'{written if quoted in filled else quoted.replace(filled, written)}'"

    return re.sub(r"'([^']*)'", one, message) if filled else message


def secrets(texts: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    names = {name for text in texts for name in _NAME.findall(text)}
    return {
        environment[name]: f"${{{name}}}"
        for name in names
        if len(environment.get(name, "")) >= _SHORTEST_SECRET
    }


def hide_values(message: str, values: Mapping[str, str]) -> str:
    """Return a message in which variables such as `${NAME}` replace their values."""
    if not any(value in message for value in values):
        return message
    longest_first = sorted(values, key=len, reverse=True)
    found = re.compile("|".join(map(re.escape, longest_first)))
    return found.sub(lambda match: values[match[0]], message)


_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)\Z", re.DOTALL)
_QUOTED = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")[ \t]*(?:#.*)?\Z""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANINGS = {"n": "\n", **{letter: letter for letter in '"\\$`'}}


class EnvironmentFileError(ValueError):
    """An invalid environment file. The message has the line number but no value."""


def parse_environment(content: bytes, source: str) -> dict[str, str]:
    """Return the variables of an environment file; a malformed line raises EnvironmentFileError.

    If a name is repeated, its last value is used.
    """
    found: dict[str, str] = {}
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            line = raw.decode().strip(" \t\r")
            if line and not line.startswith("#"):
                name, value = _variable(line)
                found[name] = value
        except UnicodeDecodeError:
            raise EnvironmentFileError(
                f"{source}:{number}: not UTF-8; save the file as UTF-8"
            ) from None
        except ValueError as error:
            raise EnvironmentFileError(f"{source}:{number}: {error}") from None
    return found


def _variable(line: str) -> tuple[str, str]:
    if "\0" in line:
        raise ValueError("has a null character, which is invalid in a variable; remove it")
    found = _LINE.match(line)
    if found is None:
        raise ValueError("not a variable; write NAME=value, or # before a comment")
    name, value = found[1], found[2]
    if value[:1] not in ("'", '"'):
        return name, value
    quoted = _QUOTED.match(value)
    if quoted is None:
        raise ValueError(
            f"the value of {name} begins with a quote and does not end with it; close the quote, or"
            " quote the whole value in the other kind"
        )
    if quoted[1] is not None:
        return name, quoted[1]
    return name, _ESCAPED.sub(lambda match: _MEANINGS.get(match[1], match[0]), quoted[2])
