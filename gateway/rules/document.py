"""gateway.yaml as a document: its values, with variables replaced, and the position of each part.

Positions are needed only for messages, so they are looked up on demand.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import NamedTuple, NoReturn, Protocol, TypeVar

# PyYAML: the events of libyaml have positions, and its C scanner reads 10,000 endpoints in a
# second. ruamel.yaml and yamlium scan in Python, which takes ten times as long.
import yaml
from yaml.reader import ReaderError

from gateway.base.mistakes import ConfigError, Issue, Location, place
from gateway.rules.included import SECTIONS, marks, place_of
from gateway.rules.variables import UnsetVariablesError, fill, hide, hide_values, names, secrets

MAX_DEPTH = 64
MAX_NODES = 500_000
"""The maximum number of keys and values in a file. 10,000 routes need a fifth of this number."""
# The maximum number of values after aliases are expanded. Aliases can multiply values, and can
# contain themselves.
_MAX_UNFOLDED = 250_000
Position = tuple[int, int]
"""Line and column, both counted from 1; (0, 0) if libyaml reports no position."""
Data = dict[str, "Data"] | list["Data"] | str | int | float | bool | None

_REMEDIES = {
    "cannot start any token": "indent with spaces, and quote strings that begin with this "
    "character",
    "expected alphabetic or numeric": "quote strings that begin with * or &",
    "expected ',' or": "close the bracket, and quote strings that contain brackets or braces",
    "mapping values are not allowed": (
        "indent the lines of a block equally, end a key with a colon, quote strings that contain "
        "': '"
    ),
    "expected key": "indent the lines of a block equally",
    "expected '-'": "indent the lines of a block equally",
    "block sequence entries": "begin the list on a separate line",
    "expected ':'": "put a colon and a space after the key",
    "unexpected end of stream": "close the quote",
    "escape character": "double the backslash, or use single quotes",
}


class ScalarNode(NamedTuple):
    """A scalar as a string. `plain` means that it is not quoted, so it may be a number."""

    position: Position
    tag: str | None
    text: str
    plain: bool


class SequenceNode(NamedTuple):
    position: Position
    tag: str | None
    items: "list[Node]"


class MappingNode(NamedTuple):
    """Keys with values in the order of the file. A key may occur twice."""

    position: Position
    tag: str | None
    pairs: "list[tuple[Node, Node]]"


Node = ScalarNode | SequenceNode | MappingNode
"""A node. Its tag is None if the file has no tag there. Aliases share nodes and may contain
themselves."""
AnyNode = TypeVar("AnyNode", ScalarNode, SequenceNode, MappingNode)


class YamlError(Exception):
    def __init__(self, position: Position, text: str) -> None:
        self.issue = Issue(*position, "", text)
        super().__init__(text)


def compose(content: bytes) -> Node | None:
    """Return the root of the document in a file, or None if it is empty; raises YamlError.

    The services and APIs of included files become those of the file.
    """
    try:
        included = {line for _, line in marks(content)}
        return _Composer(yaml.parse(content.decode(), Loader=yaml.CSafeLoader), included).document()
    except UnicodeDecodeError as error:
        raise YamlError(_at(content, error.start), "not UTF-8; save the file as UTF-8") from None
    except ReaderError as error:
        what = f"the control character U+{int(error.character):04X}; remove it"
        raise YamlError(_at(content, error.position), f"not YAML: {what}") from None
    except yaml.MarkedYAMLError as error:
        parts = [str(part) for part in (error.context, error.problem) if part]
        parts[-1] += next((f"; {_REMEDIES[said]}" for said in _REMEDIES if said in parts[-1]), "")
        raise YamlError(_position(error.problem_mark), f"not YAML: {', '.join(parts)}") from None


def extents(content: bytes) -> dict[Position, tuple[int, int]]:
    """Return the start and end of each scalar in a valid file, by its position.

    Both are indexes into the text without a byte order mark.
    """
    found = {}
    for event in yaml.parse(content.decode("utf-8-sig"), Loader=yaml.CSafeLoader):
        begin, end = event.start_mark, event.end_mark
        if isinstance(event, yaml.ScalarEvent) and begin is not None and end is not None:
            found[_position(begin)] = begin.index, end.index
    return found


class _Composer:
    # PyYAML's composer in C recurses, so deep nesting crashes the process. PyYAML's composer in
    # Python takes 40 % more time and memory. Both refuse repeated anchors.

    def __init__(self, events: Iterator[yaml.Event], included: Container[int]) -> None:
        self._events = events
        self._included = included
        self._anchors: dict[str, Node] = {}
        self._nodes_left = MAX_NODES

    def document(self) -> Node | None:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)  # the end of the document
        while not isinstance(event := next(self._events), yaml.StreamEndEvent):
            if _position(event.start_mark)[0] not in self._included:
                _refuse(event, "the file has a second document; keep only one, without ---")
            self._anchors.clear()
            _include(root, self._node(next(self._events), 0))
            next(self._events)
        return root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if depth > MAX_DEPTH:
            _refuse(event, f"nested more than {MAX_DEPTH} levels deep")
        self._nodes_left -= 1
        if self._nodes_left < 0:  # a node takes much more memory than its text
            _refuse(event, f"more than {MAX_NODES} keys and values")
        position = _position(event.start_mark)
        node: Node
        match event:
            case yaml.AliasEvent(anchor=name):
                if name not in self._anchors:
                    _refuse(event, f"no anchor &{name} comes before this alias *{name}; add it")
                return self._anchors[name]
            case yaml.ScalarEvent(tag=tag, value=text, style=style):
                node = self._anchored(event, ScalarNode(position, tag, text, plain=not style))
            case yaml.SequenceStartEvent(tag=tag):
                # Stored before its elements, since an element may be an alias of the sequence.
                node = self._anchored(event, SequenceNode(position, tag, []))
                node.items.extend(self._nodes(depth + 1))
            case _:
                assert isinstance(event, yaml.MappingStartEvent)
                node = self._anchored(event, MappingNode(position, event.tag, []))
                nodes = self._nodes(depth + 1)
                node.pairs.extend(zip(nodes, nodes, strict=True))  # a key, its value, a key ...
        return node

    def _nodes(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            yield self._node(event, depth)

    def _anchored(self, event: yaml.NodeEvent, node: AnyNode) -> AnyNode:
        if event.anchor:
            self._anchors[event.anchor] = node
        return node


def _include(root: Node, other: Node) -> None:
    """Add the sections of an included file to the root; raises YamlError."""
    if isinstance(other, ScalarNode) and not other.text:
        return  # the file is empty
    text = (
        f"an included file may only have {' and '.join(SECTIONS)}; move the rest to the main file"
    )
    if not (isinstance(other, MappingNode) and isinstance(root, MappingNode)):
        raise YamlError(other.position, text)
    for key, value in other.pairs:
        if not (isinstance(key, ScalarNode) and key.text in SECTIONS):
            raise YamlError(key.position, text)
        same = (mine for name, mine in root.pairs if name[2:] == key[2:])
        if isinstance(value, MappingNode) and isinstance(mine := next(same, None), MappingNode):
            mine.pairs.extend(value.pairs)
        elif not isinstance(value, ScalarNode) or value.text:
            root.pairs.append((key, value))


class _Mark(Protocol):
    # The common interface of PyYAML's two mark classes.
    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


def _refuse(event: yaml.Event, text: str) -> NoReturn:
    raise YamlError(_position(event.start_mark), text)


def _position(mark: _Mark | None) -> Position:
    return (mark.line + 1, mark.column + 1) if mark else (0, 0)


def _at(content: bytes, offset: int) -> Position:
    return content.count(b"\n", 0, offset) + 1, offset - content.rfind(b"\n", 0, offset)


def _integer(text: str) -> Data:
    if len(text) > 18:  # at most 64 bits, for other JSON parsers
        raise ValueError("the number is too large; write it in quotes if it is a string")
    return int(text)


def _float(text: str) -> Data:
    number = float(text)
    if not isfinite(number):
        raise ValueError("the number is too large; write it in quotes if it is a string")
    if Decimal(text) != Decimal(repr(number)):  # bodies would contain a different number
        raise ValueError("the number has too many digits; write it in quotes if it is a string")
    return number


# The core schema of YAML 1.2 (section 10.3.2), without `0o17` and `.inf`. `no` and dates are
# strings.
_PLAIN: tuple[tuple[re.Pattern[str], Callable[[str], Data]], ...] = (
    (re.compile(r"(?:null|Null|NULL|~|)\Z"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE)\Z"), lambda _: True),
    (re.compile(r"(?:false|False|FALSE)\Z"), lambda _: False),
    (re.compile(r"[-+]?[0-9]+\Z", re.ASCII), _integer),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII), _float),
)
# The tags that are accepted but have no effect.
_STANDARD = "tag:yaml.org,2002:"
_TAGS = (None, f"{_STANDARD}map", f"{_STANDARD}seq", f"{_STANDARD}str")

# Mappings whose keys are labels or names of clients. Their keys may look like numbers.
_NAMED = ("versions", "aliases", "pins")

_Entries = dict[str, tuple[ScalarNode, Node]]


@dataclass(slots=True)
class YamlDocument:
    """The data of a configuration. Its issues have positions, and never show values of variables.

    Attributes:
        texts: for each string with variables: the string with their values, and the string in the
            file.
        content: the content of the file, which is parsed again in the rare case that positions are
            needed.
    """

    data: Data
    texts: Mapping[Location, tuple[str, str]]
    values: Mapping[str, str]
    content: bytes
    _nodes: "tuple[Node | None, _Reader] | None" = None

    def position(self, location: Location) -> Position:
        """Return the position of the key or element at a location, or of the nearest container."""
        return self._find(location)[1]

    def issue(self, location: Location, text: str) -> Issue:
        """Return an issue at the position of a location, or of the nearest existing container."""
        known, position, _ = self._find(location)
        if known in self.texts:
            text = hide(text, *self.texts[known])
        # A message may also quote values from other locations.
        return _placed(
            Issue(*position, place(location), hide_values(text, self.values)), self.content
        )

    def written_number(self, location: Location) -> str | None:
        """Return the text of an unquoted number, such as `1.10`; None for other values."""
        known, _, node = self._find(location)
        if known != location or not isinstance(node, ScalarNode) or not node.plain:
            return None
        value = next((value for pattern, value in _PLAIN if pattern.match(node.text)), None)
        return node.text if value in (_integer, _float) else None

    def _find(self, location: Location) -> tuple[Location, Position, Node | None]:
        if self._nodes is None:
            self._nodes = compose(self.content), _Reader({})
        node, reader = self._nodes
        position = (1, 1) if node is None else node.position
        for depth, step in enumerate(location):
            entries = {}
            if isinstance(node, MappingNode):
                entries = reader.merge(node, location[:depth])
            if step in entries:
                key, node = entries[str(step)]
                position = key.position
            elif (
                isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.items)
            ):
                node = node.items[step]
                position = node.position
            else:
                return location[:depth], position, node
        return location, position, node


@dataclass(slots=True)
class _Reader:
    environment: Mapping[str, str]
    content: bytes = b""
    texts: dict[Location, tuple[str, str]] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    _entries: dict[int, _Entries] = field(default_factory=dict)
    _unfolded: int = 0

    def value(self, node: Node, location: Location) -> Data:
        self._check_depth(node, location)
        self._unfolded += 1
        if self._unfolded > _MAX_UNFOLDED:
            raise YamlError(
                node.position, f"its aliases expand to more than {_MAX_UNFOLDED} values"
            )
        if node.tag not in _TAGS:
            tag = node.tag.replace(_STANDARD, "!!")
            self._complain(node, location, f"the tag {tag} is not supported; remove it")
        if isinstance(node, ScalarNode):
            return self._scalar(node, location)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*location, index)) for index, item in enumerate(node.items)]
        return {
            key: self.value(value, (*location, key))
            for key, (_, value) in self.merge(node, location).items()
        }

    def merge(self, node: MappingNode, location: Location) -> _Entries:
        """Return the keys with their values; `<<` merges other mappings, as in YAML 1.1."""
        if id(node) in self._entries:
            return self._entries[id(node)]
        self._check_depth(node, location)
        # Stored before it is complete, since a mapping may be merged into itself.
        entries = self._entries[id(node)] = {}
        merged: list[MappingNode] = []
        for key_node, value_node in node.pairs:
            if not isinstance(key_node, ScalarNode):
                self._complain(key_node, location, "a key must be a string, not a list or mapping")
                continue
            key = key_node.text
            here = (*location, key)
            if key == "<<" and key_node.plain:
                merged += self._mappings(value_node, here)
            elif key_node.plain and _is_value(key, location):
                self._complain(
                    key_node, here, f'a key must be a string; write it in quotes: "{key}"'
                )
            elif key in entries:
                first = _placed(Issue(*entries[key][0].position, "", ""), self.content)
                line = f"line {first.line}{f' of {first.file}' if first.file else ''}"
                self._complain(
                    key_node, here, f"occurs twice, first in {line}; remove one of the two"
                )
            else:
                entries[key] = (key_node, value_node)
        for other in merged:
            for key, entry in self.merge(other, (*location, "<<")).items():
                entries.setdefault(key, entry)
        return entries

    def _mappings(self, node: Node, location: Location) -> list[MappingNode]:
        nodes = node.items if isinstance(node, SequenceNode) else [node]
        mappings = [each for each in nodes if isinstance(each, MappingNode)]
        if len(mappings) < len(nodes):
            self._complain(node, location, "can only merge mappings, as in <<: *name")
        return mappings

    def _scalar(self, node: ScalarNode, location: Location) -> Data:
        text: str = node.text
        try:
            if "$" in text:
                text = fill(text, self.environment)
                if names([node.text]):  # only for variables, not for `$$`
                    self.texts[location] = text, node.text
            if node.plain and node.tag is None:
                for pattern, value in _PLAIN:
                    if pattern.match(text):
                        return value(text)
        except UnsetVariablesError as error:
            for reason in error.reasons:
                self._complain(node, location, reason)
        except ValueError as error:
            self._complain(node, location, str(error))
        return text

    def _check_depth(self, node: Node, location: Location) -> None:
        if len(location) > MAX_DEPTH:
            raise YamlError(node.position, "its aliases expand endlessly; does one contain itself?")

    def _complain(self, node: Node, location: Location, text: str) -> None:
        self.issues.append(Issue(*node.position, place(location), text))


def _is_value(key: str, location: Location) -> bool:
    found = next((value for pattern, value in _PLAIN if pattern.match(key)), None)
    is_name = location[-1:] and location[-1] in _NAMED
    return found is not None and not (is_name and found in (_integer, _float))


def _placed(issue: Issue, content: bytes) -> Issue:
    """Return an issue with a position in the combined text as one in the included file."""
    file, before = place_of(content, issue.line)
    return issue._replace(line=issue.line - before, file=file, before=before) if file else issue


def read(content: bytes, source: str, environment: Mapping[str, str]) -> YamlDocument:
    """Return the document in a file.

    Variables are replaced after parsing, so their values cannot change the structure.

    Raises:
        ConfigError: the file is not YAML, has a repeated key, or has an unset variable.
    """
    reader = _Reader(environment, content)
    try:
        root = compose(content)
        data = None if root is None else reader.value(root, ())
    except YamlError as broken:
        raise ConfigError(source, [_placed(broken.issue, content)]) from None
    if reader.issues:
        raise ConfigError(source, [_placed(issue, content) for issue in reader.issues])
    values = secrets((written for _, written in reader.texts.values()), environment)
    return YamlDocument(data, reader.texts, values, content)
