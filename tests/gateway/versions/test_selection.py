"""Selection: the values of all readers give one version or one error, for each mechanism."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import Blame, Fault, FaultCode
from gateway.base.request import RequestContext
from gateway.lifecycle.lifecycle import VersionLifecycle
from gateway.versions.matching import Matching
from gateway.versions.mechanisms import MECHANISMS
from gateway.versions.mechanisms.header import HeaderReader
from gateway.versions.mechanisms.query import QueryReader
from gateway.versions.reader import Reader
from gateway.versions.selection import DEFAULT, NEWEST, PIN, Selected, Selector
from gateway.versions.version import Format, Version
from tests.gateway.world import (
    ACCEPT,
    CONTENT_TYPE,
    EXAMPLE_READERS,
    HEADER,
    HOST,
    LAW,
    PATH,
    QUERY,
    SUPPORTED,
    V1,
    V2,
)

Values = tuple[str, ...]

STATUS: dict[Reader, int] = {
    PATH: 404,
    QUERY: 400,
    HEADER: 400,
    ACCEPT: 406,
    HOST: 404,
    CONTENT_TYPE: 415,
}
READERS = pytest.mark.parametrize("reader", EXAMPLE_READERS.values(), ids=EXAMPLE_READERS)
MALFORMED = [
    *("", "01", "1.0", "v1", "1,2", "1,1", "1 "),
    *(" 1", "+1", "-1", "foo1", "*", "\u0661", "\uff11"),
]


def select(*readings: tuple[Reader, Values], default: Version | None = None) -> Selected | Fault:
    readers = tuple(reader for reader, _ in readings)
    return Selector(readers, SUPPORTED, default).select(readings)


def refused(outcome: Selected | Fault, status: int, code: FaultCode) -> Fault:
    """Check a refusal, which blames the client and lists the offered versions."""
    assert isinstance(outcome, Fault)
    assert (outcome.status, outcome.code) == (status, code)
    assert outcome.blame is Blame.CLIENT
    assert outcome.supported == ("1", "2")
    return outcome


def test_each_mechanism_has_its_refusal_status() -> None:
    assert {reader: reader.refusal_status for reader in STATUS} == STATUS
    assert EXAMPLE_READERS.keys() == MECHANISMS.keys() - {PIN, DEFAULT, NEWEST}


class TestOneMechanism:
    @READERS
    @pytest.mark.parametrize(("value", "version"), [("1", V1), ("2", V2)])
    def test_a_supported_version_is_selected(
        self, reader: Reader, value: str, version: Version
    ) -> None:
        assert select((reader, (value,))) == Selected(version, reader.mechanism)
        assert select((reader, (value,)), default=V1) == Selected(version, reader.mechanism)

    @READERS
    def test_a_request_without_a_version_is_refused(self, reader: Reader) -> None:
        fault = refused(select((reader, ())), reader.refusal_status, FaultCode.VERSION_MISSING)
        assert fault.detail == f"Name a version in {reader.place}: 1 or 2."

    @READERS
    @pytest.mark.parametrize("value", ["0", "3", "10", "11", "12", "21", "999999999"])
    def test_an_unknown_version_is_refused(self, reader: Reader, value: str) -> None:
        fault = refused(
            select((reader, (value,))), reader.refusal_status, FaultCode.VERSION_UNKNOWN
        )
        place = reader.place[0].upper() + reader.place[1:]
        assert fault.detail == f"{place} names version {value}, which is not available; use 1 or 2."

    @READERS
    @pytest.mark.parametrize("value", MALFORMED)
    def test_a_malformed_version_is_refused(self, reader: Reader, value: str) -> None:
        fault = refused(
            select((reader, (value,))), reader.refusal_status, FaultCode.VERSION_MALFORMED
        )
        place = reader.place[0].upper() + reader.place[1:]
        assert fault.detail == f"{place} names a value that is not a version; use 1 or 2."

    @pytest.mark.parametrize("reader", [QUERY, HEADER], ids=["query", "header"])
    @pytest.mark.parametrize(
        "values", [("1", "2"), ("2", "1"), ("1", "1", "2"), ("1", ""), ("1", "01"), ("3", "4")]
    )
    def test_several_values_that_differ_are_a_conflict(
        self, reader: Reader, values: Values
    ) -> None:
        fault = refused(select((reader, values)), 400, FaultCode.VERSION_CONFLICT)
        assert fault.detail.endswith("names several different versions; name one: 1 or 2.")

    @READERS
    @pytest.mark.parametrize("times", [2, 3, 10])
    def test_several_equal_values_count_as_one_value(self, reader: Reader, times: int) -> None:
        assert select((reader, ("2",) * times)) == Selected(V2, reader.mechanism)
        refused(select((reader, ("3",) * times)), reader.refusal_status, FaultCode.VERSION_UNKNOWN)
        refused(
            select((reader, ("01",) * times)), reader.refusal_status, FaultCode.VERSION_MALFORMED
        )

    @pytest.mark.parametrize(
        ("values", "version"),
        [
            (("1", "2"), V1),
            (("2", "1"), V2),
            (("3", "2", "1"), V2),
            (("01", "v2", "1"), V1),
            (("", "2"), V2),
        ],
    )
    def test_the_first_supported_version_in_accept_is_selected(
        self, values: Values, version: Version
    ) -> None:
        assert select((ACCEPT, values)) == Selected(version, "accept")

    @pytest.mark.parametrize(
        ("values", "code"),
        [(("3", "01"), FaultCode.VERSION_UNKNOWN), (("01", "3"), FaultCode.VERSION_MALFORMED)],
    )
    def test_the_refusal_of_accept_depends_on_its_preferred_version(
        self, values: Values, code: FaultCode
    ) -> None:
        refused(select((ACCEPT, values)), 406, code)


class TestDefault:
    @READERS
    @pytest.mark.parametrize("default", [V1, V2], ids=str)
    def test_the_default_serves_requests_without_a_version(
        self, reader: Reader, default: Version
    ) -> None:
        assert select((reader, ()), default=default) == Selected(default, DEFAULT, named=False)

    @READERS
    @pytest.mark.parametrize(
        ("value", "code"), [("3", FaultCode.VERSION_UNKNOWN), ("01", FaultCode.VERSION_MALFORMED)]
    )
    def test_a_default_does_not_replace_an_invalid_version(
        self, reader: Reader, value: str, code: FaultCode
    ) -> None:
        refused(select((reader, (value,)), default=V1), reader.refusal_status, code)

    def test_a_named_version_precedes_the_default(self) -> None:
        assert select((QUERY, ()), (HEADER, ("2",)), default=V1) == Selected(V2, "header")


OTHER = HeaderReader("X-Other")
PAIRS = list(permutations((PATH, QUERY, HEADER, ACCEPT, OTHER), 2))
TWO = pytest.mark.parametrize(
    ("first", "second"), PAIRS, ids=lambda reader: reader.place.replace(" ", "_")[:20]
)


class TestSeveralMechanisms:
    @TWO
    def test_equal_versions_are_no_conflict(self, first: Reader, second: Reader) -> None:
        assert select((first, ("2",)), (second, ("2",))) == Selected(V2, first.mechanism)

    @TWO
    def test_a_single_value_selects_its_version(self, first: Reader, second: Reader) -> None:
        assert select((first, ()), (second, ("2",))) == Selected(V2, second.mechanism)
        assert select((first, ("1",)), (second, ())) == Selected(V1, first.mechanism)

    @TWO
    def test_different_versions_are_refused_with_400(self, first: Reader, second: Reader) -> None:
        fault = refused(select((first, ("1",)), (second, ("2",))), 400, FaultCode.VERSION_CONFLICT)
        said = f"{first.place[1:]} names 1, {second.place} names 2; name the same version in both."
        assert fault.detail[1:] == said

    @TWO
    def test_a_default_does_not_resolve_a_conflict(self, first: Reader, second: Reader) -> None:
        outcome = select((first, ("1",)), (second, ("2",)), default=V1)
        refused(outcome, 400, FaultCode.VERSION_CONFLICT)

    @TWO
    @pytest.mark.parametrize(
        ("value", "code"), [("3", FaultCode.VERSION_UNKNOWN), ("01", FaultCode.VERSION_MALFORMED)]
    )
    def test_a_valid_value_does_not_hide_an_invalid_one(
        self, first: Reader, second: Reader, value: str, code: FaultCode
    ) -> None:
        status = {reader: reader.refusal_status for reader in (first, second)}
        refused(select((first, ("1",)), (second, (value,))), status[second], code)
        refused(select((first, (value,)), (second, ("1",))), status[first], code)

    def test_a_missing_version_has_the_status_of_the_first_reader(self) -> None:
        fault = refused(select((QUERY, ()), (ACCEPT, ())), 400, FaultCode.VERSION_MISSING)
        assert fault.detail == f"Name a version in {QUERY.place} or in {ACCEPT.place}: 1 or 2."
        refused(select((ACCEPT, ()), (QUERY, ())), 406, FaultCode.VERSION_MISSING)

    def test_a_third_or_fourth_reader_must_agree_too(self) -> None:
        readings = (QUERY, ("1",)), (OTHER, ()), (HEADER, ("1",))
        assert select(*readings) == Selected(V1, "query")
        refused(select(*readings, (ACCEPT, ("2",))), 400, FaultCode.VERSION_CONFLICT)


def test_the_supported_versions_are_listed_in_the_configured_order() -> None:
    supported = {"9": Version(9, "9"), "10": Version(10, "10")}
    fault = Selector((QUERY,), supported).select([(QUERY, ())])
    assert isinstance(fault, Fault)
    assert fault.supported == ("9", "10")
    assert fault.detail.endswith(": 9 or 10.")


def test_a_refusal_lists_the_only_supported_version() -> None:
    fault = Selector((QueryReader("v"),), {"1": V1}).select([(QueryReader("v"), ("2",))])
    assert isinstance(fault, Fault)
    assert fault.detail == (
        "The query parameter 'v' names version 2, which is not available; use 1."
    )


readings = st.lists(
    st.tuples(
        st.sampled_from([PATH, QUERY, HEADER, ACCEPT]),
        st.lists(st.sampled_from(["1", "2", "3", "01", ""]) | st.text(max_size=3), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@LAW
@given(readings)
def test_the_selected_version_is_named_by_all_values(said: list[tuple[Reader, list[str]]]) -> None:
    outcome = select(*((reader, tuple(values)) for reader, values in said))
    if isinstance(outcome, Selected):
        assert any(values for _, values in said)
        assert all(str(outcome.version) in values for _, values in said if values)
    else:
        assert outcome.status in (400, 404, 406)


@LAW
@given(readings, st.sampled_from([None, V1, V2]))
def test_the_order_of_the_readers_does_not_change_the_version(
    said: list[tuple[Reader, list[str]]], default: Version | None
) -> None:
    one = select(*((reader, tuple(values)) for reader, values in said), default=default)
    other = select(*((reader, tuple(values)) for reader, values in said[::-1]), default=default)
    assert isinstance(one, Selected) == isinstance(other, Selected)
    if isinstance(one, Selected) and isinstance(other, Selected):
        assert one.version == other.version


DATED = {"2024-01-01": Version(1, "2024-01-01"), "2025-01-01": Version(2, "2025-01-01")}
NEAREST = Matching(tuple(DATED.values()), (Format.DATE,), nearest_lower=True)


class TestMatching:
    @READERS
    @pytest.mark.parametrize(
        ("value", "label", "named"),
        [
            ("2024-01-01", "2024-01-01", True),
            ("2024-12-31", "2024-01-01", False),
            ("2030-01-01", "2025-01-01", False),
        ],
    )
    def test_the_nearest_lower_version_is_selected(
        self, reader: Reader, value: str, label: str, named: bool
    ) -> None:
        selector = Selector((reader,), DATED, matching=NEAREST)
        assert selector.select([(reader, (value,))]) == Selected(
            DATED[label], reader.mechanism, named
        )

    @READERS
    @pytest.mark.parametrize(
        ("value", "code"), [("2023-12-31", "version_unknown"), ("2024", "version_malformed")]
    )
    def test_a_refusal_lists_the_valid_forms(self, reader: Reader, value: str, code: str) -> None:
        fault = Selector((reader,), DATED, matching=NEAREST).select([(reader, (value,))])
        assert isinstance(fault, Fault)
        assert (fault.code, fault.status) == (code, reader.refusal_status)
        assert fault.detail.endswith(
            "; use 2024-01-01 or 2025-01-01, or a later one, which selects the newest before it."
        )
        assert fault.supported == ("2024-01-01", "2025-01-01")

    def test_the_weight_in_accept_takes_precedence_over_an_exact_match(self) -> None:
        selector = Selector((ACCEPT,), DATED, matching=NEAREST)
        wants = ("2023-01-01", "2024-06-01", "2025-01-01")
        assert selector.select([(ACCEPT, wants)]) == Selected(
            DATED["2024-01-01"], "accept", named=False
        )

    def test_two_different_strings_agree_if_they_match_the_same_version(self) -> None:
        selector = Selector((QUERY, HEADER), DATED, matching=NEAREST)
        said: list[tuple[Reader, Values]] = [(QUERY, ("2024-06-01",)), (HEADER, ("2024-01-01",))]
        assert selector.select(said) == Selected(DATED["2024-01-01"], "query", named=False)
        said[1] = (HEADER, ("2026-01-01",))
        fault = selector.select(said)
        assert isinstance(fault, Fault)
        assert fault.code is FaultCode.VERSION_CONFLICT


class TestPins:
    """A pin is the default version of one client."""

    @READERS
    def test_a_pin_takes_precedence_over_the_default_but_not_over_a_named_version(
        self, reader: Reader
    ) -> None:
        selector = Selector((reader,), SUPPORTED, V2, pins={"acme": V1})
        silent: Values = ()
        assert selector.select([(reader, silent)], RequestContext("acme", 0)) == Selected(
            V1, PIN, named=False
        )
        assert selector.select([(reader, silent)], RequestContext("other", 0)) == Selected(
            V2, DEFAULT, named=False
        )
        assert selector.select([(reader, silent)]) == Selected(V2, DEFAULT, named=False)
        assert selector.select([(reader, ("2",))], RequestContext("acme", 0)) == Selected(
            V2, reader.mechanism
        )

    @READERS
    def test_a_default_does_not_replace_an_invalid_version(self, reader: Reader) -> None:
        selector = Selector((reader,), SUPPORTED, pins={"acme": V1})
        refused(
            selector.select([(reader, ("3",))], RequestContext("acme", 0)),
            reader.refusal_status,
            FaultCode.VERSION_UNKNOWN,
        )
        refused(
            selector.select([(reader, ())], RequestContext("other", 0)),
            reader.refusal_status,
            FaultCode.VERSION_MISSING,
        )


class TestWhatIsOver:
    """An ended version can be selected, so that its refusal can name it, but it is not offered."""

    BEFORE, AFTER = RequestContext("", 99), RequestContext("", 100)
    TERMS = VersionLifecycle(V1, sunset=100, exempt={"acme": 200})

    def choose(self, context: RequestContext, *readings: tuple[Reader, Values]) -> Selected | Fault:
        readers = tuple(reader for reader, _ in readings)
        return Selector(readers, SUPPORTED, terms={"1": self.TERMS}).select(readings, context)

    @READERS
    def test_an_ended_version_can_be_selected(self, reader: Reader) -> None:
        for context in (self.BEFORE, self.AFTER):
            assert self.choose(context, (reader, ("1",))) == Selected(V1, reader.mechanism)

    @READERS
    @pytest.mark.parametrize("values", [(), ("3",), ("x",)])
    def test_an_ended_version_is_not_listed_after_its_sunset(
        self, reader: Reader, values: Values
    ) -> None:
        for context, offered in (
            (self.BEFORE, ("1", "2")),
            (self.AFTER, ("2",)),
            (RequestContext("acme", 199), ("1", "2")),
            (RequestContext("acme", 200), ("2",)),
        ):
            fault = self.choose(context, (reader, values))
            assert isinstance(fault, Fault)
            assert fault.supported == offered
            assert " or ".join(offered) in fault.detail

    def test_a_refusal_lists_no_alias_of_an_ended_version(self) -> None:
        matching = Matching((V1, V2), ranges=True, aliases={"first": V1, "last": V2})
        selector = Selector((QUERY,), SUPPORTED, matching=matching, terms={"1": self.TERMS})
        for context, names in (
            (self.BEFORE, "1 or 2, or a range such as 2+, or first or last."),
            (self.AFTER, "2, or a range such as 2+, or last."),
        ):
            fault = selector.select([(QUERY, ())], context)
            assert isinstance(fault, Fault)
            assert fault.detail == f"Name a version in {QUERY.place}: {names}"

    def test_accept_skips_an_ended_version(self) -> None:
        both = (ACCEPT, ("3", "1", "2"))
        assert self.choose(self.BEFORE, both) == Selected(V1, "accept")
        assert self.choose(self.AFTER, both) == Selected(V2, "accept")
        assert self.choose(self.AFTER, (ACCEPT, ("3", "1"))) == Selected(V1, "accept")

    def test_a_refusal_offers_nothing_when_all_versions_have_ended(self) -> None:
        over = {
            label: VersionLifecycle(version, sunset=100) for label, version in SUPPORTED.items()
        }
        fault = Selector((QUERY,), SUPPORTED, terms=over).select([(QUERY, ())], self.AFTER)
        assert isinstance(fault, Fault)
        assert fault.supported == ()
        assert fault.detail == "All versions are retired."
