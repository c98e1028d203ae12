"""`include`: a configuration in several files, as one text.

The text of the main file is followed by the texts of the files that it includes, each after a line
`--- # file: NAME`. Reloads, the hash that a fleet compares, the page, positions in messages and the
workers all use this text.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from gateway.base.files import MAX_BYTES, Stamp, read_regular, stamp
from gateway.base.mistakes import ConfigError, Issue

KEY = "include"
SECTIONS = ("services", "apis")
"""The sections of an included file."""
_MARK = re.compile(rb"^--- # file: (.+)$", re.MULTILINE)
_INCLUDE = re.compile(rb"(?m)^[\"']?include[\"']?[ \t]*:")
_START = re.compile(r"---[ \t]*(?:#.*)?$", re.MULTILINE)
_GLOB = re.compile(r"[*?\[]")


def place_of(content: bytes, line: int) -> tuple[str, int]:
    """Return the file of a line, and the number of lines before the file.

    The name of the main file is empty. A separator belongs to the file before it.
    """
    found = "", 0
    for name, start in marks(content):
        if start >= line:
            break
        found = name, start
    return found


def marks(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield the name of each included file, and the line number of its separator."""
    for match in _MARK.finditer(content):
        name = match[1].decode(errors="replace").rstrip("\r")
        yield name, content.count(b"\n", 0, match.start()) + 1


def with_included(path: Path, content: bytes, patterns: object) -> tuple[bytes, dict[Path, Stamp]]:
    """Return the text with the included files, and the stamps of these and of their folders.

    Raises:
        ConfigError: a file cannot be read, or a pattern matches no file.
    """
    folder, texts = path.parent, [content]
    stamps: dict[Path, Stamp] = {}
    for index, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
        if not isinstance(pattern, str):
            continue  # validation reports it
        names = [pattern]
        if _GLOB.search(pattern):
            place = (folder / pattern).parent
            stamps[place] = stamp(place)
            names = sorted(
                str(Path(pattern).parent / one.name) for one in place.glob(Path(pattern).name)
            )
            if not names:
                raise _refused(path, index, f"'{pattern}' matches no file; add one, or remove it")
        for name in names:
            stamps[folder / name] = stamp(folder / name)
            try:
                text = read_regular(folder / name).decode("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not UTF-8"
                raise _refused(path, index, f"'{name}' cannot be read: {reason}") from None
            if not name.isprintable():
                raise _refused(path, index, f"'{name}' has unprintable characters; rename the file")
            # The separator starts the document, so a `---` in the file becomes an empty line.
            document = _START.sub("", text, count=1) if _starts(text) else text
            texts.append(f"--- # file: {name}\n{document}".encode())
    joined = b"\n".join(one.removesuffix(b"\n") for one in texts) + b"\n"
    if len(joined) > MAX_BYTES:
        raise _refused(
            path, 0, f"the files have more than {MAX_BYTES // 2**20} MiB in total; remove some"
        )
    return joined if stamps else content, stamps


def may_include(content: bytes) -> bool:
    """Return whether a text has `include`, but not yet the included files."""
    return _INCLUDE.search(content) is not None and _MARK.search(content) is None


def _starts(text: str) -> bool:
    """Return whether a file begins with `---`, after comments at most."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return _START.match(next(lines, "")) is not None


def _refused(path: Path, index: int, text: str) -> ConfigError:
    return ConfigError(str(path), [Issue(0, 0, f"{KEY}[{index}]", text)])
