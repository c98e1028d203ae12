"""Version summaries: the configuration of each version, collected once for all views."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from gateway.base.overrides import VersionKey
from gateway.lifecycle.brownout import VersionBrownout, WindowOccurrence
from gateway.lifecycle.lifecycle import VersionLifecycle
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.shadow import VersionShadow
from gateway.routing.snapshot import Snapshot

_UPCOMING = 10


@dataclass(slots=True)
class VersionSummary:
    """The configuration of one version.

    Attributes:
        key: the API and the label of the version; the label is empty if the API has no versions.
        terms: its lifecycle; None if it has none.
        via: the label of the version whose service answers; None for its own service.
        services: the names of the services that answer; empty after its sunset.
        endpoints: the paths of its endpoints.
        brownout: its brownouts; None if it has none.
        shadow: its shadow; None if it has none.
        shadowed_by_newer: whether its shadow uses the service of a newer version.
        cutover: its cutover; None if it has none.
    """

    key: VersionKey
    terms: VersionLifecycle | None = None
    via: str | None = None
    services: list[str] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    brownout: VersionBrownout | None = None
    shadow: VersionShadow | None = None
    shadowed_by_newer: bool = False
    cutover: VersionCutover | None = None
    _upcoming: list[WindowOccurrence] = field(default_factory=list)

    def upcoming(self, now: float) -> list[WindowOccurrence]:
        """Return the next ten brownout windows, with those that are open now.

        They end with the version. The result is cached until the first one is over, since computing
        a schedule is slow.
        """
        end = inf if self.terms is None else self.terms.sunset
        if self.brownout is None or end <= now:
            return []
        if not self._upcoming or self._upcoming[0].ends <= now:
            found = islice(self.brownout.occurrences(now), _UPCOMING)
            self._upcoming = [
                each._replace(ends=min(each.ends, end)) for each in found if each.begins < end
            ]
        return self._upcoming


def version_summaries(rules: Snapshot) -> Mapping[VersionKey, VersionSummary]:
    """Return the summaries of all versions, by API, the oldest version first."""
    found: dict[VersionKey, VersionSummary] = {}

    def version(api: str, label: object) -> VersionSummary:
        key = api, "" if label is None else str(label)
        return found.setdefault(key, VersionSummary(key))

    for endpoint in rules.router:
        for label, lifecycle in endpoint.retired.items():
            version(endpoint.api, label).terms = lifecycle
        for label, route in endpoint.routes.items():
            one = version(endpoint.api, label)
            one.endpoints.append(endpoint.template.text)
            if route.service.name not in one.services:
                one.services.append(route.service.name)
            if route.lifecycle is not None:
                one.terms = route.lifecycle
            if route.version != route.service_version:
                one.via = str(route.service_version)
            one.brownout = route.brownout or one.brownout
            if route.shadow is not None and route.version and route.shadow.route.service_version:
                one.shadow = route.shadow.rule
                one.shadowed_by_newer = route.version < route.shadow.route.service_version
            one.cutover = route.cutover.rule if route.cutover else one.cutover
    keys = ((api.name, label) for api in rules.apis for label in api.versions or ("",))
    return {key: found[key] for key in keys if key in found}
