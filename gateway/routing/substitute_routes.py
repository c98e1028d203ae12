"""The routes by which other services answer operations that a version lacks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gateway import __version__
from gateway.conversion.chain import Conversion, compose
from gateway.conversion.entity_tags import EntityTags
from gateway.conversion.version_link import VersionLink
from gateway.routing.snapshot import Route
from gateway.versions.matching import Matching
from gateway.versions.reader import Reader
from gateway.versions.rewriting import VersionRewrite
from gateway.versions.version import Version


def substitutes(
    route: Route,
    ladder: Sequence[Version],
    links: Mapping[Version, Sequence[VersionLink]],
    path: str,
    readers: tuple[Reader, ...],
    matching: Matching,
) -> Iterator[tuple[tuple[str, Version], Route]]:
    """Yield the routes by service and by the version that the service speaks.

    Args:
        route: the route of the client's version at an endpoint.
        ladder: all versions of the API, the oldest first.
        links: the links between the versions.
        path: the path of the endpoint.
        readers: the readers of the endpoint.
        matching: the texts that stand for a version beside its label.
    """
    if route.request is None or route.version is None:
        return
    for hop in route.request.version_steps:
        version = hop.source
        declared = (each for link in hop.links for each in link.operations or ())
        for operation in dict.fromkeys(declared):
            substitute = operation.substitute
            service = None if substitute is None else substitute.service
            if service is None or operation.side(newer=hop.target > version) is not None:
                continue
            request = response = None
            if version != route.version:
                request = compose(ladder, links, route.version, version).at(path)
                response = compose(ladder, links, version, route.version).at(path)
            rewrite = None
            if service.reads_version:
                rewrite = VersionRewrite.of(readers, str(version), route.version, matching)
            made = replace(
                route,
                service=service,
                service_version=version,
                request=request,
                response=response,
                request_rewrite=rewrite,
                unnamed_rewrite=rewrite and rewrite.adding(),
                shadow=None,
                cutover=None,
            )
            yield (service.name, version), replace(made, tags=entity_tags(made, response))


def entity_tags(route: Route, response: Conversion | None) -> EntityTags | None:
    """Return the translation of the entity tags of a route; None where no body is converted."""
    if response is None or not any(link.changes and _reads(link) for link in response.links):
        return None
    # Another release of the gateway may write other bytes by the same rules.
    parts = (__version__, str(route.service_version), str(route.version), route.link_form or "")
    return EntityTags.of((*filter(None, parts), *(link.digest for link in response.links)))


def _reads(link: VersionLink) -> bool:
    """Whether a link may be of the bodies that GET is answered with."""
    return link.methods is None or "GET" in link.methods or link.operations is not None
