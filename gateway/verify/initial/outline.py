"""Finds the versions of an API, their operations, and where requests name the version."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gateway.base.path_templates import parse_template
from gateway.verify.openapi import openapi
from gateway.verify.openapi.openapi import METHODS, server_of, shape
from gateway.versions.version import LABEL

Data = Mapping[str, Any]

_CAPTURE = re.compile(r"\{([^{}]*)\}")
# A segment that names a version, such as v1, 2.0, v2beta1 or 2024-09-30.
_SEGMENT = re.compile(r"(v?)([0-9][0-9.]*(?:(?:alpha|beta|rc)[0-9]*)?|[0-9]{4}-[0-9]{2}-[0-9]{2})")
_PARAMETER = re.compile(r"(?:[a-z]+[-_.])*(?:api[-_.]?)?v(?:ersion)?", re.IGNORECASE)
_HOST = re.compile(r"(?<![a-z0-9])v([0-9]+)(?=\.)")
_MEDIA = re.compile(r"(?:[.-]v|;\s*v(?:ersion)?=v?)([0-9][0-9.]*)(?=\+|;|$)")
_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])v?([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]+(?:\.[0-9]+)*)")
_LABEL = re.compile(LABEL)
_NUMBERS = re.compile(r"[0-9]+(?:[.-][0-9]+)*\Z")


class Given(NamedTuple):
    """A document, with the label of its version if the user has named one."""

    location: str
    data: Data
    label: str | None = None


class Mechanism(NamedTuple):
    """The location of the version in requests: its mechanism as YAML, and the segment of paths."""

    written: str
    segment: str = ""
    position: int | None = None

    @property
    def adds_segment(self) -> bool:
        return bool(self.segment) and self.position is None


class OutlinedOperation(NamedTuple):
    method: str
    path: str
    declared: Data
    item: Data

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def key(self) -> tuple[str, str]:
        return self.method, shape(self.path)


@dataclass(frozen=True, slots=True)
class OutlinedVersion:
    """A version of an API. `target` is the address of the document's server, if it has one."""

    given: Given
    label: str = ""
    target: str | None = None
    operations: Mapping[tuple[str, str], OutlinedOperation] = field(default_factory=dict)
    unusable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """An API: its versions, the oldest first. `guessed`: no document names the mechanism."""

    name: str
    versions: tuple[OutlinedVersion, ...]
    mechanism: Mechanism | None
    guessed: bool = False


def outlines(documents: Sequence[Given], mechanism: Mechanism | None) -> list[Outline]:
    """Group documents into APIs by the same title and a common path, or by half of their paths."""
    apis: list[tuple[str, set[str], list[Given]]] = []
    for given in documents:
        name, paths = _api_name(given), {_unversioned(path) for path in _paths(given)}
        for known, taken, some in apis:
            common = len(taken & paths)
            if common and (name == known or common * 2 >= min(len(taken), len(paths))):
                some.append(given)
                taken |= paths
                break
        else:
            apis.append((name, paths, [given]))
    names = Counter[str]()
    found = []
    for name, _, some in apis:
        names[name] += 1
        unique = name if names[name] == 1 else f"{name}{names[name]}"
        found.append(_outline(unique, some, mechanism))
    return found


def _outline(name: str, some: Sequence[Given], chosen: Mechanism | None) -> Outline:
    in_path = _in_path(some)
    mechanism = chosen or in_path or _in_parameter(some) or _in_media_type(some) or _in_host(some)
    if chosen is not None and chosen.segment and in_path is not None:
        mechanism = in_path
    if mechanism is not None and mechanism.position is not None and len(some) == 1:
        labels = list(_segments(some[0], mechanism.position))
        some = [some[0]._replace(label=label.removeprefix("v")) for label in labels]
    elif len(some) == 1 and mechanism is None and some[0].label is None:
        return Outline(name, (_version(some[0], "", None),), None)
    guessed = mechanism is None
    labels = _labels(some, mechanism)
    if mechanism is None:
        is_number = all(label.isdecimal() for label in labels)
        mechanism = (
            path_mechanism() if is_number else Mechanism("{ in: header, name: API-Version }")
        )
    versions = [
        _version(given, label, mechanism) for given, label in zip(some, labels, strict=True)
    ]
    if all(_NUMBERS.match(label) for label in labels):
        versions.sort(key=lambda one: [int(part) for part in re.split("[.-]", one.label)])
    return Outline(name, tuple(versions), mechanism, guessed)


def path_mechanism() -> Mechanism:
    return Mechanism("{ in: path }", "v{version}")


