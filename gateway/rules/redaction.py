"""Redaction: the text of a configuration file without its secrets."""

import re
from collections.abc import Iterator

from gateway.rules.document import MappingNode, Node, ScalarNode, YamlError, compose, extents

_HIDDEN = "(hidden)"
# Keys whose value is a secret, and keys below which every string is a secret.
_SECRET = frozenset({"hash", "key", "password", "secret", "token"})
_SECRETS = frozenset({"keys"})
_NOT_SECRET = frozenset({"expires", "scopes", "sha256"})
# Sections in which keys have a different meaning: the URL of a webhook is a secret, `key` in TLS is
# a path, and `key` of a change is the name of a field.
_WEBHOOKS, _TLS, _CHANGES = "webhooks", "tls", "changes"
_API, _ELSEWHERE = "api", "elsewhere"
_PLACES = {
    ("", "admin"): "admin",
    ("admin", "tls"): _TLS,
    ("", "apis"): "apis",
    (_API, "conversions"): _CHANGES,
    (_API, "groups"): _CHANGES,
    (_CHANGES, "examples"): _ELSEWHERE,
}
# A secret of at least this length is hidden wherever it occurs in the file.
_SHORTEST = 4
_PUBLIC = "BEGIN PUBLIC KEY"
_VARIABLE = re.compile(r"\$\{[A-Za-z0-9_]+\}\Z")
# The user and password before the @ of a URL, unless the password is a variable, or a database URL
# has only a user. A database password may contain a slash, a quote or a blank by mistake.
_USER = re.compile(
    r"(?<=://)(?!(?:[^/\s:]*:)?\$\{[A-Za-z0-9_]+\}@)"
    r"(?:(?<=sql://)(?=[^@\n]{0,999}:)(?:(?! #).){1,999}|(?<!sql://)[^/\s\"']+)(?=@)"
)
_QUERY = re.compile(r"(?i)([?&](?:api_?key|key|password|secret|sig|token)=)[^&\s\"'#]+")
# A key in a commented-out line. Matching begins at the first #, so repeated # take linear time.
_COMMENT = re.compile(r"(?m)(^[^#\n]*#.*?\b(?:hash|keys?|password|secret|token|url)[\"']?:\s+)\S.*")
_LINE = re.compile(r"(?m)^([ \t]*)\S.*$")


def redacted(content: bytes) -> str | None:
    """Return the file with `(hidden)` for each literal secret; None if it is not YAML.

    A variable such as `${NAME}` is not a secret.
    """
    try:
        text = _without(content)
    except YamlError:
        return None
    return _COMMENT.sub(rf"\1{_HIDDEN}", text)


def _without(content: bytes) -> str:
    root = compose(content)
    found = [] if root is None else [*_secrets(root)]
    text, places = content.decode("utf-8-sig"), extents(content)
    # Secrets are replaced by position, since quoted strings may contain escapes. The replacement
    # begins at the end of the file, so that positions stay valid.
    for begin, end in sorted({places[node.position] for node in found}, reverse=True):
        text = text[:begin] + _masked(text[begin:end]) + text[end:]
    parts = {part.strip() for node in found for part in node.text.splitlines()}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _SHORTEST:
            text = text.replace(part, _HIDDEN)
    return _QUERY.sub(rf"\1{_HIDDEN}", _USER.sub(_HIDDEN, text))


def _masked(written: str) -> str:
    """Return a scalar whose value is hidden, but with its quotes, block indicator and line ends."""
    if written.startswith(("|", ">")):
        sign, _, lines = written.partition("\n")
        return f"{sign}\n" + _LINE.sub(rf"\1{_HIDDEN}", lines)
    quote = written[0] if written.startswith(("'", '"')) else ""
    return quote + _HIDDEN + "\n" * written.count("\n") + quote


def _secrets(root: Node) -> Iterator[ScalarNode]:
    seen: set[tuple[int, bool, str]] = set()
    waiting: list[tuple[Node, bool, str]] = [(root, False, "")]
    while waiting:
        node, inside, section = waiting.pop()
        # Aliases share nodes and may contain themselves, so each node is visited once per section.
        if (id(node), inside, section) in seen:
            continue
        seen.add((id(node), inside, section))
        if isinstance(node, ScalarNode):
            if inside and node.text and not _VARIABLE.match(node.text) and _PUBLIC not in node.text:
                yield node
        elif isinstance(node, MappingNode):
            for key, value in node.pairs:
                name = key.text if isinstance(key, ScalarNode) else ""
                below = _place(section, name)
                found = inside or (name in _SECRETS and section != _CHANGES)
                found = found and not (inside and name in _NOT_SECRET)
                if isinstance(value, ScalarNode):
                    found |= name in _SECRET and section not in (_TLS, _CHANGES)
                    found |= name == "url" and section == _WEBHOOKS
                waiting.append((value, found, below))
        else:
            waiting += ((item, inside, section) for item in node.items)


def _place(section: str, name: str) -> str:
    if section == "apis":
        return _API
    if name == _WEBHOOKS and section != _CHANGES:
        return _WEBHOOKS
    kept = section if section in (_WEBHOOKS, _TLS, _CHANGES) else _ELSEWHERE
    return _PLACES.get((section, name), kept)
