"""Selection: combine the values of all readers into one version or one error.

All values are compared. The first reader with a value takes no precedence over the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from gateway.base.errors import Fault, FaultCode
from gateway.base.request import ANONYMOUS_CONTEXT, RequestContext
from gateway.versions.matching import EXACT, Matching
from gateway.versions.reader import Reader
from gateway.versions.version import Version

_LONGEST_NAME = 100


class _Ending(Protocol):
    def ended(self, context: RequestContext) -> bool: ...


class Selected(NamedTuple):
    """The selected version.

    Attributes:
        chosen_by: the mechanism that named the version, or PIN, DEFAULT or NEWEST.
        named: whether the request contains the label itself, not an alias, a range or no version.
    """

    version: Version
    chosen_by: str
    named: bool = True


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects the version at an endpoint.

    Attributes:
        readers: the readers; empty if the endpoint has only its default version.
        supported: the versions of the endpoint by label in ascending order, including ended
            versions.
        pins: the versions for requests without a version, by client name.
        confusable: the readers whose location a service may confuse with other parts of a request.
    """

    readers: tuple[Reader, ...]
    supported: Mapping[str, Version]
    default: Version | None = None
    matching: Matching = EXACT
    pins: Mapping[str, Version] = field(default_factory=lambda: MappingProxyType({}))
    terms: Mapping[str, _Ending] = field(default_factory=lambda: MappingProxyType({}))
    only: Reader | None = field(init=False, repr=False, compare=False)
    confusable: tuple[Reader, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        confusable = tuple(reader for reader in self.readers if reader.has_lookalikes)
        object.__setattr__(self, "confusable", confusable)
        object.__setattr__(self, "only", self.readers[0] if len(self.readers) == 1 else None)

    def select(
        self,
        readings: Sequence[tuple[Reader, tuple[str, ...]]],
        context: RequestContext = ANONYMOUS_CONTEXT,
    ) -> Selected | Fault:
        """Return the version on which all readings agree, or an error.

        An ended version can be selected, so that the refusal can name it.
        """
        chosen: Selected | None = None
        by: Reader | None = None
        for reader, values in readings:
            if not values:
                continue
            outcome = self._one(reader, values, context)
            if isinstance(outcome, Fault):
                return outcome
            if chosen is None:
                chosen, by = outcome, reader
            elif by is not None and chosen.version != outcome.version:
                return self._refuse(
                    FaultCode.VERSION_CONFLICT,
                    None,  # no single mechanism determines the status
                    f"{by.place} names {chosen.version}, {reader.place} names"
                    f" {outcome.version}; name the same version in both.",
                    context,
                )
        if chosen is not None:
            return chosen
        if context.client in self.pins:
            return Selected(self.pins[context.client], PIN, named=False)
        if self.default is not None:
            return Selected(self.default, DEFAULT, named=False)
        return self.missing(context)

    def missing(self, context: RequestContext) -> Fault:
        places = " or in ".join(reader.place for reader in self.readers)
        return self._refuse(
            FaultCode.VERSION_MISSING,
            self.readers[0],
            f"{self._offer(f'name a version in {places}: ', context)}.",
            context,
        )

    def ambiguous(self, reader: Reader, name: str, context: RequestContext) -> Fault:
        """Return the error for a parameter that a service may mistake for the version parameter."""
        remedy = "write ';' as %3B" if ";" in name else "remove it"
        return self._refuse(
            FaultCode.VERSION_MALFORMED,
            reader,
            f"the query has '{name[:_LONGEST_NAME]}', which some servers read as {reader.place};"
            f" {self._offer(f'{remedy}, and name the version only there: ', context)}.",
            context,
        )

    def offered(self, context: RequestContext) -> tuple[str, ...]:
        if not self.terms:
            return tuple(self.supported)
        over = {label for label, terms in self.terms.items() if terms.ended(context)}
        return tuple(label for label in self.supported if label not in over)

    def _one(
        self, reader: Reader, values: tuple[str, ...], context: RequestContext
    ) -> Selected | Fault:
        if reader.is_preference:
            # The first version that has not ended. If all have ended, the first of them.
            known = [value for value in values if self._find(value)]
            offered = self.offered(context) if self.terms else None
            value = next(
                (value for value in known if offered is None or str(self._find(value)) in offered),
                [*known, *values][0],
            )
        else:
            value = values[0]
            if any(other != value for other in values):
                return self._refuse(
                    FaultCode.VERSION_CONFLICT,
                    reader,
                    f"{reader.place} names several different versions;"
                    f" {self._offer('name one: ', context)}.",
                    context,
                )
        version = self.supported.get(value)
        if version is not None:
            return Selected(version, reader.mechanism)
        version = self.matching.find(value)
        if version is not None and version in self.supported.values():
            return Selected(version, reader.mechanism, named=False)
        if version is not None or self.matching.reads(value):
            code, what = FaultCode.VERSION_UNKNOWN, f"version {value}, which is not available"
        else:
            code, what = FaultCode.VERSION_MALFORMED, "a value that is not a version"
        detail = f"{reader.place} names {what}; {self._offer('use ', context)}."
        return self._refuse(code, reader, detail, context)

    def _refuse(
        self, code: FaultCode, reader: Reader | None, detail: str, context: RequestContext
    ) -> Fault:
        return Fault(
            code,
            detail[0].upper() + detail[1:],
            supported=self.offered(context),
            status_override=None if reader is None else reader.refusal_status,
        )

    def _offer(self, advice: str, context: RequestContext) -> str:
        """Return the advice and the versions, or a sentence if all versions are retired."""
        offered = self.offered(context)
        if not offered:
            return "all versions are retired"
        has = self.supported
        forms = self.matching.forms([has[each] for each in offered] if self.terms else has.values())
        return f"{advice}{' or '.join(offered)}{forms}"

    def _find(self, value: str) -> Version | None:
        found = self.supported.get(value) or self.matching.find(value)
        return found if found in self.supported.values() else None  # the endpoint may lack it


PIN: Final = "pin"
DEFAULT: Final = "default"
NEWEST: Final = "newest"
"""An OPTIONS request without a version gets the newest version that has the method."""

UNNAMED: Final = frozenset({PIN, DEFAULT, NEWEST})