def parse_mechanism(text: str) -> Mechanism:
    """Parse `path` or, for example, `header:X-API-Version`; raises ValueError."""
    place, _, name = text.partition(":")
    if place == "path" and not name:
        return path_mechanism()
    key = {"query": "name", "header": "name", "host": "name", "accept": "media_type"}.get(place)
    if key is None or not name:
        raise ValueError(
            f"--in {text}: requests cannot name the version there; write path, query:NAME,"
            " header:NAME, host:v{version}.example.com or"
            " accept:application/vnd.example.v{version}+json"
        )
    return Mechanism(f'{{ in: {place}, {key}: "{name}" }}')


def _paths(given: Given) -> list[str]:
    base = _server(given.data)[1]
    return [base + path for path in _mapping(given.data.get("paths"))]


def _unversioned(path: str) -> str:
    return "/".join(part for part in shape(path).split("/") if not _SEGMENT.fullmatch(part))


def _segments(given: Given, index: int) -> Counter[str]:
    parts = (path.split("/") for path in _paths(given))
    return Counter(
        part[index] for part in parts if len(part) > index and _SEGMENT.fullmatch(part[index])
    )


def _in_path(some: Sequence[Given]) -> Mechanism | None:
    """Return the path mechanism if a segment of the paths differs from version to version."""
    for index in range(1, 8):
        counts = [_segments(given, index) for given in some]
        if len(some) == 1:
            found = _split(some[0], index, counts[0])
        else:
            most = [count.most_common(1) for count in counts]
            found = [
                one[0][0]
                for one, given in zip(most, some, strict=True)
                if one and one[0][1] * 2 > len(_paths(given))
            ]
            if len(set(found)) < len(some):
                continue
        if found:
            prefix = "v" if all(one.startswith("v") for one in found) else ""
            return Mechanism("{ in: path }", f"{prefix}{{version}}", index)
    return None


def _split(given: Given, index: int, counts: Counter[str]) -> list[str]:
    """Return the labels in the paths of one document; none if the versions share few paths."""
    paths = [path.split("/") for path in _paths(given)]
    if not counts or sum(counts.values()) * 2 <= len(paths):
        return []
    rest = [
        {shape("/".join(path)) for path in (_without(one, index) for one in paths if one[index:])}
        for paths in ([one for one in paths if one[index:][:1] == [label]] for label in counts)
    ]
    common = set.intersection(*rest)
    return list(counts) if len(common) * 2 >= min(map(len, rest)) else []


def _without(parts: Sequence[str], index: int) -> list[str]:
    return [*parts[:index], *parts[index + 1 :]]


def _in_parameter(some: Sequence[Given]) -> Mechanism | None:
    for place in ("header", "query"):
        names = Counter[str]()
        count = 0
        for given in some:
            for operation in _operations(given, None)[0]:
                count += 1
                names.update(name for name, _ in _version_parameters(given, operation, place))
        for name, times in names.most_common(1):
            if times * 2 >= count:
                return Mechanism(f"{{ in: {place}, name: {name} }}")
    return None


def _version_parameters(
    given: Given, operation: OutlinedOperation, place: str
) -> Iterator[tuple[str, Data]]:
    raw = [*_list(operation.item.get("parameters")), *_list(operation.declared.get("parameters"))]
    for one in (followed(given.data, each) for each in raw):
        if one.get("in") == place and _PARAMETER.fullmatch(str(one.get("name"))):
            yield str(one["name"]), followed(given.data, one.get("schema"))


def _media_types(given: Given) -> Counter[str]:
    found = Counter[str]()
    for operation in _operations(given, None)[0]:
        for response in _mapping(operation.declared.get("responses")).values():
            content = _mapping(followed(given.data, response).get("content"))
            found.update(media for media in content if _MEDIA.search(media))
    return found


def _in_media_type(some: Sequence[Given]) -> Mechanism | None:
    written = Counter(
        _MEDIA.sub(lambda match: match[0].replace(match[1], "{version}"), media)
        for given in some
        for media in _media_types(given)
    )
    for media, _ in written.most_common(1):
        return Mechanism(f'{{ in: accept, media_type: "{media}" }}')
    return None


def _in_host(some: Sequence[Given]) -> Mechanism | None:
    hosts = [urlsplit(_server(given.data)[0] or "").hostname or "" for given in some]
    named = {_HOST.sub("v{version}", host) for host in hosts}
    if len(some) > 1 and len(set(hosts)) == len(some) and len(named) == 1:
        return Mechanism(f'{{ in: host, name: "{named.pop()}" }}')
    return None


