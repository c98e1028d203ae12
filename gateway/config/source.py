"""The text of gateway.yaml: YAML with environment variables, every value with its line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

# PyYAML: the one with a C scanner, so that ten thousand endpoints load in a second.
import yaml

from gateway.config.report import ConfigError, Issue, Location, place

Data = dict[str, "Data"] | list["Data"] | str | int | float | bool | None

# What Compose and the shell know: ${NAME}, ${NAME:-default} (unset or empty), ${NAME-default}
# (unset); and $$ for a dollar sign.
_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<op>:?-)?(?P<default>(?<=-)[^}]*)?\}"
    r"|(?P<broken>\{))"
)

# The core schema of YAML 1.2 (section 10.3.2): `no` is a text, a date is a text, `0o17` and
# `.inf` have no use here.
_PLAIN = (
    (re.compile(r"(?:null|Null|NULL|~|)\Z"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE)\Z"), lambda _: True),
    (re.compile(r"(?:false|False|FALSE)\Z"), lambda _: False),
    (re.compile(r"[-+]?[0-9]{1,18}\Z", re.ASCII), int),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII), float),
)

# Aliases may share nodes, even with themselves; what they unfold to is bounded.
_MAX_NODES = 1_000_000
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a configuration and where each part of it stands.

    Attributes:
        data: mappings, lists and scalars.
        marks: (line, column), from 1, of the key or element at each location.
    """

    data: Data
    marks: Mapping[Location, tuple[int, int]]

    def issue(self, location: Location, text: str) -> Issue:
        """Return an issue at a location, or at the nearest container that is there."""
        known = location
        while known and known not in self.marks:
            known = known[:-1]
        line, column = self.marks.get(known, (1, 1))
        return Issue(line, column, place(location), text)


def read(content: bytes, source: str, environment: Mapping[str, str]) -> Document:
    """Return the document that a file holds.

    Variables are put in after parsing, so that a value can never become structure.

    Raises:
        ConfigError: not YAML, a key that stands twice, or a variable that is not set.
    """
    try:
        root = yaml.compose(content.decode(), Loader=yaml.CSafeLoader)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            source, [Issue(line, 1, "", "not UTF-8; save the file as such")]
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        what = ", ".join(str(part) for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise ConfigError(source, [Issue(line, column, "", f"not YAML: {what}")]) from None
    except yaml.YAMLError as error:
        what = str(error).partition("\n")[0]
        raise ConfigError(source, [Issue(0, 0, "", f"not YAML: {what}")]) from None
    builder = _Builder(environment)
    data = builder.build(root, ()) if root is not None else None
    if builder.issues:
        raise ConfigError(source, builder.issues)
    return Document(data, builder.marks)


@dataclass(slots=True)
class _Builder:
    environment: Mapping[str, str]
    marks: dict[Location, tuple[int, int]] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)

    def build(self, node: yaml.Node, location: Location) -> Data:
        self.marks.setdefault(location, _position(node))
        if len(self.marks) > _MAX_NODES or len(location) > _MAX_DEPTH:
            if not self.issues:
                self._complain(node, location, "too large or too deep; does an alias hold itself?")
            return None
        match node:
            case yaml.MappingNode():
                return self._mapping(node, location)
            case yaml.SequenceNode():
                return [
                    self.build(item, (*location, index)) for index, item in enumerate(node.value)
                ]
            case _:
                assert isinstance(node, yaml.ScalarNode)
                return self._scalar(node, location)

    def _mapping(self, node: yaml.MappingNode, location: Location) -> Data:
        data: dict[str, Data] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                self._complain(key_node, location, "a key is a text, not a list or mapping")
            elif not key_node.style and not isinstance(_plain(key), str):
                self._complain(
                    key_node, (*location, key), f'a key is a text; write it in quotes: "{key}"'
                )
            elif key in data:
                line, _ = self.marks[(*location, key)]
                self._complain(
                    key_node,
                    (*location, key),
                    f"stands twice, first in line {line}; keep one of the two",
                )
            else:
                self.marks[(*location, key)] = _position(key_node)
                data[key] = self.build(value_node, (*location, key))
        return data

    def _scalar(self, node: yaml.ScalarNode, location: Location) -> Data:
        text = _VARIABLE.sub(lambda match: self._variable(match, node, location), node.value)
        return text if node.style else _plain(text)

    def _variable(self, match: re.Match[str], node: yaml.Node, location: Location) -> str:
        if match["dollar"]:
            return "$"
        if match["broken"]:
            self._complain(
                node,
                location,
                "'${' begins no variable; write ${NAME} or ${NAME:-default}, and $${ for the text",
            )
            return ""
        value = self.environment.get(match["name"])
        if value is None or (not value and match["op"] == ":-"):
            if match["default"] is None:
                self._complain(
                    node,
                    location,
                    f"the environment variable {match['name']} is not set; set it, or give a"
                    f" default: ${{{match['name']}:-default}}",
                )
            return match["default"] or ""
        return value

    def _complain(self, node: yaml.Node, location: Location, text: str) -> None:
        line, column = _position(node)
        self.issues.append(Issue(line, column, place(location), text))


def _position(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _plain(text: str) -> Data:
    for pattern, value in _PLAIN:
        if pattern.match(text):
            return value(text)
    return text
