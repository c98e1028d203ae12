"""Loads the OpenAPI documents that conversions with `additional` need.

A process of its own reads and compiles the documents, since a large document would delay requests
and take a hundred times the memory of its shapes. The result is plain data.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, cast
from weakref import ref

import msgspec

from gateway.base.files import Stamp, stamp
from gateway.base.mistakes import Mistakes
from gateway.base.path_templates import Router, Template, parse_template
from gateway.conversion.additional import DocumentedVersion, DocumentShapes, OperationShapes
from gateway.observe import log
from gateway.routing.snapshot import Api, Endpoint, Snapshot
from gateway.verify.located_operation import LocatedOperation, locate
from gateway.versions.version import Version

if TYPE_CHECKING:
    from gateway.verify.openapi.openapi import Description

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from gateway.verify.openapi.shapes import main
main()
"""
# The maximum seconds to load and compile all documents, and the seconds until the next attempt to
# load a document at a URL.
_LONGEST, _PAUSE = 60.0, 20.0
# A segment with several parameters, such as `{base}...{head}`.
_SEVERAL = re.compile(r"[^/]*\{\}[^/]*\{\}[^/]*")
_URLS = ("http://", "https://")
# The shapes of the files that the current configuration needs, so that reloads compile only changed
# files.
_files: dict[str, tuple[Stamp, DocumentShapes | str]] = {}
_decode = msgspec.json.Decoder(dict[str, DocumentShapes | str]).decode


def load_documents(snapshot: Snapshot, folder: Path, mistakes: Mistakes) -> None:
    """Load the documents of all versions that need one.

    A file that cannot be used is a mistake. A document at a URL that cannot be used is a warning,
    and is loaded later; until then, messages pass unchanged.
    """
    needed = [(api, version) for api in snapshot.apis for version in api.documents]
    if not needed:
        return
    keys = () if snapshot.naming is None else snapshot.naming.parameters
    locations = [api.schemas[version] for api, version in needed]
    stamps = {one: stamp(folder / one) for one in locations if not one.startswith(_URLS)}
    known = {one: made for one, (at, made) in _files.items() if stamps.get(one, 0) == at}
    shapes = {**_compiled([one for one in locations if one not in known], folder), **known}
    _files.clear()
    _files.update({one: (at, shapes[one]) for one, at in stamps.items()})
    for api, version in needed:
        location = api.schemas[version]
        found, at = shapes[location], ("apis", api.name, "versions", str(version), "schema")
        document = api.documents[version]
        document.reserved = frozenset((*keys, *_version_parameters(api)))
        if isinstance(found, DocumentShapes):
            fill_document(api, document, found)
            if document.router is not None and not len(document.router):
                text = "has none of the operations at the endpoints; are upstream_path and servers"
                mistakes.add(f"{location} {text} right?", *at)
        elif location.startswith(_URLS):
            mistakes.warn(f"warning: until it can be loaded, all messages pass: {found}", *at)
            document.fill = partial(fill_document, api, document)
            # The thread must not keep a replaced configuration in memory.
            given = ref(document), location, folder
            Thread(target=_load_later, args=given, daemon=True).start()
        else:
            mistakes.add(found, *at)


def _version_parameters(api: Api) -> Iterator[str]:
    for endpoint in api.endpoints:
        for reader in () if endpoint.selector is None else endpoint.selector.readers:
            if reader.parameter is not None:
                yield reader.parameter


def _compiled(locations: Iterable[str], folder: Path) -> Mapping[str, DocumentShapes | str]:
    once = tuple(dict.fromkeys(locations))
    if not once:
        return {}
    path = json.dumps(sys.path)
    try:
        done = subprocess.run(  # noqa: S603  # this program
            [sys.executable, "-c", _PROGRAM, path, str(folder), *once],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            timeout=_LONGEST,
        )
        return _decode(done.stdout)
    except (OSError, subprocess.SubprocessError) as error:
        what = f"after {_LONGEST:g} s" if isinstance(error, subprocess.TimeoutExpired) else "early"
        reason = f"the process that compiles documents ended {what}; is a document too large?"
        return dict.fromkeys(once, reason)


def _load_later(document: "ref[DocumentedVersion]", location: str, folder: Path) -> None:
    """Load a document as soon as possible, unless a reload has replaced its configuration."""
    logged = False
    while document() is not None:
        sleep(_PAUSE)
        shapes = _compiled([location], folder)[location]
        known = document()
        if isinstance(shapes, DocumentShapes) and known is not None and known.fill is not None:
            known.fill(shapes)
            return
        if not (isinstance(shapes, DocumentShapes) or logged):
            log.event("document_unavailable", "error", location=location, reason=shapes)
            logged = True


def located_operations(
    api: Api, version: Version, shapes: DocumentShapes
) -> list[LocatedOperation]:
    # The operations have all attributes of a described operation that determine its endpoints.
    return locate(api.endpoints, version, cast("Description", shapes))


def fill_document(api: Api, document: DocumentedVersion, shapes: DocumentShapes) -> None:
    """Add a compiled document: its operations are found by the paths of requests to services."""
    version = document.version
    located = located_operations(api, version, shapes)
    found: dict[object, tuple[Template, dict[str, OperationShapes]]] = {}
    for one in located:
        operation = cast("OperationShapes", one.operation)
        for endpoint in api.endpoints:
            texts = one.captures.get(endpoint.template.text)
            if texts is not None:
                path = service_path(endpoint, version, texts)
                with suppress(ValueError):  # no request has a path with these characters
                    template = parse_template(_numbered(path))
                    _, methods = found.setdefault(template.shape, (template, {}))
                    methods.setdefault(operation.method, operation)
    for _, methods in found.values():
        if "GET" in methods:
            methods.setdefault("HEAD", methods["GET"])
    document.shapes, document.router = shapes.shapes, Router(found.values())
    document.fill = None


def service_path(endpoint: Endpoint, version: Version, texts: Mapping[str, str]) -> str:
    route = endpoint.routes.get(version)
    template = (route and route.upstream_path) or endpoint.template
    return template.fill({**texts, "version": str(version)})


def _numbered(path: str) -> str:
    """Return a path with numbered captures; a segment with several of them is one capture."""
    first, *parts = _SEVERAL.sub("{}", path).split("{}")
    return first + "".join(f"{{p{number}}}{part}" for number, part in enumerate(parts))
