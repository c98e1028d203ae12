r"""Environment files: the variables of gateway.yaml, one `NAME=value` a line.

White space around a name and a value does not count, nor does `export` before a name. A line that
is empty or begins with `#` is skipped; further on, `#` and `$` are parts of a value. A value in
single quotes is what stands between them. In double quotes, a backslash before `"`, `\`, `$` or a
backquote stands for that character, and `\n` is a line break. Nothing may follow the second quote
but white space and a comment.
"""

import re

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)\Z", re.DOTALL)
_QUOTED = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")[ \t]*(?:#.*)?\Z""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANINGS = {"n": "\n", **{letter: letter for letter in '"\\$`'}}


class EnvironmentFileError(ValueError):
    """A file that is no environment file; the message has its line and shows no value."""


def parse_environment(content: bytes, source: str) -> dict[str, str]:
    """Return the variables of an environment file; the last one of a name counts.

    Args:
        content: the content of the file.
        source: the name of the file in messages.

    Raises:
        EnvironmentFileError: a line is neither a variable nor a comment, or not UTF-8.
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
        raise ValueError("has a null character, which no variable can hold; remove it")
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
