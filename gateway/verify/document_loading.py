"""Loads the documents that a configuration needs for `additional` in the process of a command."""

import asyncio
from pathlib import Path

from gateway.base.mistakes import Mistakes
from gateway.base.urls import is_http_url
from gateway.routing.snapshot import Snapshot
from gateway.verify.documented_versions import fill_documents
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.openapi.shapes import compile_document


def load_documents(snapshot: Snapshot, folder: Path, mistakes: Mistakes) -> None:
    """Load the documents of all versions that need one.

    A file that cannot be used is a mistake. A document at a URL that cannot be used is a warning.
    """
    shapes: dict[str, bytes] = {}
    needed = [(api, version) for api in snapshot.apis for version in api.documents]
    for api, version in needed:
        location, at = api.schemas[version], _place(api.name, str(version))
        try:
            if location not in shapes:
                shapes[location] = asyncio.run(compile_document(location, folder))
        except DocumentError as error:
            if is_http_url(location):
                text = f"warning: until it can be loaded, requests that need it get 503: {error}"
                mistakes.warn(text, *at)
            else:
                mistakes.add(str(error), *at)
    problems = fill_documents(snapshot, shapes)
    for api, version in needed:
        if api.schemas[version] in problems:
            mistakes.add(problems[api.schemas[version]], *_place(api.name, str(version)))


def _place(api: str, version: str) -> tuple[str, ...]:
    return "apis", api, "versions", version, "schema"
