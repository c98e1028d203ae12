"""What a version has beside its own service: a shadow to compare with, and a cutover."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from gateway.config.sections import cutover_models, root_section
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.cutover.cutover import Cutover, StickyBy
from gateway.core.cutover.differences import Ignored, parse_ignored
from gateway.core.cutover.gates import GateAction, Gates
from gateway.core.cutover.shadow import Shadow
from gateway.core.overrides import VersionKey
from gateway.core.snapshot import Alternative, Route

BuildRoute = Callable[..., Route | None]
"""Returns how the version would be served via another; takes that, and where it is written."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class AlternativesBuilder:
    """Builds what stands beside one version; what is wrong goes to `mistakes`."""

    key: VersionKey
    config: root_section.VersionConfig
    labels: Collection[str]
    at: Location
    mistakes: Mistakes

    def beside(self, route: Route, way: BuildRoute) -> Route:
        """Return the route with its shadow and its cutover."""
        shadow, cutover = self.config.shadow, self.config.cutover
        if shadow is not None and self._sound("shadow", shadow.via):
            other, rule = way(shadow.via, "shadow", "via"), self._shadow(shadow)
            if other is not None:
                route = replace(route, shadow=Alternative(rule, other))
        if cutover is not None and self._sound("cutover", cutover.via):
            other, moved = way(cutover.via, "cutover", "via"), self._cutover(cutover)
            if other is not None and moved is not None and other.service_version is not None:
                route = replace(route, cutover=Alternative(moved, other))
        return route

    def _sound(self, what: str, via: str) -> bool:
        if self.config.service is None:
            self.mistakes.add(
                "stands beside via, where nobody is left to compare with or to move; give the"
                f" version its own service, or remove {what}",
                *self.at,
                what,
            )
            return False
        if via == self.key[1]:
            self.mistakes.add(
                "names the version itself; name the one that is to take its place",
                *self.at,
                what,
                "via",
            )
            return False
        table = dict.fromkeys(self.labels, via)
        return self.mistakes.look_up(via, table, "version", *self.at, what, "via") is not None

    def _shadow(self, config: cutover_models.ShadowConfig) -> Shadow:
        places = (
            self.mistakes.attempt(partial(parse_ignored, text), *self.at, "shadow", "ignore", index)
            for index, text in enumerate(config.ignore)
        )
        methods = {*config.methods, *(("HEAD",) if "GET" in config.methods else ())}
        return Shadow(
            self.key,
            config.percent,
            Ignored(frozenset(place for place in places if place is not None)),
            tuple(dict.fromkeys(name.lower() for name in config.headers)),
            frozenset(methods),
            config.noise,
            config.samples == "plain",
            config.body,
        )

    def _cutover(self, config: cutover_models.CutoverConfig) -> Cutover | None:
        at = (*self.at, "cutover")
        if (config.percent is None) == (config.steps is None):
            self.mistakes.add(
                "says how many clients are moved by exactly one of percent: 25 and"
                " steps: [1, 5, 25, 100]",
                *at,
            )
            return None
        steps = config.steps or ()
        for index, (step, following) in enumerate(pairwise(steps), 1):
            if following <= step:
                self.mistakes.add(
                    "is not above the step before; let them rise", *at, "steps", index
                )
        if "every" in config.model_fields_set and not steps:
            self.mistakes.add("is for steps, and there are none; remove it", *at, "every")
        gates = config.gates
        if gates is not None:
            self._gates(gates, (*at, "gates"))
        return Cutover(
            self.key,
            config.via,
            config.percent if config.percent is not None else steps[-1],
            StickyBy(config.sticky_by),
            None if gates is None else _gates(gates),
            steps,
            _seconds(config.every),
        )

    def _gates(self, config: cutover_models.GatesConfig, at: Location) -> None:
        if config.differences is not None and self.config.shadow is None:
            self.mistakes.add(
                f'nothing is compared; add shadow: {{ via: "..." }} to version {self.key[1]}',
                *at,
                "differences",
            )
        if not {"differences", "errors", "latency"} & config.model_fields_set:
            self.mistakes.add("look at nothing; add differences, errors or latency", *at)
        if not 1 <= _seconds(config.window) <= _DAY:
            self.mistakes.add("is a second at least, and a day at most", *at, "window")


def _gates(config: cutover_models.GatesConfig) -> Gates:
    return Gates(
        None if config.differences is None else float(config.differences[:-1]) / 100,
        None if config.errors is None else float(config.errors[:-1]) / 100,
        None if config.latency is None else float(config.latency[:-1]),
        _seconds(config.window),
        config.minimum,
        GateAction(config.then),
    )


def _seconds(duration: str) -> float:
    return float(duration[:-1]) * _UNITS[duration[-1]]
