"""One endpoint: its path, how a version is chosen there, and what the service is asked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import Discriminator, Field, Tag

from gateway.base.headers import ENDING
from gateway.base.mistakes import Location, Mistakes, place
from gateway.base.model import (
    BodyTypes,
    Bytes,
    Method,
    NonEmptyText,
    Reading,
    SectionModel,
    Some,
)
from gateway.base.path_templates import Template, parse_template
from gateway.conversion.chain import Conversion, compose
from gateway.conversion.version_link import VersionLink
from gateway.lifecycle.lifecycle import EndpointLifecycle, VersionLifecycle, lifecycle_at
from gateway.rollout.cutover import StickyBy
from gateway.routing.error_template import ErrorTemplate
from gateway.routing.snapshot import Endpoint, Route
from gateway.routing.substitute_routes import entity_tags, substitutes
from gateway.versions.mechanisms.registry import MECHANISMS, ReaderConfig
from gateway.versions.reader import Reader
from gateway.versions.rewriting import VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version
from gateway.versions.version_choice import Choice


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


class EndpointConfig(SectionModel):
    """A public path of an API, and how a version is chosen there."""

    path: str
    """The public path; `{name}` captures a segment or a part of one, `{name*}` all that follows,
    a slash at the end included."""
    version: (
        Annotated[
            Annotated[ReaderConfig, Tag("one")] | Annotated[Some[ReaderConfig], Tag("several")],
            Discriminator(_one_or_several),
        ]
        | None
    ) = None
    """The place in a request that names the version, or a list of places. All that name one must
    name the same."""
    versions: Some[NonEmptyText] | None = None
    """The versions that have the endpoint; others are refused there, as versions that the API does
    not have. Of one alone, `version` may be left out: every request is for it. Without it, all."""
    methods: Some[Method] | None = None
    """The methods that the endpoint accepts; HEAD is included with GET. Without it, all methods
    pass to the service."""
    upstream_path: str | None = None
    """The path that the service is asked for here. Without it, upstream_path of the API counts."""
    media_types: Annotated[dict[BodyTypes, Reading], Field(min_length=1)] | None = None
    """How bodies are read for conversions, by media type: `json`, `json_lines` or `pass`. Without
    it, media_types of the API counts."""
    max_body: Bytes | None = None
    """The largest request body of the endpoint, in bytes. Without it, limits.body counts."""

    @property
    def readers(self) -> tuple[ReaderConfig, ...]:
        """Return the places that name the version, always as a tuple."""
        if self.version is None:
            return ()
        return self.version if isinstance(self.version, tuple) else (self.version,)


class EndpointBuilder(NamedTuple):
    """Builds one endpoint of an API; what is wrong goes to `mistakes`."""

    api: str
    api_path: str | None
    api_media_types: Mapping[str, Reading]
    config: EndpointConfig
    versions: Mapping[str, Version]
    links: Mapping[Version, Sequence[VersionLink]]
    routes: Mapping[Version | None, Route]
    choice: Choice
    endings: Mapping[Version, VersionLifecycle]
    errors: "Mapping[Version | None, ErrorTemplate]"
    at: Location
    mistakes: Mistakes

    def build(self) -> Endpoint | None:
        """Return the endpoint, or None if its path is of no use."""
        template = self._template(self.config.path, *self.at, "path")
        if template is None:
            return None
        own = self._own_versions()
        readers = self._readers(own)
        self._check_version_capture(template, readers)
        upstream = self._upstream(template)
        lifecycles: dict[Version | None, EndpointLifecycle] = {}
        if self.endings:
            for version in own.values():
                if version in self.endings:
                    lifecycles[version] = lifecycle_at(
                        version, self.endings, template, readers, self._moving, own.values()
                    )

        here = partial(self._here, template, readers, upstream, lifecycles)
        left_out = {*self.versions.values()} - {*own.values()}
        routes = {one: here(route) for one, route in self.routes.items() if one not in left_out}
        vary = [name for reader in readers for name in reader.vary]
        pinned = self.choice.pins and not any(reader.reads_path for reader in readers)
        exempt = any(lifecycle.exempt for lifecycle in lifecycles.values())
        # Of several versions that a client accepts, the first one that has not ended for it serves.
        preferred = exempt and any(reader.is_preference for reader in readers)
        if readers and (pinned or preferred):
            vary += self.choice.vary
        common = _vary(vary)
        by_client: dict[Version | None, tuple[str, ...]] = {
            version: _vary((*vary, *names))
            for version in own.values()
            if (names := self._client_fields(routes.get(version), lifecycles.get(version)))
        }
        return Endpoint(
            self.api,
            template,
            self._methods(),
            self._selector(readers, own),
            routes,
            common,
            self.config.max_body,
            {version: ending for version, ending in lifecycles.items() if version not in routes},
            self.errors,
            self._media_types(),
            by_client,
        )

    def _client_fields(
        self, route: Route | None, lifecycle: EndpointLifecycle | None
    ) -> tuple[str, ...]:
        """Return the request headers by which responses of a version depend on the client."""
        brownout = None if route is None else route.brownout
        if (lifecycle is not None and lifecycle.exempt) or (brownout and brownout.exempt):
            return self.choice.vary
        if route is None or route.cutover is None:
            return ()
        # Both routes answer the same version, so that caches may store it though no field names
        # the client.
        sticky = route.cutover.rule.sticky is StickyBy.CLIENT
        return tuple(name for name in self.choice.vary if sticky and name != "*")

    def _here(
        self,
        template: Template,
        readers: tuple[Reader, ...],
        upstream: Template | None,
        lifecycles: Mapping[Version | None, EndpointLifecycle],
        route: Route,
    ) -> Route:
        """Return a route of the API as it is at this endpoint."""
        here = partial(self._here, template, readers, upstream, lifecycles)
        response = route.response and route.response.at(self.config.path)
        rewrite = None
        if route.service.reads_version:
            rewrite = VersionRewrite.of(
                readers, str(route.service_version), route.version, self.choice.matching
            )
        made = replace(
            route,
            upstream_path=upstream if upstream is not None else self._own_path(template, route),
            stripped=None if upstream is None else _stripped(template, upstream, route.version),
            content_type=_content_type(readers, route.version),
            fields=self.choice.fields(route.version),
            overrules=frozenset(name.lower() for name, _ in self.choice.fields(route.version))
            | (ENDING if route.version in lifecycles else frozenset()),
            lifecycle=lifecycles.get(route.version),
            shadow=route.shadow and replace(route.shadow, route=here(route.shadow.route)),
            cutover=route.cutover and replace(route.cutover, route=here(route.cutover.route)),
            request=route.request and route.request.at(self.config.path),
            response=response,
            error_type=self._error_type(route),
            tags=entity_tags(route, response),
            request_rewrite=rewrite,
            unnamed_rewrite=rewrite and rewrite.adding(),
            response_rewrite=(
                VersionRewrite.of(readers, str(route.version))
                if route.service_version != route.version
                else None
            ),
        )
        ladder = tuple(self.versions.values())
        matching = self.choice.matching
        found = substitutes(made, ladder, self.links, self.config.path, readers, matching)
        return replace(made, substitutes=dict(found))

    def _moving(self, source: Version, target: Version) -> Conversion | None:
        """Return the conversion between two versions here, or None if no operation differs."""
        try:
            found = compose(tuple(self.versions.values()), self.links, source, target)
        except LookupError:  # there are no conversions between the two
            return None
        return found.at(self.config.path) if found.has_operations else None

    def _error_type(self, route: Route) -> str | None:
        template = self.errors.get(route.version)
        return None if template is None or route.response is None else template.content_type

    def _media_types(self) -> dict[str, str]:
        own = self.config.media_types
        types = self.api_media_types if own is None else own
        return {name.lower(): reading for name, reading in types.items()}

    def _own_versions(self) -> Mapping[str, Version]:
        """Return the versions that have the endpoint, by label."""
        named = self.config.versions
        if named is None:
            return self.versions
        if not self.versions:
            text = "the API has no versions to choose from; remove it, or add versions"
            self.mistakes.add(text, *self.at, "versions")
        for index, label in enumerate(named) if self.versions else ():
            self.mistakes.look_up(label, self.versions, "version", *self.at, "versions", index)
        return {label: one for label, one in self.versions.items() if label in named}

    def _selector(self, readers: tuple[Reader, ...], own: Mapping[str, Version]) -> Selector | None:
        default = self._default(own)
        if not own or not (readers or self._is_of_one(own)):
            return None
        if default is None and self.choice.default in own.values():
            default = self.choice.default
        return Selector(
            readers,
            own,
            default if readers else next(iter(own.values())),
            self.choice.matching.among(own.values()),
            {
                name: one
                for name, one in self.choice.pins.items()
                if readers and one in own.values()
            },
            {
                label: self.endings[version]
                for label, version in own.items()
                if version in self.endings
            },
        )

    def _is_of_one(self, own: Mapping[str, Version]) -> bool:
        """Whether every request is for the one version that has the endpoint."""
        return self.config.versions is not None and len(own) == 1 and not self.config.readers

    def _template(self, text: str, *location: str | int) -> Template | None:
        return self.mistakes.attempt(partial(parse_template, text), *location)

    def _upstream(self, template: Template) -> Template | None:
        if self.config.upstream_path is not None:
            text, location = self.config.upstream_path, (*self.at, "upstream_path")
        elif self.api_path is not None:
            text, location = self.api_path, ("apis", self.api, "upstream_path")
        else:
            return None
        rest = next((part.capture for part in template.segments if part.tail), None)
        if rest is not None and text.endswith(f"/{{{rest}}}"):
            text = f"{text[:-1]}*}}"  # so that links of the service lead back, slashes included
        upstream = self._template(text, *location)
        known = {*template.captures, *(("version",) if self.versions else ())}
        for name in upstream.captures if upstream is not None else ():
            if name not in known:
                self.mistakes.add(
                    f"'{{{name}}}' is not captured by the path of {place(self.at)};"
                    f" known: {', '.join(sorted(known)) or 'none'}",
                    *location,
                )
        if upstream is not None:
            self._warn_of_lost_links(template, upstream, location)
        return upstream

    def _warn_of_lost_links(self, template: Template, upstream: Template, at: Location) -> None:
        lost = {*template.captures} - {*upstream.captures, "version"}
        if lost:
            named = ", ".join(f"'{{{name}}}'" for name in sorted(lost))
            self.mistakes.warn(
                f"warning: has not {named} of the path of {place(self.at)}, which links of the"
                " service lead back to only from requests that have it",
                *at,
            )

    def _own_path(self, template: Template, route: Route) -> Template | None:
        # The client names its own version, or a range of them; the service is asked for the one
        # that it speaks.
        moved = route.service_version != route.version or not self.choice.matching.is_exact
        if not moved or route.service.reads_version is False:
            return None
        return template if "version" in template.captures else None

    def _check_version_capture(self, template: Template, readers: tuple[Reader, ...]) -> None:
        captured = "version" in template.captures
        read = any(reader.reads_path for reader in readers)
        if captured and not self.versions:
            self.mistakes.add(
                "captures {version}, but the API has no versions; give the capture another name",
                *self.at,
                "path",
            )
        elif captured and readers and not read:
            self.mistakes.add(
                "captures {version}, but the version is not read there; add version: { in: path }",
                *self.at,
                "path",
            )
        if read and not captured:
            self.mistakes.add(
                "the path has no {version} to read; write one, such as a first segment /v{version}",
                *self.at,
                "path",
            )

    def _readers(self, own: Mapping[str, Version]) -> tuple[Reader, ...]:
        if self.versions and not (self.config.readers or self._is_of_one(own)):
            self.mistakes.add(
                "does not name how a version is chosen; add version: { in: ... }, with one of"
                f" {', '.join(MECHANISMS)}",
                *self.at,
            )
        if self.config.readers and not self.versions:
            self.mistakes.add(
                "the API has no versions to choose from; remove it, or add versions",
                *self.at,
                "version",
            )
            return ()
        readers = (
            config.build(self.versions, self._reader_at(index), self.mistakes)
            for index, config in enumerate(self.config.readers)
        )
        return _joined(reader for reader in readers if reader is not None)

    def _reader_at(self, index: int) -> Location:
        several = isinstance(self.config.version, tuple)
        return (*self.at, "version", index) if several else (*self.at, "version")

    def _default(self, own: Mapping[str, Version]) -> Version | None:
        defaults: dict[str, Version | None] = {}
        for index, config in enumerate(self.config.readers):
            label = config.default_label
            if label is None:
                continue
            at = (*self._reader_at(index), "default")
            defaults[label] = self.mistakes.look_up(label, own, "version", *at)
            if len(defaults) > 1:
                self.mistakes.add("differs from the default before; keep one", *at)
        return next(iter(defaults.values()), None)

    def _methods(self) -> tuple[str, ...] | None:
        methods = self.config.methods
        if methods is None or "GET" not in methods or "HEAD" in methods:
            return methods
        # HEAD is answered wherever GET is (RFC 9110, section 9.3.2).
        after = methods.index("GET") + 1
        return (*methods[:after], "HEAD", *methods[after:])


def _content_type(readers: tuple[Reader, ...], version: Version | None) -> str | None:
    if version is None:
        return None
    return next(filter(None, (reader.content_type(version) for reader in readers)), None)


def _stripped(template: Template, upstream: Template, version: Version | None) -> Template | None:
    """Return the beginning of a path that the service's path lacks; None where more differs."""
    text = template.text.removesuffix(upstream.text)
    if text in ("", template.text):
        return None
    return parse_template(text.replace("{version}", str(version)))


def _joined(readers: Iterable[Reader]) -> tuple[Reader, ...]:
    """Return the readers, with those that read one place together made one."""
    found: list[Reader] = []
    for reader in readers:
        both = [known.joined(reader) for known in found]
        index = next((index for index, one in enumerate(both) if one is not None), len(found))
        found[index : index + 1] = [next(filter(None, both), reader)]
    return tuple(found)


def asked_paths(endpoint: Endpoint) -> Iterator[Template]:
    """Yield the templates of the paths that services are asked for, for any version."""
    for route in endpoint.routes.values():
        yield route.upstream_path or endpoint.template


def _vary(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of Vary; `*` stands for all of them (RFC 9110, section 12.5.5)."""
    found = tuple(dict.fromkeys(names))
    return ("*",) if "*" in found else found
