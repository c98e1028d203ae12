"""Next steps: the stages of a version from its own service to its end.

The stages are: convert, verify, compare by a shadow, cut over, deprecate, retire. `verify` runs
elsewhere, so its results are not available here. Compared responses are later evidence.
"""

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.conditions import Finding
from gateway.findings.formatting import day_text, plural
from gateway.findings.suggested_fix import shadow_samples, suggest_fix
from gateway.lifecycle.lifecycle import VersionLifecycle
from gateway.rollout.cutover import percent_in_force
from gateway.rollout.shadow import VersionShadow
from gateway.routing.snapshot import Snapshot
from gateway.usage.totals import Occurrences, Totals

_MONTH = 30 * 86_400.0
_ROUTING = frozenset({"service", "shadow", "cutover"})
_CUTOVER = 'cutover: { via: "%s", steps: [1, 10, 50, 100], every: 1h, gates: { errors: 1%% } }'


class NextStep(NamedTuple):
    """The next step of a version.

    Attributes:
        waits: what the step waits for, as a sentence; empty if an operator can take it now.
        command: a command to run; empty if there is none.
        change: a change for `conversions`, or an entry for the API, in YAML.
        add: the entry to add to the version in gateway.yaml.
        drop: the keys of the version that `add` replaces.
    """

    finding: Finding
    reason: str
    waits: str = ""
    command: str = ""
    change: str = ""
    add: str = ""
    drop: frozenset[str] = frozenset()

    @property
    def action(self) -> str:
        """The command to run, or the change of gateway.yaml to write, as sentences."""
        texts = self.command and f"Run {self.command}.", self.add and f"Write {self.add}."
        change = self.change if "\n" not in self.change else ""
        return " ".join(filter(None, (*texts, change and f"Add {change}.")))


class Step(NamedTuple):
    """A stage. `at` is in seconds since 1970, and 0 if it is unknown."""

    name: str
    done: bool
    at: float = 0.0
    text: str = ""


class _Place(NamedTuple):
    """The services of a version: its current one, and a newer version that could serve it.

    Attributes:
        target: the label of the newer version; empty if no newer version has its own service.
        via: the version that serves all requests; empty if the version has its own service.
        converts: whether `conversions` connects the two versions.
        documented: whether `schema` names the documents of both.
    """

    target: str = ""
    via: str = ""
    served: bool = False
    converts: bool = False
    documented: bool = False
    shadow: VersionShadow | None = None


def _place_of(key: VersionKey, rules: Snapshot) -> _Place:
    known = rules.derived.setdefault(__name__, {})
    assert isinstance(known, dict)
    if key not in known:
        known[key] = _place(key, rules)
    found = known[key]
    assert isinstance(found, _Place)
    return found


def _place(key: VersionKey, rules: Snapshot) -> _Place:
    api = next((each for each in rules.apis if each.name == key[0]), None)
    version = None if api is None else api.versions.get(key[1])
    route = next(rules.routes(key), None)
    if api is None or version is None:
        return _Place(served=route is not None)
    later = [each for each in api.versions.values() if version < each]
    target = next((each for each in later if api.served.get(each) == each), None)
    via = ""
    shadow: VersionShadow | None = None
    for one in rules.routes(key):
        if one.service_version is not None and one.version != one.service_version:
            target, via = one.service_version, str(one.service_version)
        beside = one.cutover or one.shadow
        if beside is not None and beside.route.service_version is not None:
            target = beside.route.service_version
        shadow = one.shadow.rule if one.shadow is not None else shadow
    if target is None or target < version:
        return _Place("", via, route is not None)
    between = [version, *(each for each in later if each < target)]
    converts = all(api.links.get(each) for each in between)
    documented = {version, target} <= api.schemas.keys()
    return _Place(str(target), via, route is not None, converts, documented, shadow)


def next_step(
    key: VersionKey,
    rules: Snapshot,
    totals: Totals,
    overrides: Overrides,
    now: float,
    served: float,
    who: str = "",
) -> NextStep | None:
    """Return the next step of a version that is converted or that will end.

    Args:
        served: the time of the last use, in seconds since 1970; 0 if it was never used.
        who: who calls the version, as a clause.
    """
    place, terms = _place_of(key, rules), rules.terms(key)
    if not key[1] or (terms is not None and terms.sunset <= now):
        return None
    ends = terms is not None and _ends(terms, now)
    if ends and terms is not None and max(served, totals.since) < now - _MONTH:
        day = day_text(terms.sunset) if terms.sunset < inf else ""
        waits = day and f"It waits for its sunset on {day}."
        more = "" if waits else " Add a sunset to its lifecycle."
        reason = f"It is deprecated, and no client has used it for 30 days.{more}"
        return NextStep(Finding.UNCALLED, reason, waits)
    if place.via or not (place.target and place.served):
        reason = f"It is deprecated, and {who or 'clients still call it'}."
        return NextStep(Finding.CALLED, reason, "It waits for its last clients.") if ends else None
    return _towards(key, place, rules, totals, overrides, ends=ends)


def _ends(terms: VersionLifecycle, now: float) -> bool:
    return terms.sunset < inf or (terms.deprecated is not None and terms.deprecated <= now)


