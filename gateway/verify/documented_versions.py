"""Adds compiled OpenAPI documents to a configuration, for conversions with `additional`.

The document process of a gateway, or a command, compiles the documents
(`gateway.verify.openapi.shapes`). The compiled form takes less than a tenth of the memory.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from gateway.base.path_templates import Router, Template, parse_template
from gateway.conversion.additional import DocumentShapes, LoadedDocument, OperationShapes
from gateway.routing.snapshot import Api, Endpoint, Snapshot
from gateway.verify.located_operation import locate
from gateway.versions.version import Version

# A segment with several parameters, such as `{base}...{head}`.
_SEVERAL = re.compile(r"[^/]*\{\}[^/]*\{\}[^/]*")
_decode = msgspec.json.Decoder(DocumentShapes).decode


def fill_documents(snapshot: Snapshot, shapes: Mapping[str, bytes]) -> dict[str, str]:
    """Add compiled documents, given as JSON by location, to all versions that need them.

    Returns the reasons why documents cannot be right, by location.
    """
    keys = () if snapshot.naming is None else snapshot.naming.parameters
    problems = {}
    for api in snapshot.apis:
        for version, document in api.documents.items():
            location = api.schemas[version]
            if location in shapes:
                reserved = frozenset((*keys, *_version_parameters(api)))
                made = loaded_document(api, version, _decode(shapes[location]), reserved)
                document.loaded = made
                if not len(made.router):
                    problems[location] = (
                        f"{location} has none of the operations at the endpoints; are"
                        " upstream_path and servers right?"
                    )
    return problems


def _version_parameters(api: Api) -> Iterator[str]:
    for endpoint in api.endpoints:
        for reader in () if endpoint.selector is None else endpoint.selector.readers:
            if reader.parameter is not None:
                yield reader.parameter


def loaded_document(
    api: Api, version: Version, shapes: DocumentShapes, reserved: frozenset[str] = frozenset()
) -> LoadedDocument:
    """Return a document whose operations are found by the paths of requests to services."""
    located = locate(api.endpoints, version, shapes.operations)
    found: dict[object, tuple[Template, dict[str, OperationShapes]]] = {}
    for one in located:
        operation = one.operation
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
    return LoadedDocument(version, shapes.shapes, Router(found.values()), reserved)


def service_path(endpoint: Endpoint, version: Version, texts: Mapping[str, str]) -> str:
    route = endpoint.routes.get(version)
    template = (route and route.upstream_path) or endpoint.template
    return template.fill({**texts, "version": str(version)})


def _numbered(path: str) -> str:
    """Return a path with numbered captures; a segment with several of them is one capture."""
    first, *parts = _SEVERAL.sub("{}", path).split("{}")
    return first + "".join(f"{{p{number}}}{part}" for number, part in enumerate(parts))
