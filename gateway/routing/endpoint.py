"""`endpoints` of an API in gateway.yaml: public paths, compiled to endpoints with their routes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Annotated, NamedTuple

from pydantic import Field

from gateway import __version__
from gateway.access.access import AccessRule, AnyAccess, compile_access
from gateway.access.clients import ClientNaming
from gateway.base.headers import LIFECYCLE_FIELDS
from gateway.base.mistakes import Mistakes, place
from gateway.base.model import (
    BodyTypes,
    Bytes,
    Method,
    NonEmptyText,
    OneOrSome,
    Reading,
    SectionModel,
    Some,
)
from gateway.base.path_templates import Template, parse_template
from gateway.base.request import HeaderLookup
from gateway.conversion.additional import DocumentedVersion
from gateway.conversion.chain import Conversion, compose
from gateway.conversion.media_filter import request_media
from gateway.conversion.version_step import VersionLink
from gateway.lifecycle.lifecycle import EndpointLifecycle, VersionLifecycle, lifecycle_at
from gateway.routing.cors import RESPONSE_FIELDS, CorsRules
from gateway.routing.errors import ErrorTemplate
from gateway.routing.snapshot import Endpoint, Route
from gateway.versions.mechanisms import AnyMechanism
from gateway.versions.reader import Reader, VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version
from gateway.versions.version_choice import Choice


class ApiParts(NamedTuple):
    """The compiled parts of an API that its endpoints share."""

    name: str
    upstream_path: str | None
    media_types: Mapping[str, Reading]
    versions: Mapping[str, Version]
    links: Mapping[Version, Sequence[VersionLink]]
    routes: Mapping[Version | None, Route]
    choice: Choice
    endings: Mapping[Version, VersionLifecycle]
    errors: Mapping[Version | None, ErrorTemplate]
    cors: CorsRules | None
    access: Mapping[Version | None, AccessRule | None]
    naming: ClientNaming | None
    documents: Mapping[Version, DocumentedVersion] = {}

    def documents_of(self, route: Route) -> dict[Version, DocumentedVersion]:
        steps = () if route.request is None else route.request.version_steps
        older = [step.source for step in steps if step.source < step.target]
        return {one: self.documents[one] for one in older if one in self.documents}

    def written_by(self, route: Route) -> DocumentedVersion | None:
        if route.request is None or not route.request.merges or route.service_version is None:
            return None
        return self.documents.get(route.service_version)

    def conversion(self, source: Version, target: Version, path: str) -> Conversion:
        """Return the conversion between two versions at an endpoint.

        Raises:
            LookupError: two neighbouring versions have no conversion.
        """
        return compose(tuple(self.versions.values()), self.links, source, target).at(path)


class EndpointModel(SectionModel):
    """A public path of an API, and how the version of a request is selected there."""

    path: str
    """The public path. `{name}` captures a segment or a part of a segment. `{name*}` captures the
    rest of the path, including a trailing slash."""
    version: OneOrSome[AnyMechanism, AnyMechanism] | None = None
    """The location in a request that names the version, or a list of locations. All locations that
    name a version must name the same version."""
    versions: Some[NonEmptyText] | None = None
    """The versions that have the endpoint. It refuses all other versions as unknown. If only one
    version is listed, `version` may be omitted, and every request gets that version. The default is
    all versions."""
    methods: Some[Method] | None = None
    """The methods that the endpoint accepts. GET includes HEAD. Without this setting, requests with
    any method are forwarded to the service."""
    upstream_path: str | None = None
    """The path of requests to the service. The default is upstream_path of the API."""
    media_types: Annotated[dict[BodyTypes, Reading], Field(min_length=1)] | None = None
    """The format of bodies for conversions, by media type: `json`, `json_lines`, `yaml` or
    `pass`. The default is media_types of the API."""
    max_body: Bytes | None = None
    """The maximum size of a request body at the endpoint, in bytes. The default is limits.body."""
    access: AnyAccess | None = None
    """The clients that may use the endpoint, or `open` for every client. The default is access of
    the version, of the API, or at the top."""

    def compile(self, api: ApiParts, mistakes: Mistakes) -> Endpoint | None:
        template = mistakes.attempt(partial(parse_template, self.path), "path")
        if template is None:
            return None
        own = self._own_versions(api, mistakes)
        readers = self._readers(api, own, mistakes)
        self._check_version_capture(api, template, readers, mistakes)
        upstream = self._upstream(api, template, mistakes)
        lifecycles: dict[Version | None, EndpointLifecycle] = {}
        for version in own.values():
            if version in api.endings:
                lifecycles[version] = lifecycle_at(
                    version,
                    api.endings,
                    template,
                    readers,
                    partial(self._operations_between, api),
                    own.values(),
                )
        if self.access is not None:
            own_access = compile_access(self.access, api.name, api.naming, mistakes)
            api = api._replace(access=dict.fromkeys(api.routes, own_access))
        here = partial(self._route_here, api, template, readers, upstream, lifecycles)
        left_out = {*api.versions.values()} - {*own.values()}
        routes = {one: here(route) for one, route in api.routes.items() if one not in left_out}
        vary = [name for reader in readers for name in reader.vary]
        pinned = api.choice.pins and not any(reader.reads_path for reader in readers)
        exempt = any(lifecycle.exempt for lifecycle in lifecycles.values())
        # If a client accepts several versions, it gets the first version that has not ended for
        # this client. So with exempt clients, the response depends on the client.
        preferred = exempt and any(reader.is_preference for reader in readers)
        if readers and (pinned or preferred):
            vary += api.choice.vary
        vary += () if api.cors is None else api.cors.vary
        by_client: dict[Version | None, tuple[str, ...]] = {
            version: _vary((*vary, *names))
            for version in (*own.values(), *(() if own else (None,)))
            if (names := _client_fields(api, routes.get(version), lifecycles.get(version)))
        }
        media_types = api.media_types if self.media_types is None else self.media_types
        return Endpoint(
            api.name,
            template,
            self._allowed_methods(),
            self._selector(api, readers, own, mistakes),
            routes,
            _vary(vary),
            self.max_body,
            {version: ending for version, ending in lifecycles.items() if version not in routes},
            api.errors,
            {name.lower(): reading for name, reading in media_types.items()},
            by_client,
            api.cors,
        )

    @property
    def _mechanisms(self) -> tuple[AnyMechanism, ...]:
        if self.version is None:
            return ()
        return self.version if isinstance(self.version, tuple) else (self.version,)

    def _mechanism_at(self, index: int, mistakes: Mistakes) -> Mistakes:
        several = isinstance(self.version, tuple)
        return mistakes.below("version", *((index,) if several else ()))

    def _is_of_one(self, own: Mapping[str, Version]) -> bool:
        return self.versions is not None and len(own) == 1 and self.version is None

    def _own_versions(self, api: ApiParts, mistakes: Mistakes) -> Mapping[str, Version]:
        if self.versions is None:
            return api.versions
        if not api.versions:
            text = "the API has no versions to choose from; remove it, or add versions"
            mistakes.add(text, "versions")
            return {}
        for index, label in enumerate(self.versions):
            mistakes.look_up(label, api.versions, "version", "versions", index)
        return {label: one for label, one in api.versions.items() if label in self.versions}

    def _readers(
        self, api: ApiParts, own: Mapping[str, Version], mistakes: Mistakes
    ) -> tuple[Reader, ...]:
        if api.versions and self.version is None and not self._is_of_one(own):
            mistakes.add(
                "does not configure how a version is selected; add version: { in: path }, or "
                "another mechanism from docs/selection.md",
            )
        if self.version is not None and not api.versions:
            text = "the API has no versions to choose from; remove it, or add versions"
            mistakes.add(text, "version")
            return ()
        found: list[Reader] = []
        for index, mechanism in enumerate(self._mechanisms):
            reader = mechanism.compile(api.versions, self._mechanism_at(index, mistakes))
            if reader is not None:
                _join(found, reader)
        return tuple(found)

    def _check_version_capture(
        self,
        api: ApiParts,
        template: Template,
        readers: tuple[Reader, ...],
        mistakes: Mistakes,
    ) -> None:
        captured = "version" in template.captures
        read = any(reader.reads_path for reader in readers)
        text = ""
        if captured and not api.versions:
            text = "captures {version}, but the API has no versions; give the capture another name"
        elif captured and readers and not read:
            text = (
                "captures {version}, but the version is not read there; add version: { in: path }"
            )
        elif read and not captured:
            text = (
                "the path has no {version} to read; write one, such as a first segment /v{version}"
            )
        if text:
            mistakes.add(text, "path")

    def _upstream(self, api: ApiParts, template: Template, mistakes: Mistakes) -> Template | None:
        text, here = self.upstream_path, mistakes
        if text is None:
            text, here = api.upstream_path, mistakes.root.below("apis", api.name)
        if text is None:
            return None
        rest = next((part.capture for part in template.segments if part.tail), None)
        if rest is not None and text.endswith(f"/{{{rest}}}"):
            # With `*`, links of the service can be mapped back, including their slashes.
            text = f"{text[:-1]}*}}"
        upstream = here.attempt(partial(parse_template, text), "upstream_path")
        if upstream is None:
            return None
        known = {*template.captures, *(("version",) if api.versions else ())}
        for name in upstream.captures:
            if name not in known:
                here.add(
                    f"'{{{name}}}' is not captured by the path of {place(mistakes.at)};"
                    f" known: {', '.join(sorted(known)) or 'none'}",
                    "upstream_path",
                )
        lost = {*template.captures} - {*upstream.captures, "version"}
        if lost:
            named = ", ".join(f"'{{{name}}}'" for name in sorted(lost))
            here.warn(
                f"warning: lacks {named} of the path of {place(mistakes.at)}, so links of the "
                f"service can be converted back only in responses to requests with this path",
                "upstream_path",
            )
        return upstream

    def _operations_between(
        self, api: ApiParts, source: Version, target: Version
    ) -> Conversion | None:
        try:
            found = api.conversion(source, target, self.path)
        except LookupError:  # two neighbouring versions have no conversion
            return None
        return found if found.has_operations else None

    def _route_here(
        self,
        api: ApiParts,
        template: Template,
        readers: tuple[Reader, ...],
        upstream: Template | None,
        lifecycles: Mapping[Version | None, EndpointLifecycle],
        route: Route,
    ) -> Route:
        here = partial(self._route_here, api, template, readers, upstream, lifecycles)
        choice, version = api.choice, route.version
        response = route.response and route.response.at(self.path)
        errors = api.errors.get(version)
        own_type = (
            response is not None and errors is not None and errors is not api.errors.get(None)
        )
        rewrite = None
        if route.service.reads_version:
            rewrite = VersionRewrite.of(
                readers, str(route.service_version), version, choice.matching
            )
        path = upstream
        # The request names the client's version or a range. The path to the service has to name the
        # service's version instead.
        moved = route.service_version != version or not choice.matching.is_exact
        if path is None and moved and route.service.reads_version is not False:
            path = template if "version" in template.captures else None
        made = replace(
            route,
            upstream_path=path,
            stripped=None if upstream is None else _stripped(template, upstream, version),
            content_type=_content_type(readers, version),
            fields=choice.fields(version),
            overridden_fields=frozenset(name.lower() for name, _ in choice.fields(version))
            | (LIFECYCLE_FIELDS if version in lifecycles else frozenset())
            | (frozenset() if api.cors is None else RESPONSE_FIELDS),
            lifecycle=lifecycles.get(version),
            shadow=route.shadow and replace(route.shadow, route=here(route.shadow.route)),
            cutover=route.cutover and replace(route.cutover, route=here(route.cutover.route)),
            request=route.request and route.request.at(self.path),
            response=response,
            error_type=errors.content_type if own_type and errors is not None else None,
            tag_key=_tag_key(route, response),
            access=api.access.get(version),
            documents=api.documents_of(route) or None,
            written=api.written_by(route),
            request_rewrite=rewrite,
            unnamed_rewrite=rewrite and rewrite.adding(),
            response_rewrite=(
                VersionRewrite.of(readers, str(version))
                if route.service_version != version
                else None
            ),
        )
        made = replace(made, substitutes=dict(self._substitutes(api, made, readers)))
        return replace(made, for_media_types=_routes_for_media_types(made))

    def _substitutes(
        self, api: ApiParts, route: Route, readers: tuple[Reader, ...]
    ) -> Iterator[tuple[tuple[str, Version], Route]]:
        if route.request is None or route.version is None:
            return
        for step in route.request.version_steps:
            version = step.source
            declared = (each for link in step.links for each in link.operations or ())
            for operation in dict.fromkeys(declared):
                substitute = operation.substitute
                service = None if substitute is None else substitute.service
                if service is None or operation.side(newer=step.target > version) is not None:
                    continue
                request = response = None
                if version != route.version:
                    request = api.conversion(route.version, version, self.path)
                    response = api.conversion(version, route.version, self.path)
                rewrite = None
                if service.reads_version:
                    matching = api.choice.matching
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
                yield (service.name, version), replace(made, tag_key=_tag_key(made, response))

    def _selector(
        self,
        api: ApiParts,
        readers: tuple[Reader, ...],
        own: Mapping[str, Version],
        mistakes: Mistakes,
    ) -> Selector | None:
        default = self._default(own, mistakes)
        if not own or not (readers or self._is_of_one(own)):
            return None
        if default is None and api.choice.default in own.values():
            default = api.choice.default
        pins = {name: one for name, one in api.choice.pins.items() if one in own.values()}
        return Selector(
            readers,
            own,
            default if readers else next(iter(own.values())),
            api.choice.matching.among(own.values()),
            pins if readers else {},
            {label: api.endings[one] for label, one in own.items() if one in api.endings},
        )

    def _default(self, own: Mapping[str, Version], mistakes: Mistakes) -> Version | None:
        defaults: dict[str, Version | None] = {}
        for index, mechanism in enumerate(self._mechanisms):
            label = mechanism.default_label
            if label is None:
                continue
            here = self._mechanism_at(index, mistakes)
            defaults[label] = here.look_up(label, own, "version", "default")
            if len(defaults) > 1:
                here.add("differs from the earlier default; keep one", "default")
        return next(iter(defaults.values()), None)

    def _allowed_methods(self) -> tuple[str, ...] | None:
        methods = self.methods
        if methods is None or "GET" not in methods or "HEAD" in methods:
            return methods
        # An endpoint that accepts GET also accepts HEAD (RFC 9110, section 9.3.2).
        after = methods.index("GET") + 1
        return (*methods[:after], "HEAD", *methods[after:])


def asked_paths(endpoint: Endpoint) -> Iterator[Template]:
    for route in endpoint.routes.values():
        yield route.upstream_path or endpoint.template


def _client_fields(
    api: ApiParts, route: Route | None, lifecycle: EndpointLifecycle | None
) -> tuple[str, ...]:
    """Return the names of the request headers on which a version's responses depend, for Vary.

    Only headers that identify the client or select conversions are returned, and only if the
    responses depend on them.
    """
    brownout = None if route is None else route.brownout
    access = None if route is None else api.access.get(route.version)
    needed = (*_media_fields(route), *(() if access is None else access.vary))
    if (lifecycle is not None and lifecycle.exempt) or (brownout and brownout.exempt):
        return (*api.choice.vary, *needed)
    if route is None or route.cutover is None:
        return needed
    # Both routes of a cutover return responses in the same version. So caches may store a response
    # even if no header field identifies the client. `*`, which forbids caching, is omitted.
    sticky = route.cutover.rule.sticky == "client"
    return (*needed, *(name for name in api.choice.vary if sticky and name != "*"))


def _media_fields(route: Route | None) -> Iterator[str]:
    cutover = None if route is None or route.cutover is None else route.cutover.route
    responses = [one.response for one in (route, cutover) if one is not None]
    links = [link for one in responses if one is not None for link in one.links if _reads(link)]
    filters = [link.media for link in links if link.media is not None]
    if any(one.accept is not None for one in filters):
        yield "Accept"
    if any(one.content_type is not None for one in filters):
        yield "Content-Type"


def _content_type(readers: tuple[Reader, ...], version: Version | None) -> str | None:
    if version is None:
        return None
    return next(filter(None, (reader.content_type(version) for reader in readers)), None)


def _tag_key(route: Route, response: Conversion | None) -> bytes | None:
    if response is None or not any(link.changes and _reads(link) for link in response.links):
        return None
    # Another release of the gateway may write different bytes with the same configuration.
    parts = (__version__, str(route.service_version), str(route.version), route.link_form or "")
    return tag_key((*filter(None, parts), *(link.digest for link in response.links)))


def _reads(link: VersionLink) -> bool:
    return link.methods is None or "GET" in link.methods or link.operations is not None


# A client can combine the parameters of the declared media types. Each combination takes memory.
_MOST_COMBINATIONS = 256


def _routes_for_media_types(route: Route) -> Callable[[HeaderLookup], Route] | None:
    request, response = route.request, route.response
    if request is None or response is None or not request.filters_requests:
        return None
    known: dict[tuple[bool, ...], Route] = {}

    def find(fields: HeaderLookup) -> Route:
        media = request_media(fields)
        key = request.media_key(media)
        if key not in known:
            if len(known) >= _MOST_COMBINATIONS:
                known.clear()
            there, back = request.of_request(media), response.of_request(media)
            made = replace(route, request=there, response=back)
            known[key] = replace(made, tag_key=_tag_key(made, back))
        return known[key]

    return find


def tag_key(parts: Iterable[str]) -> bytes:
    """Return the key of entity tags: a hash of the versions and of the conversions between them."""
    digest = blake2b(digest_size=6)
    for part in parts:
        digest.update(b"%d:%b" % (len(part), part.encode()))
    return b"." + digest.hexdigest().encode()


def _stripped(template: Template, upstream: Template, version: Version | None) -> Template | None:
    """Return the prefix of the client's path that the service's path lacks.

    Returns:
        None if the paths are equal or differ in more than a prefix.
    """
    text = template.text.removesuffix(upstream.text)
    if text in ("", template.text):
        return None
    return parse_template(text.replace("{version}", str(version)))


def _join(readers: list[Reader], reader: Reader) -> None:
    for index, known in enumerate(readers):
        both = known.joined(reader)
        if both is not None:
            readers[index] = both
            return
    readers.append(reader)


def _vary(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names for Vary without duplicates. `*` replaces all (RFC 9110, section 12.5.5)."""
    found = tuple(dict.fromkeys(names))
    return ("*",) if "*" in found else found
