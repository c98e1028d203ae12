"""Manifests: YAML documents with comments, the same text for the same objects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

Object = dict[str, Any]
# Line breaks of YAML 1.1 beside \n, which a reader changes unless they are escaped.
_BREAKS = re.compile("[\r\x85\u2028\u2029]")
# Texts that the reader of Kubernetes takes for numbers and truth values, and PyYAML does not.
_OTHERWISE = re.compile(r"[-+.]?[0-9]|[yYnN]\Z")


class Manifest(NamedTuple):
    """One document: a name for its file, the comments at its head, and what it holds."""

    name: str
    comments: tuple[str, ...]
    content: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The document as YAML, its comments first."""
        dumped = yaml.dump(
            dict(self.content),
            Dumper=_Dumper,
            sort_keys=False,
            width=100,
            allow_unicode=True,
        )
        return f"{commented(self.comments)}{dumped}"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and lists below their keys indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if _BREAKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif _OTHERWISE.match(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def commented(lines: Iterable[str]) -> str:
    """Return lines as comments of YAML."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def stream(manifests: Sequence[Manifest]) -> str:
    """Return manifests as one stream of documents."""
    return "---\n".join(manifest.text for manifest in manifests)
