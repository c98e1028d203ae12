"""Selection: from what the readers found to one version, or to a named refusal.

All readings are collected before anything is decided; the first one to speak does not win.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.core.errors import Code, Fault
from gateway.core.readers import Mechanism, Reader
from gateway.core.version import Version, parse

# Where the version is part of the resource's name, not naming one is naming nothing (404); where
# it is part of content negotiation, the representation is not acceptable (406, RFC 9110 15.5.7).
REFUSAL_STATUS: Mapping[Mechanism, int] = {
    Mechanism.PATH: 404,
    Mechanism.QUERY: 400,
    Mechanism.HEADER: 400,
    Mechanism.ACCEPT: 406,
}


class Selected(NamedTuple):
    """The version that was chosen, and by which reader; None says: by default."""

    version: Version
    reader: Reader | None


@dataclass(frozen=True, slots=True)
class Selector:
    """How one endpoint chooses: its readers, the versions on offer, and an optional default."""

    readers: tuple[Reader, ...]
    supported: Mapping[str, Version]
    default: Version | None = None

    def select(self, readings: Sequence[tuple[Reader, tuple[str, ...]]]) -> Selected | Fault:
        """Return the version that all readings agree on, or the refusal they amount to.

        Args:
            readings: for each reader of this endpoint, the raw values that it found.
        """
        if len(readings) == 1 and len(readings[0][1]) == 1:
            # What nearly every request is: one place speaks, and names what is on offer.
            ((reader, (value,)),) = readings
            version = self.supported.get(value)
            if version is not None:
                return Selected(version, reader)
        chosen: Version | None = None
        by = self.readers[0]
        for reader, values in readings:
            if not values:
                continue
            outcome = self._one(reader, values)
            if isinstance(outcome, Fault):
                return outcome
            if chosen is None:
                chosen, by = outcome, reader
            elif chosen != outcome:
                return self._refuse(
                    Code.VERSION_CONFLICT,
                    None,  # no one mechanism is wrong, so none decides the status
                    f"{by.place} says {chosen}, {reader.place} says {outcome}; let them agree.",
                )
        if chosen is not None:
            return Selected(chosen, by)
        if self.default is not None:
            return Selected(self.default, None)
        places = " or in ".join(reader.place for reader in self.readers)
        return self._refuse(
            Code.VERSION_MISSING, self.readers[0], f"Name a version in {places}: {self._offer}."
        )

    def _one(self, reader: Reader, values: tuple[str, ...]) -> Version | Fault:
        if reader.mechanism is Mechanism.ACCEPT:
            # Negotiation: the values are a preference, the first that we have serves.
            value = next((value for value in values if value in self.supported), values[0])
        else:
            value = values[0]
            if any(other != value for other in values):
                return self._refuse(
                    Code.VERSION_CONFLICT,
                    reader,
                    f"{reader.place} names several versions that differ; name one: {self._offer}.",
                )
        version = self.supported.get(value)
        if version is not None:
            return version
        if parse(value) is None:
            code, what = Code.VERSION_MALFORMED, "what is not a version"
        else:
            code, what = Code.VERSION_UNKNOWN, f"version {value}, which is not on offer"
        return self._refuse(code, reader, f"{reader.place} names {what}; use {self._offer}.")

    def _refuse(self, code: Code, reader: Reader | None, detail: str) -> Fault:
        return Fault(
            code,
            detail[0].upper() + detail[1:],
            supported=tuple(self.supported),
            status_override=None if reader is None else REFUSAL_STATUS[reader.mechanism],
        )

    @property
    def _offer(self) -> str:
        return " or ".join(self.supported)
