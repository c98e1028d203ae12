"""A check for fields, parameters and operations that only the newer of two versions has."""

from collections.abc import Mapping, Sequence

from gateway.base.mistakes import Mistakes
from gateway.base.urls import is_http_url
from gateway.conversion.additional import DocumentShapes
from gateway.conversion.declared.conversion import Part
from gateway.routing.snapshot import Api
from gateway.rules.checks.fields import DocumentFolder, listed_names
from gateway.verify.additional_parts import AdditionalParts, additional_parts
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.openapi.shapes import ShapeCompiler
from gateway.versions.version import Version

# The maximum number of message parts, and of names in each, that a warning lists.
_PARTS, _NAMES = 5, 5


def compiled_documents(api: Api, documents: DocumentFolder) -> dict[Version, DocumentShapes]:
    """Return the shapes of the documents that are files, by version."""
    shapes: dict[Version, DocumentShapes] = {}
    for version, location in api.schemas.items():
        if not is_http_url(location):
            try:
                description = documents.read(location)
                compiler = ShapeCompiler(description.data, location, as_sent=True)
                shapes[version] = compiler.compile()
            except DocumentError:
                continue  # another check reports it
    return shapes


def warn_of_additional(
    api: Api,
    parts: Sequence[Part],
    shapes: Mapping[Version, DocumentShapes],
    mistakes: Mistakes,
) -> None:
    """Warn of what reaches clients and services of another version although no change names it."""
    for older, links in api.links.items():
        newer = links[0].newer
        if older not in shapes or newer not in shapes:
            continue
        found = list(additional_parts(api, (older, shapes[older]), (newer, shapes[newer])))
        if found:
            first = next(part for part in parts if part.link.older == older)
            mistakes.warn_of_loss(
                f"warning: no change names the parts that only version {newer} has:"
                f" {_listed(found)}; set additional to drop, refuse or pass it",
                found[0].allowed or None,
                *first.at,
            )


def _listed(found: Sequence[AdditionalParts]) -> str:
    shown = [_shown(one) for one in found[:_PARTS]]
    more = f"; and {len(found) - _PARTS} more, which verify lists" if found[_PARTS:] else ""
    return "; ".join(shown) + more


def _shown(one: AdditionalParts) -> str:
    if not one.part:
        return f"{one.operation} (operation)"
    return f"{one.operation} {one.part} {listed_names(one.names, _NAMES)}"
