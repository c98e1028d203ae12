"""Changes of stored documents by operators and gates, with their audit entries and events.

The store writes a `Draft` in one transaction. The change takes effect after that.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from gateway.base.dates import format_date
from gateway.base.overrides import NO_OVERRIDES, Overrides, SetAside, VersionKey

OVERRIDES = "overrides"
PAUSED, RUNNING = "paused", "running"
"""The states of brownouts in `ChangeRequest.seen`."""
GATEWAY = "gateway"
MAX_SET_ASIDE = 1000
"""The maximum number of clients that are set aside at the same time."""
MAX_AUDIT = 1000
"""The maximum number of audit entries that are shown; older entries are omitted."""


class ChangeRequest(NamedTuple):
    """The user who requests a change, the origin and the reason, and the state that the user saw.

    Attributes:
        who: the name of the user, or GATEWAY.
        seen: the state that the user saw: `CutoverState.revision`, PAUSED or RUNNING. If the
            current state differs, the change is refused. An empty string allows any state.
    """

    who: str
    origin: str
    why: str
    seen: str = ""

    def check_seen(self, current: str, text: str) -> None:
        if self.seen not in ("", current):
            raise ChangedMeanwhileError(text)


class ChangedMeanwhileError(Exception):
    """The state has changed since the user saw it. The message describes the current state."""


BY_GATEWAY = ChangeRequest(GATEWAY, "", "")


class AuditEntry(NamedTuple):
    """An entry of the audit log. `at` is in seconds since 1970, by the clock of the store."""

    at: float
    who: str
    origin: str
    what: str
    api: str
    version: str
    why: str
    before: str
    after: str


class Event(NamedTuple):
    name: str
    level: str
    fields: Mapping[str, object]


class Draft:
    """A change to be stored in one transaction. `documents` are JSON values by document name."""

    def __init__(self, documents: Mapping[str, object], now: float) -> None:
        self._now = now
        self.documents = documents
        self.overrides = overrides_of(documents)
        self.changed: set[str] = set()
        self.entries: list[AuditEntry] = []
        self.events: list[Event] = []

    def __bool__(self) -> bool:
        return bool(self.changed or self.entries)

    def put(self, name: str, document: object) -> None:
        if self.documents.get(name) != document:
            self.documents = {**self.documents, name: document}
            self.changed.add(name)

    def record(
        self, request: ChangeRequest, what: str, key: VersionKey, before: str = "", after: str = ""
    ) -> None:
        who, origin, why, _ = request
        self.entries.append(AuditEntry(self._now, who, origin, what, *key, why, before, after))

    def announce(self, name: str, **fields: object) -> None:
        self.events.append(Event(name, "info", fields))

    def pause(self, key: VersionKey, request: ChangeRequest, *, paused: bool) -> None:
        """Pause or resume the brownouts of a version; raises ChangedMeanwhileError."""
        now = self.overrides.paused
        text = f"The brownouts are {'paused' if key in now else 'not paused'} now."
        request.check_seen(PAUSED if key in now else RUNNING, text)
        after = now | {key} if paused else now - {key}
        before_text, after_text = (
            "paused" if key in each else "by the rules" for each in (now, after)
        )
        what = f"brownout {'pause' if paused else 'resume'}"
        self.record(request, what, key, before_text, after_text)
        self._put_overrides(replace(self.overrides, paused=after))
        if paused:
            self.announce("brownout_paused", api=key[0], version=key[1])
        else:
            self.announce("brownout_resumed", api=key[0], version=key[1])

    def set_percent(
        self,
        key: VersionKey,
        percent: float | None,
        why: str,
        request: ChangeRequest = BY_GATEWAY,
        configured: float | None = None,
    ) -> None:
        """Set the percentage of a cutover.

        Args:
            percent: from 0 to 100; None for the configured percentage.
            why: the reason, which is recorded unless the request has its own reason.
        """
        request = request if request.why else request._replace(why=why)
        percents = {**self.overrides.percents}
        before = _percent_text(percents.pop(key, None), configured)
        if percent is not None:
            percents[key] = percent
        self.record(request, "cutover", key, before, _percent_text(percent, configured))
        self._put_overrides(replace(self.overrides, percents=percents))
        self.announce("cutover_set", api=key[0], version=key[1], percent=percent, reason=why)

    def set_aside(self, client: str, until: float | None, request: ChangeRequest) -> None:
        """Set a client aside until a time in seconds since 1970; None includes it again.

        Raises:
            ValueError: The time is in the past, or too many clients are set aside.
        """
        known = {**self.overrides.aside(self._now)}
        before, after = _aside_text(known.pop(client, None)), "counted"
        if until is not None:
            if until <= self._now:
                raise ValueError("'until' is in the past; use a later date")
            if len(known) >= MAX_SET_ASIDE:
                raise ValueError(
                    f"{MAX_SET_ASIDE} clients are already set aside; include some of them first"
                )
            known[client] = SetAside(until, request.why)
            after = _aside_text(known[client])
        what = "usage include" if until is None else "usage set-aside"
        self.record(request, what, (client or "(anonymous)", ""), before, after)
        self._put_overrides(replace(self.overrides, set_aside=known))
        if until is None:
            self.announce("client_included", client=client)
        else:
            self.announce("client_set_aside", client=client, until=format_date(until))

    def _put_overrides(self, overrides: Overrides) -> None:
        self.overrides = overrides
        self.put(OVERRIDES, overrides_document(overrides))


class _Percent(msgspec.Struct):
    api: str
    version: str
    percent: float


class _Aside(msgspec.Struct):
    client: str
    until: float
    why: str


class _Stored(msgspec.Struct):
    paused: list[VersionKey]
    percents: list[_Percent]
    set_aside: list[_Aside] = []


def _aside_text(found: SetAside | None) -> str:
    if found is None:
        return "counted"
    return f"set aside until {format_date(found.until)}"


def _percent_text(percent: float | None, configured: float | None) -> str:
    if percent is not None:
        return f"{percent:g}%"
    return "by the rules" if configured is None else f"{configured:g}% by the rules"


def overrides_document(overrides: Overrides) -> dict[str, object]:
    aside = [
        {"client": client, "until": until, "why": why}
        for client, (until, why) in sorted(overrides.set_aside.items())
    ]
    return {
        "paused": sorted(overrides.paused),
        "percents": [
            {"api": api, "version": version, "percent": percent}
            for (api, version), percent in sorted(overrides.percents.items())
        ],
        **({"set_aside": aside} if aside else {}),
    }


def overrides_of(
    documents: Mapping[str, object], report: Callable[[str], None] | None = None
) -> Overrides:
    """Return the overrides in the stored documents.

    If the document is invalid, there are no overrides, since the configuration alone is the safe
    choice. `report` is called with the reason.
    """
    document = documents.get(OVERRIDES)
    if document is None:
        return NO_OVERRIDES
    try:
        stored = msgspec.convert(document, _Stored)
    except msgspec.ValidationError as error:
        if report is not None:
            report(str(error))
        return NO_OVERRIDES
    percents = {(each.api, each.version): each.percent for each in stored.percents}
    aside = {each.client: SetAside(each.until, each.why) for each in stored.set_aside}
    return Overrides(frozenset(stored.paused), percents, aside)
