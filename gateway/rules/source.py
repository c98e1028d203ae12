"""The text of gateway.yaml: YAML with environment variables, every value with its line."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import NamedTuple, NoReturn

from gateway.base.mistakes import ConfigError, Issue, Location, place
from gateway.rules import syntax
from gateway.rules.syntax import MAX_DEPTH, Node, ScalarNode, YamlError, compose
from gateway.rules.variables import (
    UnsetVariablesError,
    fill,
    hide,
    hide_values,
    names,
    secrets,
)

Data = dict[str, "Data"] | list["Data"] | str | int | float | bool | None


def _integer(text: str) -> Data:
    if len(text) > 18:  # 64 bits, which JSON can be trusted to carry
        raise ValueError("too large a number; write it in quotes if it is a text")
    return int(text)


def _float(text: str) -> Data:
    number = float(text)
    if not isfinite(number):
        raise ValueError("too large a number; write it in quotes if it is a text")
    if Decimal(text) != Decimal(repr(number)):  # bodies would be given another one
        raise ValueError(
            "a number of more digits than are kept; write it in quotes if it is a text"
        )
    return number


# The core schema of YAML 1.2 (section 10.3.2): `no` is a text, a date is a text, `0o17` and
# `.inf` have no use here.
_PLAIN: tuple[tuple[re.Pattern[str], Callable[[str], Data]], ...] = (
    (re.compile(r"(?:null|Null|NULL|~|)\Z"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE)\Z"), lambda _: True),
    (re.compile(r"(?:false|False|FALSE)\Z"), lambda _: False),
    (re.compile(r"[-+]?[0-9]+\Z", re.ASCII), _integer),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII), _float),
)
# The tags that change nothing.
_STANDARD = "tag:yaml.org,2002:"
_TAGS = (None, f"{_STANDARD}map", f"{_STANDARD}seq", f"{_STANDARD}str")

# Aliases may share nodes and contain themselves, so the number of unfolded nodes is bounded.
_MAX_NODES = 250_000


class YamlDocument(NamedTuple):
    """The data of a configuration and the position of each part.

    Attributes:
        data: the mappings, lists and scalars.
        marks: the line and column, from 1, of the key or element at each location.
        texts: for each text with variables, the text with their values and the text in the file.
        values: the value of each variable, with the name of the variable.
    """

    data: Data
    marks: Mapping[Location, tuple[int, int]]
    texts: Mapping[Location, tuple[str, str]]
    values: Mapping[str, str]

    def issue(self, location: Location, text: str) -> Issue:
        """Return an issue at a location, or at the nearest container that exists."""
        known = location
        while known and known not in self.marks:
            known = known[:-1]
        line, column = self.marks.get(known, (1, 1))
        if known in self.texts:
            text = hide(text, *self.texts[known])
        # A message may quote a value from elsewhere, such as a name that is known there.
        text = hide_values(text, self.values)
        return Issue(line, column, place(location), text)


def read(content: bytes, source: str, environment: Mapping[str, str]) -> YamlDocument:
    """Return the document in a file.

    Variables are replaced after parsing, so that a value can never become structure.

    Raises:
        ConfigError: the file is not YAML, has a key twice, or has a variable that is not set.
    """
    builder = _Builder(environment)
    try:
        root = compose(content)
        data = builder.build(root, ()) if root is not None else None
    except YamlError as broken:
        raise ConfigError(source, [broken.issue]) from None
    if builder.issues:
        raise ConfigError(source, builder.issues)
    values = secrets((written for _, written in builder.texts.values()), environment)
    return YamlDocument(data, builder.marks, builder.texts, values)


_Entries = dict[str, tuple[ScalarNode, Node]]


@dataclass(slots=True)
class _Builder:
    environment: Mapping[str, str]
    marks: dict[Location, tuple[int, int]] = field(default_factory=dict)
    texts: dict[Location, tuple[str, str]] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    entries: dict[int, _Entries] = field(default_factory=dict)

    def build(self, node: Node, location: Location) -> Data:
        self._check_depth(node, location)
        self.marks.setdefault(location, node.position)
        if len(self.marks) > _MAX_NODES:
            self._give_up(node, f"its aliases unfold to more than {_MAX_NODES} values")
        if node.tag not in _TAGS:
            tag = node.tag.replace(_STANDARD, "!!")
            self._complain(node, location, f"the tag {tag} has no meaning here; remove it")
        match node:
            case syntax.MappingNode():
                return self._mapping(node, location)
            case syntax.SequenceNode():
                return [
                    self.build(item, (*location, index)) for index, item in enumerate(node.items)
                ]
            case _:
                assert isinstance(node, ScalarNode)
                return self._scalar(node, location)

    def _mapping(self, node: syntax.MappingNode, location: Location) -> Data:
        data: dict[str, Data] = {}
        for key, (key_node, value_node) in self._entries(node, location).items():
            self.marks[(*location, key)] = key_node.position
            data[key] = self.build(value_node, (*location, key))
        return data

    def _entries(self, node: syntax.MappingNode, location: Location) -> _Entries:
        """Return the keys with their values; `<<` merges other mappings, as in YAML 1.1."""
        if id(node) in self.entries:
            return self.entries[id(node)]
        self._check_depth(node, location)
        # Stored before it is complete, since an alias can merge a mapping into itself.
        entries = self.entries[id(node)] = {}
        merged: list[syntax.MappingNode] = []
        for key_node, value_node in node.pairs:
            if not isinstance(key_node, ScalarNode):
                self._complain(key_node, location, "a key is a text, not a list or mapping")
                continue
            key = key_node.text
            if key == "<<" and key_node.plain:
                merged += self._merged(value_node, location)
            elif key_node.plain and any(pattern.match(key) for pattern, _ in _PLAIN):
                self._complain(
                    key_node, (*location, key), f'a key is a text; write it in quotes: "{key}"'
                )
            elif key in entries:
                line, _ = entries[key][0].position
                self._complain(
                    key_node,
                    (*location, key),
                    f"stands twice, first in line {line}; keep one of the two",
                )
            else:
                entries[key] = (key_node, value_node)
        for other in merged:
            for key, entry in self._entries(other, (*location, "<<")).items():
                entries.setdefault(key, entry)
        return entries

    def _merged(self, node: Node, location: Location) -> list[syntax.MappingNode]:
        nodes = node.items if isinstance(node, syntax.SequenceNode) else [node]
        mappings = [each for each in nodes if isinstance(each, syntax.MappingNode)]
        if len(mappings) < len(nodes):
            self._complain(node, (*location, "<<"), "merges mappings only, as in <<: *name")
        return mappings

    def _scalar(self, node: ScalarNode, location: Location) -> Data:
        text: str = node.text
        try:
            if "$" in text:
                text = fill(text, self.environment)
                if names([node.text]):  # `$$` and other dollar signs are none
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
            self._give_up(node, "unfolds without end; does an alias hold itself?")

    def _give_up(self, node: Node, text: str) -> NoReturn:
        raise YamlError(node.position, text)

    def _complain(self, node: Node, location: Location, text: str) -> None:
        self.issues.append(Issue(*node.position, place(location), text))