def _labels(some: Sequence[Given], mechanism: Mechanism | None) -> list[str]:
    """Return the labels of the versions, from the first source with a unique label for each."""
    sources: list[Sequence[str | None]] = [
        [given.label for given in some],
        [_label_in_requests(given, mechanism) for given in some],
        [str(_mapping(given.data.get("info")).get("version", "")) for given in some],
        [_label_in_name(given) for given in some],
        [str(number) for number in range(1, len(some) + 1)],
    ]
    return next(
        labels
        for source in sources
        for labels in [
            [named or given.label or "" for named, given in zip(source, some, strict=True)]
        ]
        if len(set(labels)) == len(some) and all(map(_LABEL.fullmatch, labels))
    )


def _label_in_requests(given: Given, mechanism: Mechanism | None) -> str | None:
    if mechanism is None:
        return None
    if mechanism.position is not None:
        segments = _segments(given, mechanism.position)
        prefix = mechanism.segment.partition("{")[0]
        return next((one.removeprefix(prefix) for one, _ in segments.most_common(1)), None)
    if "in: accept" in mechanism.written:
        found = (_MEDIA.search(media) for media, _ in _media_types(given).most_common(1))
        return next((match[1] for match in found if match is not None), None)
    if "in: host" in mechanism.written:
        match = _HOST.search(urlsplit(_server(given.data)[0] or "").hostname or "")
        return None if match is None else match[1]
    for operation in _operations(given, None)[0]:
        for place in ("header", "query"):
            for name, schema in _version_parameters(given, operation, place):
                values = [*_list(schema.get("enum")), schema.get("const"), schema.get("default")]
                own = list(dict.fromkeys(str(one) for one in values if one is not None))
                if f"name: {name} " in mechanism.written and len(own) == 1:
                    return own[0]
    return None


def _label_in_name(given: Given) -> str | None:
    found = _IN_NAME.findall(PurePath(given.location).stem)
    return found[-1] if found else None


def _api_name(given: Given) -> str:
    title = str(_mapping(given.data.get("info")).get("title") or PurePath(given.location).stem)
    words = re.findall(r"[a-z][a-z0-9]*", title.lower())
    kept = [one for one in words if one not in ("api", "rest", "the", "openapi", "service")]
    kept = [one for one in kept if not re.fullmatch(r"v[0-9]*|version", one)]
    return "_".join(kept[:3]) or "api"


def _server(data: Data) -> tuple[str | None, str]:
    """Return the address of the document's server, or None, and the path below it."""
    with suppress(ValueError):
        url = server_of(data)
        is_absolute = url.scheme in ("http", "https") and url.netloc and "{" not in url.netloc
        return f"{url.scheme}://{url.netloc}" if is_absolute else None, url.path.rstrip("/")
    return None, ""


def _version(given: Given, label: str, mechanism: Mechanism | None) -> OutlinedVersion:
    operations, unusable = _operations(given, mechanism, label)
    known: dict[tuple[str, str], OutlinedOperation] = {}
    for one in operations:
        known.setdefault(one.key, one)
    return OutlinedVersion(given, label, _server(given.data)[0], known, tuple(unusable))


def _operations(
    given: Given, mechanism: Mechanism | None, label: str = ""
) -> tuple[list[OutlinedOperation], list[str]]:
    """Return the operations with the paths of endpoints, and the paths that cannot be endpoints."""
    base, found, unusable = _server(given.data)[1], [], []
    for path, raw in _mapping(given.data.get("paths")).items():
        item = followed(given.data, raw)
        public = _public(base + path, mechanism, label)
        if public is None:
            continue  # another version
        try:
            parse_template(public)
        except ValueError as error:
            unusable.append(f"{path}: {error}")
            continue
        found += [
            OutlinedOperation(method.upper(), public, item[method], item)
            for method in METHODS
            if isinstance(item.get(method), Mapping)
        ]
    return found, unusable


def _public(path: str, mechanism: Mechanism | None, label: str) -> str | None:
    parts, taken = path.split("/"), Counter[str]()
    index = None if mechanism is None else mechanism.position
    for at, part in enumerate(parts):
        names = _CAPTURE.findall(part)
        if at == index and mechanism is not None and _SEGMENT.fullmatch(part):
            if part != mechanism.segment.replace("{version}", label):
                return None
            parts[at] = mechanism.segment
        elif names:
            name = re.sub(r"\W", "_", "_".join(names), flags=re.ASCII)
            name = f"_{name}" if name[:1].isdecimal() or name == "version" else name or "_"
            taken[name] += 1
            name += str(taken[name]) if taken[name] > 1 else ""
            first, last = part.index("{"), part.rindex("}")
            parts[at] = f"{part[:first]}{{{name}}}{part[last + 1 :]}"
    return "/".join(parts)


def followed(data: Data, value: object) -> Data:
    """Resolve references within a document; return an empty mapping for a broken one."""
    with suppress(ValueError):
        return _mapping(openapi.followed(data, value))
    return {}


def _mapping(value: object) -> Data:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