def _towards(
    key: VersionKey,
    place: _Place,
    rules: Snapshot,
    totals: Totals,
    overrides: Overrides,
    *,
    ends: bool,
) -> NextStep | None:
    """Return the next step of a version with its own service towards that of the target."""
    other, cutover = place.target, rules.cutovers.get(key)
    if cutover is not None:
        percent = percent_in_force(cutover, overrides)
        if percent >= 100:
            reason = (
                f"All its requests go to the service of version {other}. Replace its service,"
                " shadow and cutover."
            )
            return NextStep(Finding.CUT_OVER, reason, add=f'via: "{other}"', drop=_ROUTING)
        reason = f"{percent:g}% of its requests go to the service of version {other}."
        return NextStep(Finding.ROLLOUT, reason, "It waits for the evidence of its current step.")
    compared, differing = _sum(totals, key, "compared"), _sum(totals, key, "differing")
    if differing.count or _sum(totals, key, "invalid").count:
        return _difference(key, place, totals, compared.count)
    if compared.count:
        reason = (
            f"{'The only response' if compared.count == 1 else f'All {compared.count:,} responses'}"
            f" compared {'is' if compared.count == 1 else 'are'} equal to those of version {other}."
        )
        return NextStep(Finding.COMPARED, reason, add=_CUTOVER % other)
    if place.shadow is not None:
        reason = f"Its shadow has not compared a response with version {other} yet."
        return NextStep(Finding.SHADOWED, reason, "It waits for requests of clients.")
    if not place.converts:
        reason = f"Its end is announced. With a conversion, version {other} can serve it."
        change = f'conversions:\n  - between: ["{key[1]}", "{other}"]\n    changes: []'
        return NextStep(Finding.UNCONVERTED, reason, change=change) if ends else None
    add = f'shadow: {{ via: "{other}" }}'
    reason = f"Its conversion to version {other} is not compared with real responses."
    if not place.documented:
        return NextStep(Finding.UNCOMPARED, reason, add=add)
    reason += " Verify it by the documents. Then add a shadow, which compares real responses."
    command = f"version-gateway verify --api {key[0]}"
    return NextStep(Finding.UNVERIFIED, reason, command=command, add=add)


def _difference(key: VersionKey, place: _Place, totals: Totals, compared: int) -> NextStep:
    counts = {labels[-1]: times for labels, times in totals.counted("differences", *key)}
    field = max(counts, key=lambda name: counts[name].count, default="a field")
    count, more = counts.get(field, Occurrences()).count, len(counts) - 1
    samples = [each for each in shadow_samples(totals, key) if each.field == field]
    if field.startswith("request "):
        validated = _sum(totals, key, "validated").count
        text = f"{count:,} of {validated:,} requests would be refused for {field[8:]}"
    else:
        text = f"{count:,} of {compared:,} {plural(compared, 'response')} differ in {field}"
        if samples:
            text += f": clients get {samples[-1].old}, and would get {samples[-1].new}"
    also = f" {more} more {plural(more, 'field')} {'differs' if more == 1 else 'differ'}."
    fix = suggest_fix(field, samples, place.shadow, newer=True)
    change = fix.change and f"between {key[1]} and {place.target}: {fix.change}"
    return NextStep(
        Finding.DIFFERS, f"{text}.{also if more > 0 else ''}", change=change or fix.ignore
    )


def _sum(totals: Totals, key: VersionKey, kind: str) -> Occurrences:
    found = Occurrences()
    for _, times in totals.counted(kind, *key):
        found.add(times)
    return found


def steps(
    key: VersionKey,
    rules: Snapshot,
    totals: Totals,
    overrides: Overrides,
    now: float,
    moved: float = 0.0,
) -> Iterator[Step]:
    """Yield the stages; none for a version that is not converted and does not end.

    Args:
        moved: the time since which its cutover has its percentage, in seconds since 1970.
    """
    place, terms = _place_of(key, rules), rules.terms(key)
    if not (key[1] and (terms is not None or place.converts or place.via)):
        return
    if place.target:
        yield Step("converted", place.converts, 0.0, f"to version {place.target}")
        checked, wrong = _sum(totals, key, "checked"), _sum(totals, key, "violations").count
        compared, differing = _sum(totals, key, "compared"), _sum(totals, key, "differing").count
        text = f"{checked.count:,} responses fit its document" if checked.count else "run verify"
        verified = checked.count > 0 and not wrong
        if not verified and compared.count and not differing:
            text = "see shadowed"
        yield Step("verified", verified, checked.first if verified else 0.0, text)
        told = f"{differing:,} of {compared.count:,} differ" if compared.count else ""
        yield Step("shadowed", compared.count > 0 and not differing, compared.first, told)
        cutover = rules.cutovers.get(key)
        percent = 100.0 if place.via else 0.0
        if cutover is not None:
            percent = percent_in_force(cutover, overrides)
        told = f"{percent:g}%, by via" if place.via else f"{percent:g}%"
        yield Step("cut over", percent >= 100, moved, told)
    dates = (0.0, 0.0) if terms is None else (terms.deprecated or 0.0, terms.sunset)
    for name, at in zip(("deprecated", "retired"), dates, strict=True):
        done = 0 < at <= now and (name == "deprecated" or not place.served)
        yield Step(name, done, at if at < inf else 0.0)
