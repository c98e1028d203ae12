"""YAML syntax: from the bytes of a file to nodes, or to the first mistake and its position."""

from collections.abc import Iterator
from typing import NamedTuple, NoReturn, Protocol, TypeVar

# PyYAML: the one with a C scanner, so that ten thousand endpoints load in a second.
import yaml
from yaml.reader import ReaderError

from gateway.base.mistakes import Issue

MAX_DEPTH = 64
MAX_NODES = 500_000
"""The keys and values of a file; rules of 10,000 routes have a fifth of that."""
Position = tuple[int, int]
"""Line and column, both from 1; (0, 0) where libyaml gives none."""

# The remedies, by a part of the message of libyaml.
_REMEDIES = {
    "cannot start any token": "indent with spaces, and quote a text that begins so",
    "expected ',' or": "close the bracket, and quote a text that holds brackets or braces",
    "mapping values are not allowed": (
        "indent alike what belongs together, end a key with a colon, quote a text with ': '"
    ),
    "expected key": "indent alike what belongs together",
    "expected '-'": "indent alike what belongs together",
    "block sequence entries": "begin the list on a line of its own",
    "expected ':'": "put a colon and a space behind the key",
    "unexpected end of stream": "close the quote",
    "escape character": "double the backslash, or use single quotes",
}


class ScalarNode(NamedTuple):
    """A text; `plain` is true for a text without quotes, which may be a number."""

    position: Position
    tag: str | None
    text: str
    plain: bool


class SequenceNode(NamedTuple):
    """A list."""

    position: Position
    tag: str | None
    items: "list[Node]"


class MappingNode(NamedTuple):
    """Keys with values, in the order of the file; a key may occur twice."""

    position: Position
    tag: str | None
    pairs: "list[tuple[Node, Node]]"


Node = ScalarNode | SequenceNode | MappingNode
"""A node; its tag is None where the file has none. Aliases share nodes, even with themselves."""


AnyNode = TypeVar("AnyNode", ScalarNode, SequenceNode, MappingNode)


class YamlError(Exception):
    """A file that cannot be parsed, with the one issue that is the reason."""

    def __init__(self, position: Position, text: str) -> None:
        self.issue = Issue(*position, "", text)
        super().__init__(text)


def compose(content: bytes) -> Node | None:
    """Return the root of the one document in a file, or None if it is empty.

    Raises:
        YamlError: the file is not UTF-8, not YAML, or nested too deep.
    """
    try:
        return _Composer(yaml.parse(content.decode(), Loader=yaml.CSafeLoader)).document()
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
    """Return where each scalar of a file that can be parsed begins and ends, by its position.

    Places are in characters of the text without a byte order mark, and ends are behind the last.
    """
    found = {}
    for event in yaml.parse(content.decode("utf-8-sig"), Loader=yaml.CSafeLoader):
        begin, end = event.start_mark, event.end_mark
        if isinstance(event, yaml.ScalarEvent) and begin is not None and end is not None:
            found[_position(begin)] = begin.index, end.index
    return found


class _Composer:
    # PyYAML's own composer recurses in C, so that a file nested too deep ends the process. It also
    # spends half its time on the implicit types of YAML 1.1, which are not used here.

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._anchors: dict[str, Node] = {}
        self._nodes_left = MAX_NODES

    def document(self) -> Node | None:
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)  # the document ends
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            _refuse(event, "a second document begins; keep one, with no --- between")
        return root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if depth > MAX_DEPTH:
            _refuse(event, f"nested more than {MAX_DEPTH} levels deep")
        self._nodes_left -= 1
        if self._nodes_left < 0:  # each takes many times the memory of its text
            _refuse(event, f"more than {MAX_NODES} keys and values")
        position = _position(event.start_mark)
        node: Node
        match event:
            case yaml.AliasEvent(anchor=name):
                if name not in self._anchors:
                    _refuse(event, f"no &{name} stands before this *{name}; add it")
                return self._anchors[name]
            case yaml.ScalarEvent(tag=tag, value=text, style=style):
                node = self._anchored(event, ScalarNode(position, tag, text, plain=not style))
            case yaml.SequenceStartEvent(tag=tag):
                # Stored before its elements are read, since one of them may be an alias to it.
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


class _Mark(Protocol):
    # PyYAML has two classes of marks.
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
